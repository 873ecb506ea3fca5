import type { Readable } from 'node:stream';
import { DomainError } from '../../../core/domain/errors.js';
import { neededPurpose } from '../../domain/upload.js';
import type { Asset } from '../../operations/proofs/read-asset.js';
import { matchesTag } from './entity-tag.js';
import type { EmptyResponse, FailedResponse, StreamResponse } from './response.js';

/** The request headers that select the response, by lower-case name. */
export interface AssetHeaders {
  readonly range?: string;
  readonly 'if-range'?: string;
  readonly 'if-match'?: string;
  readonly 'if-none-match'?: string;
}

type AssetResponse = EmptyResponse<200 | 304> | StreamResponse<200 | 206> | FailedResponse;

type Range = { readonly start: number; readonly end: number };

/**
 * Returns the response with an asset. Applies the conditions in the order of RFC 9110, 13.2.2: If-Match,
 * If-None-Match, then Range with If-Range. A file never changes while it exists, so its digest is a strong
 * validator.
 * @param method the request's method, GET or HEAD
 * @param admit called before the file is opened. It throws when the caller has too many open files
 * @throws DomainError `precondition_failed`, or the error of `admit`
 */
export async function assetResponse(
  asset: Asset,
  method: string,
  headers: AssetHeaders,
  admit: () => void,
): Promise<AssetResponse> {
  const { bytes, sha256, fileName, mediaType } = asset;
  const purpose = neededPurpose(bytes);
  const etag = `"${sha256}"`;
  const kept = { ETag: etag, 'Cache-Control': 'private, no-cache' };
  if (headers['if-match'] !== undefined && !matchesTag(headers['if-match'], etag, 'strong'))
    throw new DomainError('precondition_failed', 'The current ETag of the file is not in If-Match.');
  if (headers['if-none-match'] !== undefined && matchesTag(headers['if-none-match'], etag, 'weak'))
    return { kind: 'empty', status: 304, headers: kept };

  const file = {
    ...kept,
    'Accept-Ranges': 'bytes',
    'Repr-Digest': `sha-256=:${Buffer.from(sha256, 'hex').toString('base64')}:`,
    'Content-Disposition': contentDisposition(fileName),
    ...(purpose !== undefined && { 'Upload-Purpose': purpose }),
  };
  // RFC 9110, 14.2 defines ranges only for GET.
  if (method === 'HEAD')
    return {
      kind: 'empty',
      status: 200,
      headers: { ...file, 'Content-Type': mediaType, 'Content-Length': String(bytes) },
    };
  // RFC 9110, 13.1.5: a date, a weak tag or the tag of another file disables the range.
  const range =
    headers['if-range'] === undefined || headers['if-range'] === etag
      ? parseRange(headers.range, bytes)
      : undefined;
  if (range === 'unsatisfiable') return unsatisfiable(bytes);
  admit();
  if (range === undefined)
    return { kind: 'stream', status: 200, mediaType, bytes, stream: await open(asset), headers: file };
  const { start, end } = range;
  return {
    kind: 'stream',
    status: 206,
    mediaType,
    bytes: end - start + 1,
    stream: await open(asset, range),
    headers: { ...file, 'Content-Range': `bytes ${start}-${end}/${bytes}` },
  };
}

/**
 * Opens the stream. A failure is handled when the stream is sent. Until then an `error` event without a
 * listener would end the process.
 */
async function open(asset: Asset, range?: Range): Promise<Readable> {
  return (await asset.read(range)).on('error', () => {});
}

/**
 * Parses a byte range (RFC 9110, 14.1.2).
 * @returns undefined when the whole file must be sent: without a range, with several ranges, with another
 * unit, or with a malformed range
 */
function parseRange(header: string | undefined, bytes: number): Range | 'unsatisfiable' | undefined {
  const match = /^bytes=[ \t]*(\d*)-(\d*)[ \t]*$/i.exec(header ?? '');
  if (match === null) return undefined;
  const [, first, last] = match as unknown as [string, string, string];
  if (first === '') {
    if (last === '') return undefined;
    const length = Math.min(Number(last), bytes);
    return length === 0 ? 'unsatisfiable' : { start: bytes - length, end: bytes - 1 };
  }
  const start = Number(first);
  const end = last === '' ? bytes - 1 : Math.min(Number(last), bytes - 1);
  if (last !== '' && Number(last) < start) return undefined;
  return start >= bytes ? 'unsatisfiable' : { start, end };
}

function unsatisfiable(bytes: number): FailedResponse {
  const error = new DomainError('range_not_satisfiable', 'The range is outside the file.');
  return {
    kind: 'error',
    error,
    headers: { 'Content-Range': `bytes */${bytes}`, 'Accept-Ranges': 'bytes' },
  };
}

/**
 * Returns the `Content-Disposition` of a download (RFC 6266). `filename` is plain ASCII, and `filename*` (RFC
 * 8187) has letters of every script. Both are safe on every file system, and no path is included.
 */
export function contentDisposition(fileName: string): string {
  const base = fileName.split(/[/\\]/).at(-1)!;
  const ascii = base
    .normalize('NFKD')
    .replaceAll(/\p{M}/gu, '')
    .replaceAll(/[^\w.() -]/g, '_');
  const whole = encodeURIComponent(safeName(base)).replaceAll(
    /['()]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  return `attachment; filename="${safeName(ascii)}"; filename*=UTF-8''${whole}`;
}

/**
 * Returns a name that a file can have on every file system: visible, and without characters or endings that
 * Windows rejects, and without characters that change the direction of the text.
 */
function safeName(name: string): string {
  const safe = name
    .replaceAll(/\p{Cs}/gu, '\uFFFD')
    .replaceAll(/[\p{Cc}\p{Bidi_Control}\p{Noncharacter_Code_Point}"*:<>?|]/gu, '_')
    .replace(/^\.+/, '_')
    .replace(/(?<![. ])[. ]+$/, '_')
    // Windows opens a device under these names, with any extension.
    .replace(/^(?=(?:con|prn|aux|nul|(?:com|lpt)[0-9\u00b9\u00b2\u00b3]) *(?:\.|$))/i, '_');
  return safe === '' ? 'audio' : safe;
}
