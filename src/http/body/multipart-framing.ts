import { DomainError } from '../../domain/errors.js';
import type { Lease } from '../byte-budget.js';
import { ChunkSizes, chunksTooSmall } from '../response/chunk-sizes.js';
import { GrowingBuffer } from './growing-buffer.js';

/** Everything before the file's first byte: boundaries, part headers and signed fields. */
const MAX_PREFIX = 65_536;
/** Bytes from the delimiter on that ends the file: what is more than that delimiter is refused in any case. */
const MAX_BEHIND = 65_536;
const CRLF = Buffer.from('\r\n');
const HEAD_END = Buffer.from('\r\n\r\n');
/** End of the delimiter that closes a form. */
const CLOSE = Buffer.from('--');
const NOTHING = Buffer.alloc(0);
const CR = 13;

/**
 * The boundary of a form's media type. RFC 2046: 1 to 70 characters of a closed set, not ending in a space.
 * @throws DomainError `unsupported_media_type` for another type, `invalid_request` for a boundary that is not
 * one
 */
export function formBoundary(contentType: string | undefined): string {
  if (contentType === undefined || !/^multipart\/form-data[ \t]*(;|$)/i.test(contentType)) {
    throw new DomainError('unsupported_media_type', 'The form is posted as multipart/form-data.');
  }
  const parameters = mediaTypeParameters(contentType);
  // RFC 2231 extensions of a parameter: another reader may prefer them.
  if (parameters?.some(([name]) => name.toLowerCase().startsWith('boundary*')))
    throw malformedForm('The boundary parameter is given in an extended form.');
  const boundaries =
    parameters?.filter(([name]) => name.toLowerCase() === 'boundary').map(([, value]) => value) ?? [];
  const boundary = boundaries.length === 1 && BOUNDARY.test(boundaries[0]!) ? boundaries[0] : undefined;
  if (boundary === undefined) throw malformedForm('The boundary parameter is missing or malformed.');
  return boundary;
}

const BOUNDARY = /^[0-9A-Za-z'()+_,./:=? -]{0,69}[0-9A-Za-z'()+_,./:=?-]$/;

/**
 * Parameters of a media type (RFC 9110, 5.6.6): names and values, quotes taken off; undefined where the text
 * behind the type is not a list of them.
 */
