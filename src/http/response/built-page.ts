import { createHash } from 'node:crypto';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { matchesTag } from './entity-tag.js';
import type { EmptyResponse, TextResponse } from './response.js';

/** The content codings of a page (RFC 9110, 8.4.1), the smallest result first. */
const CODINGS = ['br', 'gzip'] as const;
type Coding = (typeof CODINGS)[number];

/** The result is a tenth larger than with the best quality, and takes a tenth of the time. */
const BROTLI_QUALITY = 9;

/** The request headers that select the form of a page, by lower-case name. */
export interface PageHeaders {
  readonly 'accept-encoding'?: string | undefined;
  readonly 'if-none-match'?: string | undefined;
}

interface Form {
  readonly bytes: Buffer;
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * A page that is the same for every caller. The page is compressed once, in advance, and each form has its
 * own ETag.
 */
export class BuiltPage {
  readonly #mediaType: string;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #plain: Form;
  readonly #coded: ReadonlyMap<Coding, Form>;

  /** @param headers the headers of the page in every form */
  constructor(mediaType: string, text: string, headers: Readonly<Record<string, string>>) {
    const bytes = Buffer.from(text);
    this.#mediaType = mediaType;
    this.#headers = headers;
    this.#plain = formOf(bytes);
    this.#coded = new Map(CODINGS.map((coding) => [coding, formOf(encoded(coding, bytes), coding)]));
  }

  respond(request: PageHeaders): TextResponse<200> | EmptyResponse<304> {
    const accepted = request['accept-encoding'] ?? '';
    const coding = CODINGS.find((each) => isAccepted(accepted, each));
    const { bytes, headers } = (coding && this.#coded.get(coding)) ?? this.#plain;
    if (matchesTag(request['if-none-match'] ?? '', headers['ETag']!, 'weak')) {
      // A 304 omits the coding, which the cache already has (RFC 9110, 15.4.5).
      const { 'Content-Encoding': _, ...kept } = headers;
      return { kind: 'empty', status: 304, headers: kept };
    }
    return {
      kind: 'text',
      status: 200,
      mediaType: this.#mediaType,
      text: bytes,
      headers: { ...this.#headers, ...headers },
    };
  }
}

function formOf(bytes: Buffer, coding?: Coding): Form {
  return {
    bytes,
    headers: {
      ETag: `"${createHash('sha256').update(bytes).digest('hex')}"`,
      // Caches may keep the page but must revalidate it, because another version of the service has another
      // page.
      'Cache-Control': 'no-cache',
      Vary: 'Accept-Encoding',
      ...(coding === undefined ? {} : { 'Content-Encoding': coding }),
    },
  };
}

function encoded(coding: Coding, bytes: Buffer): Buffer {
  return coding === 'gzip'
    ? gzipSync(bytes, { level: 9 })
    : brotliCompressSync(bytes, {
        params: {
          [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY,
          [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length,
        },
      });
}

/** Returns true when Accept-Encoding (RFC 9110, 12.5.3) names a coding, or `*`, with a weight above 0. */
function isAccepted(header: string, coding: Coding): boolean {
  let accepted = false;
  for (const item of header.toLowerCase().split(',')) {
    const [name, ...parameters] = item.split(';').map((part) => part.trim());
    const isRefused = parameters.some((parameter) => /^q\s*=\s*0(\.0*)?$/.test(parameter));
    if (name === coding) return !isRefused;
    if (name === '*') accepted = !isRefused;
  }
  return accepted;
}
