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

/** The content of a page in each coding. `plain` is called at the first request without a coding. */
export interface PageForms extends Readonly<Record<Coding, Buffer>> {
  readonly plain: () => Buffer;
}

/**
 * Caches may keep a page. `revalidated`: they must ask before each use, because another version of the service
 * has another page. `immutable`: the address of the page contains a digest of its content.
 */
const CACHE_CONTROL = {
  revalidated: 'no-cache',
  immutable: 'public, max-age=31536000, immutable',
} as const;
type Lifetime = keyof typeof CACHE_CONTROL;

/**
 * A page that is the same for every caller. The page is compressed once, in advance, and each form has its
 * own ETag.
 */
export class BuiltPage {
  readonly #mediaType: string;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #plain: () => Buffer;
  readonly #coded: ReadonlyMap<Coding, Form>;
  #identity: Form | undefined;

  /** @param headers the headers of the page in every form */
  constructor(
    mediaType: string,
    { plain, ...coded }: PageForms,
    headers: Readonly<Record<string, string>>,
    lifetime: Lifetime,
  ) {
    this.#mediaType = mediaType;
    this.#headers = { ...headers, 'Cache-Control': CACHE_CONTROL[lifetime], Vary: 'Accept-Encoding' };
    this.#plain = plain;
    this.#coded = new Map(CODINGS.map((coding) => [coding, formOf(coded[coding], coding)]));
  }

  /** Compresses a text. */
  static of(mediaType: string, text: string, headers: Readonly<Record<string, string>> = {}): BuiltPage {
    const bytes = Buffer.from(text);
    const forms = { plain: () => bytes, br: encoded('br', bytes), gzip: encoded('gzip', bytes) };
    return new BuiltPage(mediaType, forms, headers, 'revalidated');
  }

  respond(request: PageHeaders): TextResponse<200> | EmptyResponse<304> {
    const accepted = request['accept-encoding'] ?? '';
    const coding = CODINGS.find((each) => isAccepted(accepted, each));
    const { bytes, headers } = (coding && this.#coded.get(coding)) ?? this.#uncoded();
    const { 'Cache-Control': cacheControl, Vary: vary } = this.#headers;
    // A 304 omits the coding, which the cache already has (RFC 9110, 15.4.5).
    if (matchesTag(request['if-none-match'] ?? '', headers['ETag']!, 'weak'))
      return {
        kind: 'empty',
        status: 304,
        headers: { ETag: headers['ETag']!, 'Cache-Control': cacheControl!, Vary: vary! },
      };
    return {
      kind: 'text',
      status: 200,
      mediaType: this.#mediaType,
      text: bytes,
      headers: { ...this.#headers, ...headers },
    };
  }

  #uncoded(): Form {
    this.#identity ??= formOf(this.#plain());
    return this.#identity;
  }
}

function formOf(bytes: Buffer, coding?: Coding): Form {
  return {
    bytes,
    headers: {
      ETag: `"${createHash('sha256').update(bytes).digest('hex')}"`,
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
