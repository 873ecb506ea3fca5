import type { IncomingMessage } from 'node:http';
import { DomainError } from '../../domain/errors.js';

/** Headers that mean something here and of which a second one would leave open which is meant. */
const SINGLE: ReadonlySet<string> = new Set([
  'host',
  'content-length',
  'transfer-encoding',
  'content-type',
  'content-encoding',
  'expect',
  'idempotency-key',
]);

/** RFC 9110, 7.2: a host of RFC 3986, 3.2.2, and a port. It may be empty. */
const HOST = /^(?:\[[0-9A-Fa-f:.]+\]|(?:[A-Za-z0-9._~!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*)(?::\d*)?$/;

/**
 * The check of a request head for messages that Node's parser lets through although they are ambiguous or not
 * HTTP.
 * @returns the error, or undefined for a message that is in order
 */
export function checkGrammar(request: IncomingMessage): DomainError | undefined {
  // Node's parser takes HTTP/0.9 and HTTP/2.0 request lines as well.
  if (request.httpVersion !== '1.1' && request.httpVersion !== '1.0')
    return malformed('The protocol is HTTP/1.1.');
  const raw = request.rawHeaders;
  let seen: string[] | undefined;
  let host = false;
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i]!.toLowerCase();
    if (!SINGLE.has(name)) continue;
    if (name === 'host') host = true;
    if (seen === undefined) seen = [name];
    else if (seen.includes(name)) return malformed(`More than one ${name} header.`);
    else seen.push(name);
  }
  // RFC 9112, 3.2.
  if (!host && request.httpVersionMinor === 1) return malformed('The host header is missing.');
  if (host && !HOST.test(request.headers.host!)) return malformed('The host header is malformed.');
  const coding = request.headers['transfer-encoding'];
  if (coding !== undefined) {
    // Node takes any coding that ends in the letters `chunked`, `xchunked` among them; another server in
    // front may read the header otherwise.
    if (coding.toLowerCase() !== 'chunked' || request.httpVersionMinor === 0)
      return malformed('The only transfer coding is chunked.');
    // RFC 9112, 6.1: a length and a coding together.
    if (request.headers['content-length'] !== undefined)
      return malformed('Both Content-Length and Transfer-Encoding are present.');
  }
  // RFC 9112, 3.2: a request target has no fragment.
  if (request.url!.includes('#')) return malformed('The request target holds a fragment.');
  return undefined;
}

export function malformed(message: string): DomainError {
  return new DomainError('invalid_request', message, { reason: 'malformed_http' });
}

/**
 * Brings a target in absolute form (RFC 9112, 3.2.2) into origin form, which everything behind this reads, and its
 * authority into the host, whose header does not count beside it (RFC 9112, 3.3). Other targets stay.
 * @returns the error where the authority is none
 */
export function toOriginForm(request: IncomingMessage): DomainError | undefined {
  const [all, authority] = /^https?:\/\/([^/?]*)/i.exec(request.url!) ?? [];
  if (all === undefined) return undefined;
  if (!authority || !HOST.test(authority))
    return malformed('The authority of the request target is malformed.');
  const rest = request.url!.slice(all.length);
  request.url = rest.startsWith('/') ? rest : `/${rest}`;
  request.headers.host = authority;
  return undefined;
}

/** Number of times that a header was sent; Node joins or drops repeated ones. */
export function countHeader(request: IncomingMessage, name: string): number {
  let count = 0;
  for (let i = 0; i < request.rawHeaders.length; i += 2)
    if (request.rawHeaders[i]!.toLowerCase() === name) count += 1;
  return count;
}
