import { DomainError } from '../../domain/errors.js';
import type { Lease } from '../byte-budget.js';
import { ChunkSizes, chunksTooSmall } from '../response/chunk-sizes.js';
import { GrowingBuffer } from './growing-buffer.js';

/** The most bytes before the first byte of the file: boundaries, part headers and signed fields. */
const MAX_PREFIX = 65_536;
/**
 * The most bytes that are read from the delimiter after the file on. A longer end is rejected without waiting
 * for more.
 */
const MAX_BEHIND = 65_536;
const CRLF = Buffer.from('\r\n');
const HEAD_END = Buffer.from('\r\n\r\n');
/** The characters that end the closing delimiter. */
const CLOSE = Buffer.from('--');
const NOTHING = Buffer.alloc(0);
const CR = 13;

/**
 * Returns the boundary parameter of a form's media type. RFC 2046 allows 1 to 70 characters of a fixed set,
 * without a space at the end.
 * @throws DomainError `unsupported_media_type` for another type, `invalid_request` for an invalid boundary
 */
export function formBoundary(contentType: string | undefined): string {
  if (contentType === undefined || !/^multipart\/form-data[ \t]*(;|$)/i.test(contentType)) {
    throw new DomainError('unsupported_media_type', 'The body must be multipart/form-data.');
  }
  const parameters = mediaTypeParameters(contentType);
  // Another parser may prefer the extended form of a parameter (RFC 2231).
  if (parameters?.some(([name]) => name.toLowerCase().startsWith('boundary*')))
    throw malformedForm('The boundary parameter must not use the extended form.');
  const boundaries =
    parameters?.filter(([name]) => name.toLowerCase() === 'boundary').map(([, value]) => value) ?? [];
  const boundary = boundaries.length === 1 && BOUNDARY.test(boundaries[0]!) ? boundaries[0] : undefined;
  if (boundary === undefined) throw malformedForm('The boundary parameter is missing or malformed.');
  return boundary;
}

const BOUNDARY = /^[0-9A-Za-z'()+_,./:=? -]{0,69}[0-9A-Za-z'()+_,./:=?-]$/;

/**
 * Returns the parameters of a media type (RFC 9110, 5.6.6) as names and unquoted values, without empty
 * parameters. Returns undefined when the text after the type is not a list of parameters.
 */
