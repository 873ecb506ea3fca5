import { createHash } from 'node:crypto';
import { withFacts } from './connection.js';
import { singleHeader, TakemarkError } from './errors.js';
import type { StreamedResponse } from './transport.js';
import type { ResponseFacts } from './types.js';

/** An asset on its way. */
export interface Asset extends ResponseFacts {
  /** Bytes of the whole file; undefined where the service does not say. */
  readonly totalBytes: number | undefined;
  /**
   * First and last byte of what `body` holds; absent where it is the whole file, which is also the response
   * to an outdated `ifRange`.
   */
  readonly range?: { readonly start: number; readonly end: number };
  readonly mediaType: string | undefined;
  /** The name the service suggests. It is other people's text: not to be used as a path unseen. */
  readonly fileName: string | undefined;
  /** Strong validator; as `ifRange` it makes sure that a range belongs to the same file. */
  readonly etag: string | undefined;
  /** Announced SHA-256 of the whole file, lower-case hex. */
  readonly sha256: string | undefined;
  /**
   * The bytes, once. Ends in `bad_response` where a whole file does not have the digest that was announced.
   */
  readonly body: AsyncIterable<Uint8Array>;
  /** Gives the connection back without reading on. */
  close(): void;
}

/**
 * Makes an asset of a response of 200 or 206.
 * @param asked the range of the request
 * @throws TakemarkError for a part that begins elsewhere than was asked for, or was not asked for at all: it would pass
 * for the file, or be joined to what it does not follow
 */
export function assetOf(
  { status, headers, body, close }: StreamedResponse,
  checkDigest: boolean,
  asked?: { readonly start: number },
): Asset {
  const requestId = singleHeader(headers['x-request-id']);
  const range = status === 206 ? parseContentRange(headers['content-range']) : undefined;
  if (status === 206 && (range === undefined || range.start !== asked?.start)) {
    close();
    throw new TakemarkError('bad_response', 'the answer is a part of the file that was not asked for', {
      status,
      requestId,
    });
  }
  const sha256 = parseReprDigest(singleHeader(headers['repr-digest']));
  const length = headers['content-length'];
  return withFacts(
    { requestId, headers },
    {
      totalBytes: range === undefined ? (length === undefined ? undefined : Number(length)) : range.total,
      ...(range === undefined ? {} : { range: { start: range.start, end: range.end } }),
      mediaType: headers['content-type'],
      fileName: parseFileName(headers['content-disposition']),
      etag: headers.etag,
      sha256,
      body:
        checkDigest && sha256 !== undefined && range === undefined
          ? checked(body, sha256, { status, requestId })
          : body,
      close,
    },
  );
}

async function* checked(
  body: AsyncIterable<Uint8Array>,
  expected: string,
  facts: { readonly status: number; readonly requestId: string | undefined },
): AsyncGenerator<Uint8Array> {
  const hash = createHash('sha256');
  for await (const chunk of body) {
    hash.update(chunk);
    yield chunk;
  }
  if (hash.digest('hex') !== expected)
    throw new TakemarkError('bad_response', 'the file that arrived is not the one that was announced', facts);
}

/** RFC 9530: `sha-256=:<base64>:`, possibly among others. */
export function parseReprDigest(header: string | undefined): string | undefined {
  const value = /(?:^|,)\s*sha-256=:([A-Za-z0-9+/]{43}=):/.exec(header ?? '')?.[1];
  return value === undefined ? undefined : Buffer.from(value, 'base64').toString('hex');
}

function parseContentRange(
  header: string | undefined,
): { readonly start: number; readonly end: number; readonly total: number | undefined } | undefined {
  const [, start, end, total] = /^bytes (\d{1,15})-(\d{1,15})\/(\d{1,15}|\*)$/.exec(header ?? '') ?? [];
  if (start === undefined || end === undefined) return undefined;
  return { start: Number(start), end: Number(end), total: total === '*' ? undefined : Number(total) };
}

/** RFC 6266; the extended form wins, as it is the one that holds all characters. */
function parseFileName(header: string | undefined): string | undefined {
  if (header === undefined) return undefined;
  const extended = /;\s*filename\*=UTF-8''([^;\s]+)/i.exec(header)?.[1];
  if (extended !== undefined) {
    try {
      return decodeURIComponent(extended);
    } catch {
      // Wrongly encoded: the plain form may still do.
    }
  }
  return /;\s*filename="((?:[^"\\]|\\.)*)"/i.exec(header)?.[1]?.replace(/\\(.)/g, '$1');
}
