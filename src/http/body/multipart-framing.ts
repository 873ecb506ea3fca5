import { DomainError } from '../../domain/errors.js';
import type { Lease } from '../byte-budget.js';
import { ChunkSizes, chunksTooSmall } from '../response/chunk-sizes.js';
import { GrowingBuffer } from './growing-buffer.js';

/** Everything before the file's first byte: boundaries, part headers and signed fields. */
const MAX_PREFIX = 65_536;
const CRLF = Buffer.from('\r\n');
const HEAD_END = Buffer.from('\r\n\r\n');

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
  #fileStart = -1;
  #tail: Buffer = Buffer.alloc(0);

  /** @param lease pays for what is held until the file starts, and ends then */
  constructor(boundary: string, lease: Lease) {
    this.#lease = lease;
    this.#prefix = new GrowingBuffer(lease);
    this.#prefix.append(CRLF);
    this.#delimiter = Buffer.from(`\r\n--${boundary}`, 'latin1');
  }

  /**
   * @throws DomainError `invalid_request` where something stands before the first boundary, or the pieces are
   * too small
   */
  push(chunk: Buffer): void {
    if (!this.#sizes.count(chunk.length)) throw chunksTooSmall();
    this.#bytes += chunk.length;
    const keep = this.#delimiter.length + 4;
    this.#tail =
      chunk.length >= keep
        ? Buffer.from(chunk.subarray(chunk.length - keep))
        : Buffer.concat([this.#tail, chunk]).subarray(-keep);
    if (this.#prefix === undefined) return;
    // The rest of a large piece is of the file, or is refused.
    const room = Math.max(0, MAX_PREFIX + CRLF.length - this.#prefix.length);
    this.#prefix.append(chunk.subarray(0, room));
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
   * @throws DomainError `invalid_request` where one of the parts before it was not a field
   */
  fileStarts(parts: number): void {
    const prefix = this.#prefix!.bytes();
    this.#prefix = undefined;
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
    this.#fileStart = end + HEAD_END.length - CRLF.length;
    this.#lease.end();
  }

  /**
   * The form is complete.
   * @throws DomainError `invalid_request` unless the file is followed by the closing boundary, at most one
   * line end, and nothing
   */
  checkEnd(fileBytes: number): void {
    const closing = Buffer.concat([this.#delimiter, Buffer.from('--')]);
    const rest = this.#bytes - this.#fileStart - fileBytes;
    const exact =
      (rest === closing.length && this.#tail.subarray(-closing.length).equals(closing)) ||
      (rest === closing.length + 2 &&
        this.#tail.subarray(-closing.length - 2).equals(Buffer.concat([closing, CRLF])));
    if (!exact) throw malformedForm('The form does not end with the boundary that closes the file.');
  }
}

export function malformedForm(message: string): DomainError {
  return new DomainError('invalid_request', message, { reason: 'form_malformed' });
}
