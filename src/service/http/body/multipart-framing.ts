import { DomainError } from '../../../core/domain/errors.js';

/** The most bytes of the preamble and the epilogue together. */
const MAX_OUTSIDE = 65_536;
/** The most bytes of the headers of a part. busboy has the same limit. */
const MAX_HEAD = 16_384;
/** The most spaces and tabs after a boundary. */
const MAX_PADDING = 256;
const CRLF = Buffer.from('\r\n');
const HEAD_END = Buffer.from('\r\n\r\n');
const NOTHING = Buffer.alloc(0);
const TAB = 9;
const LF = 10;
const CR = 13;
const SPACE = 32;
const DASH = 45;

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

/** A piece of a form, in the plain spelling that the multipart parser reads. */
export interface FormPiece {
  /**
   * The kind of the piece. `boundary` starts a part, `head` has the headers of the part, and `content` is a piece of
   * its content. `close` is the closing boundary.
   */
  readonly kind: 'boundary' | 'head' | 'content' | 'close';
  readonly bytes: Buffer;
}

/**
 * Divides a form into its pieces (RFC 2046, 5.1.1). Drops the preamble, the epilogue, the padding of
 * boundaries, and empty parameters of part headers: the multipart parser would misread the last two. Rejects
 * every other byte outside the parts, so that no byte can mean one thing to the service and another to a
 * different parser. For the same reason, the boundary must not occur in the preamble or the epilogue.
 */
export class FormFraming {
  /** The boundary with its dashes, as it starts a line. */
  readonly #dashed: Buffer;
  /** The line end before the boundary belongs to the boundary, not to the content. */
  readonly #delimiter: Buffer;
  #state: 'preamble' | 'boundary' | 'head' | 'content' | 'closed' | 'epilogue' = 'preamble';
  /** The bytes that cannot be assigned yet. At first a line end, which the first boundary may come without. */
  #held: Buffer = CRLF;
  /** The bytes of the preamble and the epilogue so far. */
  #outside = 0;
  #parts = 0;
  /** The bytes before the content of the part: the line end of the empty line after its headers. */
  #before = 0;

  constructor(boundary: string) {
    this.#dashed = Buffer.from(`--${boundary}`, 'latin1');
    this.#delimiter = Buffer.concat([CRLF, this.#dashed]);
  }

  /** The number of parts that have started. */
  get parts(): number {
    return this.#parts;
  }