function mediaTypeParameters(contentType: string): (readonly [name: string, value: string])[] | undefined {
  const parameters: (readonly [string, string])[] = [];
  const parameter =
    /[ \t]*;[ \t]*([!#$%&'*+.^_`|~0-9A-Za-z-]+)=(?:([!#$%&'*+.^_`|~0-9A-Za-z-]+)|"([^"\\]*)")[ \t]*/y;
  parameter.lastIndex = contentType.search(/[ \t]*;/);
  if (parameter.lastIndex < 0) return undefined;
  while (parameter.lastIndex < contentType.length) {
    const match = parameter.exec(contentType);
    if (match === null) return undefined;
    parameters.push([match[1]!, match[2] ?? match[3]!]);
  }
  return parameters;
}

/**
 * Holds the form to its exact extent, which the multipart parser leaves open: the parser skips bytes before
 * the first boundary, after the last one, in parts it does not understand and behind a delimiter that only
 * begins like one. Here a form is its parts and nothing else, so that no byte can mean one thing to the
 * service and another to somebody else.
 */
export class FormEnvelope {
  readonly #delimiter: Buffer;
  readonly #lease: Lease;
  readonly #sizes = new ChunkSizes();
  /** Bytes until the file starts; the leading CRLF makes the first delimiter look like every other. */
  #prefix: GrowingBuffer | undefined;
  #opened = false;
  #bytes = 0;
  /** Bytes of the last piece beyond the prefix's greatest size. */
  #beyond: Buffer = NOTHING;
  /** The delimiter that ends the file and what follows it, as far as it may, and a byte more. */
  #end: Buffer = NOTHING;
  /** Bytes from that delimiter on. */
  #behind = 0;

  /** @param lease pays for what is held until the file starts, and ends then */
  constructor(boundary: string, lease: Lease) {
    this.#lease = lease;
    this.#prefix = new GrowingBuffer(lease);
    this.#prefix.append(CRLF);
    this.#delimiter = delimiterOf(boundary);
  }

  /**
   * @throws DomainError `invalid_request` where something stands before the first boundary, or the pieces are
   * too small
   */
  push(chunk: Buffer): void {
    if (!this.#sizes.count(chunk.length)) throw chunksTooSmall();
    if (this.#prefix === undefined) return;
    this.#bytes += chunk.length;
    // The rest of a large piece is of the file, or is refused.
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

  /** @throws DomainError `invalid_request` where the form is long and the file has not started */
  checkPrefix(): void {
    if (this.#prefix !== undefined && this.#bytes > MAX_PREFIX) {
      throw new DomainError('invalid_request', 'The fields before the file are too large.', {
        reason: 'form_field_too_large',
      });
    }
  }

  /**
   * The head of part number `parts` is complete and the file follows.
   * @returns all that has come from the last line end of that head on: it may begin a delimiter, too
   * @throws DomainError `invalid_request` where one of the parts before it was not a field
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
        throw malformedForm('A boundary is not followed by a line end.');
    }
    const end = prefix.indexOf(HEAD_END, at);
    if (end < 0) throw malformedForm('A part of the form is malformed.');
    this.#lease.end();
    const came = prefix.subarray(end + HEAD_END.length - CRLF.length);
    return beyond.length === 0 ? came : Buffer.concat([came, beyond]);
  }

  /**
   * Takes the next bytes from the delimiter on that ends the file.
   * @throws DomainError `invalid_request` where they are too many to wait for the end of them
   */
  fileEnded(bytes: Buffer): void {
    this.#behind += bytes.length;
    if (this.#behind > MAX_BEHIND) throw unclosedForm();
    const room = this.#delimiter.length + CLOSE.length + CRLF.length + 1 - this.#end.length;
    if (room > 0) this.#end = Buffer.concat([this.#end, bytes.subarray(0, room)]);
  }

  /**
   * The form is complete.
   * @throws DomainError `invalid_request` unless the file is followed by the closing boundary, at most one
   * line end, and nothing
   */
  checkEnd(): void {
    const closing = Buffer.concat([this.#delimiter, CLOSE]);
    if (!this.#end.equals(closing) && !this.#end.equals(Buffer.concat([closing, CRLF]))) throw unclosedForm();
  }
}

/**
 * Finds the end of a form's file: the first delimiter behind its head, whatever follows it, as the multipart
 * parser has it.
 */
export class FileCutter {
  readonly #delimiter: Buffer;
  /** The last bytes, where they may begin a delimiter. */
  #held: Buffer = NOTHING;
  /** Bytes to come that are not of the file: the line end of its head. */
  #before = CRLF.length;

  constructor(boundary: string) {
    this.#delimiter = delimiterOf(boundary);
  }

  /**
   * Takes the next bytes, from the last line end of the file's head on.
   * @returns `file`: bytes that are surely of the file; `rest`: the delimiter and what has come behind it,
   * absent until it has come
   */
  push(chunk: Buffer): { readonly file: Buffer; readonly rest?: Buffer } {
    const bytes = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]);
    const end = bytes.indexOf(this.#delimiter);
    const sure = end >= 0 ? end : bytes.length - this.#unsure(bytes);
    const file = bytes.subarray(this.#before, Math.max(this.#before, sure));
    if (end >= 0) return { file, rest: bytes.subarray(end) };
    this.#before = Math.max(0, this.#before - sure);
    // A copy: a few bytes are not worth the memory that holds them.
    this.#held = sure === bytes.length ? NOTHING : Buffer.from(bytes.subarray(sure));
    return { file };
  }

  /** Length of the end of `bytes` that may begin a delimiter, which has one CR, its first byte. */
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
