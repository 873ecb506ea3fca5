import { createHash } from 'node:crypto';
import { withFacts } from './connection.js';
import { singleHeader, TakemarkError } from './errors.js';
import type { StreamedResponse } from './transport.js';
import type { ResponseFacts } from './types.js';

/** An asset that is being downloaded. */
export interface Asset extends ResponseFacts {
  /** The length of the whole file in bytes. Undefined if the service does not send it. */
  readonly totalBytes: number | undefined;
  /**
   * The first and the last byte in `body`. Absent if `body` is the whole file, which is also the response to
   * an outdated `ifRange`.
   */
  readonly range?: { readonly start: number; readonly end: number };
  readonly mediaType: string | undefined;
  /** The suggested file name. It is untrusted text: check it before you use it as a path. */
  readonly fileName: string | undefined;
  /** The strong validator. Send it as `ifRange` to ensure that a range belongs to the same file. */
  readonly etag: string | undefined;
  /** The SHA-256 of the whole file that the service sent, in lower-case hex. */
  readonly sha256: string | undefined;
  /**
   * The bytes, which can be read once. Reading a whole file ends with `bad_response` if its digest does not
   * match.
   */
  readonly body: AsyncIterable<Uint8Array>;
  /** Stops the download. */
  close(): void;
}

/**
 * Creates an asset from a 200 or 206 response.
 * @param asked the requested range
 * @throws TakemarkError for an unrequested range or a range with another start. The caller could take it for
 * the whole file, or append it at the wrong place
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
    throw new TakemarkError(
      'bad_response',
      'the response contains a different range than the requested range',
      {
        status,
        requestId,
      },
    );
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
    throw new TakemarkError('bad_response', 'the digest of the downloaded file does not match', facts);
}

/** Parses `sha-256=:<base64>:` in a list of digests (RFC 9530). */
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

/** Parses the file name (RFC 6266). The extended form wins, because it can hold all characters. */
function parseFileName(header: string | undefined): string | undefined {
  if (header === undefined) return undefined;
  const extended = /;\s*filename\*=UTF-8''([^;\s]+)/i.exec(header)?.[1];
  if (extended !== undefined) {
    try {
      return decodeURIComponent(extended);
    } catch {
      // Invalid encoding: fall back to the plain form.
    }
  }
  return /;\s*filename="((?:[^"\\]|\\.)*)"/i.exec(header)?.[1]?.replace(/\\(.)/g, '$1');
}