  /**
   * Adds the next bytes of the form, and yields the pieces that are certain now.
   * @throws DomainError `invalid_request` / `form_malformed`
   */
  *push(chunk: Buffer): Generator<FormPiece, void> {
    let bytes: Buffer | undefined = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]);
    this.#held = NOTHING;
    while (bytes !== undefined) bytes = yield* this.#step(bytes);
  }

  /**
   * Ends the form.
   * @throws DomainError `invalid_request` / `form_malformed` if the closing boundary is missing or incomplete
   */
  end(): void {
    if (this.#state === 'preamble') throw malformedForm('The form does not contain its boundary.');
    const closed = this.#state === 'closed' && paddingOf(this.#held) === this.#held.length;
    if (!closed && this.#state !== 'epilogue')
      throw malformedForm('The form ends before its closing boundary.');
  }

  /** Returns the bytes that belong to the next state, or undefined if more bytes must arrive first. */
  *#step(bytes: Buffer): Generator<FormPiece, Buffer | undefined> {
    switch (this.#state) {
      case 'preamble':
        return this.#preamble(bytes);
      case 'boundary':
        return yield* this.#boundary(bytes);
      case 'head':
        return yield* this.#head(bytes);
      case 'content':
        return yield* this.#content(bytes);
      case 'closed':
        return this.#closed(bytes);
      case 'epilogue':
        if (bytes.includes(this.#dashed))
          throw malformedForm('The form continues after its closing boundary.');
        return this.#skip(bytes, this.#dashed.length - 1);
    }
  }

  #preamble(bytes: Buffer): Buffer | undefined {
    const at = bytes.indexOf(this.#dashed);
    if (at < 0) return this.#skip(bytes, this.#delimiter.length - 1);
    if (!bytes.subarray(0, at).subarray(-CRLF.length).equals(CRLF))
      throw malformedForm('The first boundary does not start a line.');
    this.#skip(bytes.subarray(0, at - CRLF.length), 0);
    this.#state = 'boundary';
    return bytes.subarray(at + this.#dashed.length);
  }

  *#boundary(bytes: Buffer): Generator<FormPiece, Buffer | undefined> {
    if (bytes.length < 2) return this.#hold(bytes);
    const delimiter = this.#parts === 0 ? this.#dashed : this.#delimiter;
    if (bytes[0] === DASH && bytes[1] === DASH) {
      this.#state = 'closed';
      yield { kind: 'close', bytes: Buffer.concat([delimiter, bytes.subarray(0, 2)]) };
      return bytes.subarray(2);
    }
    const padding = lineEndAt(bytes);
    if (padding === undefined) return this.#hold(bytes);
    this.#parts += 1;
    this.#state = 'head';
    yield { kind: 'boundary', bytes: Buffer.concat([delimiter, CRLF]) };
    // Without headers this line end would begin the next boundary.
    return bytes.subarray(padding);
  }

  *#head(bytes: Buffer): Generator<FormPiece, Buffer | undefined> {
    const end = bytes.indexOf(HEAD_END);
    const head = bytes.subarray(CRLF.length, end < 0 ? bytes.length : end + HEAD_END.length);
    if (end === 0 || head.length > MAX_HEAD)
      throw malformedForm(`The headers of part ${this.#parts} are missing or too large.`);
    if (end < 0) return this.#hold(bytes);
    if (bytes.subarray(0, end).includes(this.#delimiter))
      throw malformedForm(`Part ${this.#parts} of the form ends within its headers.`);
    this.#state = 'content';
    this.#before = CRLF.length;
    yield { kind: 'head', bytes: withoutEmptyParameters(head) };
    return bytes.subarray(end + CRLF.length);
  }

  *#content(bytes: Buffer): Generator<FormPiece, Buffer | undefined> {
    const end = bytes.indexOf(this.#delimiter);
    if (end === 0 && this.#before > 0)
      throw malformedForm(`Part ${this.#parts} of the form has no empty line after its headers.`);
    const sure = end >= 0 ? end : bytes.length - this.#unsure(bytes);
    const content = bytes.subarray(this.#before, Math.max(this.#before, sure));
    this.#before = Math.max(0, this.#before - sure);
    if (end >= 0) this.#state = 'boundary';
    if (content.length > 0) yield { kind: 'content', bytes: content };
    return end >= 0 ? bytes.subarray(end + this.#delimiter.length) : this.#hold(bytes.subarray(sure));
  }

  #closed(bytes: Buffer): Buffer | undefined {
    const padding = lineEndAt(bytes);
    if (padding === undefined) return this.#hold(bytes);
    this.#state = 'epilogue';
    return bytes.subarray(padding + CRLF.length);
  }

  /** Holds a copy, because a subarray of a few bytes would keep the whole chunk in memory. */
  #hold(bytes: Buffer): undefined {
    this.#held = Buffer.from(bytes);
  }

  /** Drops bytes outside the parts, except the last ones, which may begin a boundary. */
  #skip(bytes: Buffer, kept: number): undefined {
    const dropped = Math.max(0, bytes.length - kept);
    this.#outside += dropped;
    if (this.#outside > MAX_OUTSIDE)
      throw malformedForm(`The form has more than ${MAX_OUTSIDE} bytes before or after its parts.`);
    this.#hold(bytes.subarray(dropped));
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

/** Returns how many spaces and tabs the bytes begin with. */
function paddingOf(bytes: Buffer): number {
  let length = 0;
  while (bytes[length] === SPACE || bytes[length] === TAB) length += 1;
  return length;
}

/**
 * Returns the place of the line end after a boundary and its padding, or undefined if it has not arrived.
 * @throws DomainError `invalid_request` / `form_malformed` if anything else follows the boundary
 */
function lineEndAt(bytes: Buffer): number | undefined {
  const padding = paddingOf(bytes);
  const end = [bytes[padding] ?? CR, bytes[padding + 1] ?? LF];
  if (padding > MAX_PADDING || end[0] !== CR || end[1] !== LF)
    throw malformedForm('A boundary of the form is not followed by CRLF.');
  return bytes.length < padding + CRLF.length ? undefined : padding;
}

/** The headers of a part whose parameters the multipart parser reads. */
const PARAMETRISED = /^content-(?:disposition|type)[ \t]*:/i;

/**
 * A quoted string, or the semicolon of an empty parameter. A quoted string that does not end goes on to the end of the
 * header, also after a last backslash. So each quote is the beginning of a match, and none is tried twice.
 */
const QUOTED_OR_EMPTY = /("(?:[^"\\]|\\[\s\S])*(?:"|\\?$))|;(?=(?:[ \t]|\r\n[ \t])*(?:;|$))/g;

/** Removes empty parameters from the headers of a part, such as the last one in `name="file";`. */
function withoutEmptyParameters(head: Buffer): Buffer {
  const text = head.toString('latin1');
  if (!/;[ \t]*(?:;|\r\n)/.test(text)) return head;
  // A line that begins with white space continues the header of the line before it.
  const headers = text
    .split(/\r\n(?![ \t])/)
    .map((header) =>
      PARAMETRISED.test(header)
        ? header.replaceAll(QUOTED_OR_EMPTY, (_, quoted?: string) => quoted ?? '')
        : header,
    );
  return Buffer.from(headers.join('\r\n'), 'latin1');
}

/** Returns the error for a part that the multipart parser skips. */
export function notFormData(): DomainError {
  return malformedForm('A part of the form has no Content-Disposition of the type form-data.');
}

export function malformedForm(message: string): DomainError {
  return new DomainError('invalid_request', message, { reason: 'form_malformed' });
}