function mediaTypeParameters(contentType: string): (readonly [name: string, value: string])[] | undefined {
  const parameters: (readonly [string, string])[] = [];
  const parameter =
    /;[ \t]*(?:([!#$%&'*+.^_`|~0-9A-Za-z-]+)=(?:([!#$%&'*+.^_`|~0-9A-Za-z-]+)|"([^"\\]*)")[ \t]*)?/y;
  parameter.lastIndex = contentType.indexOf(';');
  if (parameter.lastIndex < 0) return undefined;
  while (parameter.lastIndex < contentType.length) {
    const match = parameter.exec(contentType);
    if (match === null) return undefined;
    if (match[1] !== undefined) parameters.push([match[1], match[2] ?? match[3]!]);
  }
  return parameters;
}

/**
 * Checks that a form contains its parts and nothing else. The multipart parser skips bytes before the first
 * boundary, after the last one and in parts that it does not understand. The parser also skips bytes after a
 * delimiter that only starts like one. The checks here ensure that no byte can mean one thing to the service
 * and another to a different parser.
 */
export class FormEnvelope {
  readonly #delimiter: Buffer;
  readonly #lease: Lease;
  readonly #sizes = new ChunkSizes();
  /** The bytes before the file. The leading CRLF makes the first delimiter look like every other one. */
  #prefix: GrowingBuffer | undefined;
  #opened = false;
  #bytes = 0;
  /** The bytes of the last chunk beyond the maximum size of the prefix. */
  #beyond: Buffer = NOTHING;
  /** The delimiter after the file and the bytes that may follow it, plus one byte. */
  #end: Buffer = NOTHING;
  /** The count of bytes from that delimiter on. */
  #behind = 0;

  /** @param lease pays for the bytes that are held until the file starts, and is ended then */
  constructor(boundary: string, lease: Lease) {
    this.#lease = lease;
    this.#prefix = new GrowingBuffer(lease);
    this.#prefix.append(CRLF);
    this.#delimiter = delimiterOf(boundary);
  }

  /**
   * Adds the next chunk of the form.
   * @throws DomainError `invalid_request` when bytes precede the first boundary, or the chunks are too small
   */
  push(chunk: Buffer): void {
    if (!this.#sizes.count(chunk.length)) throw chunksTooSmall();
    if (this.#prefix === undefined) return;
    this.#bytes += chunk.length;
    // The rest of a large chunk belongs to the file, or is rejected.
    const room = Math.max(0, MAX_PREFIX + CRLF.length - this.#prefix.length);
    this.#prefix.append(chunk.subarray(0, room));
    this.#beyond = chunk.subarray(room);
    if (!this.#opened) {
      const start = this.#prefix.bytes().subarray(0, this.#delimiter.length);
      if (!start.equals(this.#delimiter.subarray(0, start.length)))
        throw malformedForm('The form does not begin with its boundary.');
      this.#opened = start.length === this.#delimiter.length;
    }
  }

  /**
   * Checks the length of the prefix.
   * @throws DomainError `invalid_request` when the prefix is too long and the file has not started
   */
  checkPrefix(): void {
    if (this.#prefix !== undefined && this.#bytes > MAX_PREFIX) {
      throw new DomainError('invalid_request', 'The fields before the file are too large.', {
        reason: 'form_field_too_large',
      });
    }
  }

  /**
   * Ends the prefix. Called when the head of part number `parts` is complete and the file follows.
   * @returns all received bytes from the last CRLF of that head on, because this CRLF may also begin a
   * delimiter
   * @throws DomainError `invalid_request` when one of the earlier parts is not a field
   */
  fileStarts(parts: number): Buffer {
    const prefix = this.#prefix!.bytes();
    const beyond = this.#beyond;
    this.#prefix = undefined;
    this.#beyond = NOTHING;
    let at = 0;
    for (let part = 0; part < parts; part += 1) {
      at = prefix.indexOf(this.#delimiter, at);
      if (at < 0) throw malformedForm('A part of the form is malformed.');
      at += this.#delimiter.length;
      if (!prefix.subarray(at, at + 2).equals(CRLF))
        throw malformedForm('A boundary is not followed by CRLF.');
    }
    const end = prefix.indexOf(HEAD_END, at);
    if (end < 0) throw malformedForm('A part of the form is malformed.');
    this.#lease.end();
    const came = prefix.subarray(end + HEAD_END.length - CRLF.length);
    return beyond.length === 0 ? came : Buffer.concat([came, beyond]);
  }

  /**
   * Adds the next bytes from the delimiter after the file on.
   * @throws DomainError `invalid_request` when there are too many to wait for their end
   */
  fileEnded(bytes: Buffer): void {
    this.#behind += bytes.length;
    if (this.#behind > MAX_BEHIND) throw unclosedForm();
    const room = this.#delimiter.length + CLOSE.length + CRLF.length + 1 - this.#end.length;
    if (room > 0) this.#end = Buffer.concat([this.#end, bytes.subarray(0, room)]);
  }

  /**
   * Checks the end of a complete form.
   * @throws DomainError `invalid_request` unless only the closing boundary and at most one CRLF follow the
   * file
   */
  checkEnd(): void {
    const closing = Buffer.concat([this.#delimiter, CLOSE]);
    if (!this.#end.equals(closing) && !this.#end.equals(Buffer.concat([closing, CRLF]))) throw unclosedForm();
  }
}

/**
 * Finds the end of a form's file. The end is the first delimiter after the file's head, regardless of what
 * follows it. The multipart parser uses the same rule.
 */
export class FileCutter {
  readonly #delimiter: Buffer;
  /** The last bytes, held back while they may begin a delimiter. */
  #held: Buffer = NOTHING;
  /** The bytes to skip before the file starts: the CRLF after its part headers. */
  #before = CRLF.length;

  constructor(boundary: string) {
    this.#delimiter = delimiterOf(boundary);
  }

  /**
   * Adds the next bytes, from the last CRLF of the file's head on.
   * @returns `file`: bytes that certainly belong to the file. `rest`: the delimiter and the bytes after it,
   * absent until the delimiter has arrived.
   */
  push(chunk: Buffer): { readonly file: Buffer; readonly rest?: Buffer } {
    const bytes = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]);
    const end = bytes.indexOf(this.#delimiter);
    const sure = end >= 0 ? end : bytes.length - this.#unsure(bytes);
    const file = bytes.subarray(this.#before, Math.max(this.#before, sure));
    if (end >= 0) return { file, rest: bytes.subarray(end) };
    this.#before = Math.max(0, this.#before - sure);
    // A copy, because a subarray of a few bytes would keep the whole chunk in memory.
    this.#held = sure === bytes.length ? NOTHING : Buffer.from(bytes.subarray(sure));
    return { file };
  }

  /**
   * Returns how many of the last bytes may begin a delimiter. A delimiter has one CR, which is its first
   * byte.
   */
  #unsure(bytes: Buffer): number {
    const last = bytes.subarray(-(this.#delimiter.length - 1));
    const at = last.lastIndexOf(CR);
    if (at < 0) return 0;
    const beginning = last.subarray(at);
    return beginning.equals(this.#delimiter.subarray(0, beginning.length)) ? beginning.length : 0;
  }
}

function delimiterOf(boundary: string): Buffer {
  return Buffer.from(`\r\n--${boundary}`, 'latin1');
}

function unclosedForm(): DomainError {
  return malformedForm('The form does not end with the boundary that closes the file.');
}

export function malformedForm(message: string): DomainError {
  return new DomainError('invalid_request', message, { reason: 'form_malformed' });
}
