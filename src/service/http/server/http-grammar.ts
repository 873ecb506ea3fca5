import type { IncomingMessage } from 'node:http';
import { DomainError } from '../../../core/domain/errors.js';

/** Headers that affect processing and must not be repeated, because a second value would be ambiguous. */
const SINGLE: ReadonlySet<string> = new Set([
  'host',
  'content-length',
  'transfer-encoding',
  'content-type',
  'content-encoding',
  'expect',
  'idempotency-key',
]);

/** A host (RFC 3986, 3.2.2) and a port, as in RFC 9110, 7.2. The value may be empty. */
const HOST = /^(?:\[[0-9A-Fa-f:.]+\]|(?:[A-Za-z0-9._~!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*)(?::\d*)?$/;

/**
 * Rejects request heads that Node's parser accepts although they are ambiguous or not HTTP/1.1.
 * @returns the error, or undefined for a valid head
 */
export function checkGrammar(request: IncomingMessage): DomainError | undefined {
  // Node's parser also accepts HTTP/0.9 and HTTP/2.0 request lines.
  if (request.httpVersion !== '1.1' && request.httpVersion !== '1.0')
    return malformed('The protocol must be HTTP/1.1.');
  const raw = request.rawHeaders;
  let seen: string[] | undefined;
  let host = false;
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i]!.toLowerCase();
    if (!SINGLE.has(name)) continue;
    if (name === 'host') host = true;
    if (seen === undefined) seen = [name];
    else if (seen.includes(name)) return malformed(`The ${name} header is repeated.`);
    else seen.push(name);
  }
  // RFC 9112, 3.2.
  if (!host && request.httpVersionMinor === 1) return malformed('The host header is missing.');
  if (host && !HOST.test(request.headers.host!)) return malformed('The host header is malformed.');
  const coding = request.headers['transfer-encoding'];
  if (coding !== undefined) {
    // Node accepts any coding that ends in `chunked`, such as `xchunked`. A proxy in front may read the
    // header differently.
    if (coding.toLowerCase() !== 'chunked' || request.httpVersionMinor === 0)
      return malformed('The only supported transfer coding is chunked.');
    // RFC 9112, 6.1 forbids a length beside a coding.
    if (request.headers['content-length'] !== undefined)
      return malformed('Both Content-Length and Transfer-Encoding are present.');
  }
  // RFC 9112, 3.2: a request target has no fragment.
  if (request.url!.includes('#')) return malformed('The request target contains a fragment.');
  return undefined;
}

export function malformed(message: string): DomainError {
  return new DomainError('invalid_request', message, { reason: 'malformed_http' });
}

/**
 * Converts a target in absolute form (RFC 9112, 3.2.2) to origin form, which all later steps read. The
 * authority of the target replaces the Host header (RFC 9112, 3.3). Other targets do not change.
 * @returns the error when the authority is malformed
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

/** Returns how often a header was sent. Node's own header object joins or drops repeated headers. */
export function countHeader(request: IncomingMessage, name: string): number {
  let count = 0;
  for (let i = 0; i < request.rawHeaders.length; i += 2)
    if (request.rawHeaders[i]!.toLowerCase() === name) count += 1;
  return count;
}
