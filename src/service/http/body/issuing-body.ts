import type { Readable } from 'node:stream';
import busboy from 'busboy';
import { shownName } from '../../../core/domain/display-name.js';
import { DomainError } from '../../../core/domain/errors.js';
import type { Exchange, ListenerLimits } from '../exchange.js';
import { audioBody } from './audio-body.js';
import { fileTooLarge, tooLarge } from './body-reader.js';
import { declaredLength } from './media-type.js';
import { FormFraming, formBoundary, malformedForm, notFormData } from './multipart-framing.js';

/** The most fields before the files, and the most bytes of each field. More are rejected. */
const MAX_FIELDS = 4;
const MAX_FIELD_BYTES = 262_144;
const PLAIN_ENCODINGS: ReadonlySet<string> = new Set(['7bit', '8bit', 'binary']);

/**
 * The body of an issuing request: the audio and the parts before it. Each stream can be read once, the trace
 * first.
 */
export interface IssuingBody {
  readonly fields: ReadonlyMap<string, string>;
  readonly trace?: AsyncIterable<Uint8Array>;
  readonly audio: AsyncIterable<Uint8Array>;
  /**
   * A signal that aborts when the form fails or its caller leaves. Work on the received bytes is then useless.
   * Absent without a form.
   */
  readonly signal?: AbortSignal;
  /** Stops reading the request at any point, so that the response can read the rest of the body. */
  close(): void;
}

export interface IssuingBounds {
  readonly audioBytes: number;
  readonly traceBytes: number;
  /** The fields that the form may have, by name. */
  readonly fields: Readonly<Record<string, unknown>>;
  readonly maxBytes: number;
  /** The time limit of the body in milliseconds, if it is not that of every streamed body. */
  readonly streamMs?: number;
}

/** Returns the bounds of an issuing request. A large file may be longer and take more time (rule 10.21). */
export function issuingBounds(
  bounds: IssuingBounds,
  { largeBytes, largeIssueMs }: ListenerLimits,
  isLarge: boolean,
): IssuingBounds {
  if (!isLarge) return bounds;
  const more = Math.max(0, largeBytes - bounds.audioBytes);
  const { audioBytes, maxBytes } = bounds;
  return { ...bounds, audioBytes: audioBytes + more, maxBytes: maxBytes + more, streamMs: largeIssueMs };
}

/**
 * Returns the body of an issuing request as streams. The body is either the audio alone, or a form of small
 * fields, a file `trace` and the file `file`, in this order. Only the fields are held in memory. The reader
 * of a stream sets its pace.
 * @throws DomainError for an invalid form, also while the streams are read
 */
export async function issuingBody(exchange: Exchange, bounds: IssuingBounds): Promise<IssuingBody> {
  if (declaredLength(exchange.request) > bounds.maxBytes) throw tooLarge(bounds.maxBytes);
  const contentType = exchange.request.headers['content-type'];
  if (!/^multipart\//i.test(contentType ?? ''))
    return { fields: new Map(), audio: soleAudio(exchange, bounds), close() {} };
  const form = new IssuingForm(exchange, formBoundary(contentType), bounds);
  try {
    return await form.open();
  } catch (error) {
    form.close();
    throw error;
  }
}

function soleAudio(exchange: Exchange, { audioBytes, streamMs }: IssuingBounds): AsyncIterable<Uint8Array> {
  if (declaredLength(exchange.request) > audioBytes) throw fileTooLarge(audioBytes);
  return audioBody(exchange, audioBytes, streamMs);
}

interface FilePart {
  readonly name: string;
  readonly stream: Readable;
}

class IssuingForm {
  readonly #exchange: Exchange;
  readonly #bounds: IssuingBounds;
  readonly #framing: FormFraming;
  readonly #parser: busboy.Busboy;
  readonly #fields = new Map<string, string>();
  readonly #files: FilePart[] = [];
  readonly #pumping: Promise<void>;
  readonly #broken = new AbortController();
  #seenFiles = 0;
  #failure: unknown;
  #finished = false;
  #wake: (() => void) | undefined;
  #resume: (() => void) | undefined;

  constructor(exchange: Exchange, boundary: string, bounds: IssuingBounds) {
    this.#exchange = exchange;
    this.#bounds = bounds;
    this.#framing = new FormFraming(boundary);
    this.#parser = busboy({
      headers: { 'content-type': `multipart/form-data; boundary="${boundary}"` },
      defParamCharset: 'utf8',
      limits: { fields: MAX_FIELDS, fieldSize: MAX_FIELD_BYTES + 1, files: 2, parts: MAX_FIELDS + 3 },
    });
    this.#parser
      .on('field', (name: string | undefined, value, info) =>
        this.#guard(() => this.#onField(name, value, info)),
      )
      .on('file', (name: string | undefined, stream, info) =>
        this.#guard(() => this.#onFile(name, stream, info)),
      )
      .on('fieldsLimit', () => this.#fail(malformedForm('The form has too many fields.')))
      .on('partsLimit', () => this.#fail(malformedForm('The form has too many parts.')))
      .on('filesLimit', () => this.#fail(malformedForm('The form has too many files.')))
      // For a malformed part head busboy emits `error` and never `close`.
      .on('error', () => this.#fail(malformedForm('The headers of a part are malformed.')))
      .on('finish', () => {
        if (this.#framing.parts !== this.#fields.size + this.#seenFiles) return this.#fail(notFormData());
        this.#finished = true;
        this.#wake?.();
      });
    this.#pumping = this.#pump(exchange, bounds);
  }

  /** Waits for the first file. All fields are complete at that moment. */
  async open(): Promise<IssuingBody> {
    const first = await this.#nextFile();
    if (first === undefined)
      throw new DomainError('invalid_request', 'The form contains no file.', { reason: 'file_missing' });
    const { traceBytes, audioBytes } = this.#bounds;
    const fields = this.#fields;
    const { signal } = this.#broken;
    const close = (): void => this.close();
    if (first.name === 'file') return { fields, audio: this.#last(first, audioBytes), signal, close };
    // Pass on more than is allowed. The check of the trace reports precisely what is wrong with it.
    const trace = this.#contentOf(first, traceBytes + MAX_FIELD_BYTES);
    return { fields, trace, audio: this.#afterTrace(audioBytes), signal, close };
  }

  close(): void {
    if (this.#finished) return;
    const error = malformedForm('The service stopped reading the form.');
    this.#fail(error);
    this.#exchange.message.stopReader(error);
  }

  async *#afterTrace(maxBytes: number): AsyncGenerator<Uint8Array, void> {
    const part = await this.#nextFile();
    if (part === undefined || part.name !== 'file')
      throw new DomainError('invalid_request', 'The audio is missing. Send it after the trace, as `file`.', {
        reason: 'file_missing',
      });
    yield* this.#last(part, maxBytes);
  }

  /** Yields the content of the last file. The form must end after it. */
  async *#last(part: FilePart, maxBytes: number): AsyncGenerator<Uint8Array, void> {
    yield* this.#contentOf(part, maxBytes);
    if ((await this.#nextFile()) !== undefined)
      throw new DomainError(
        'invalid_request',
        'The form continues after the audio, which must be the last part.',
        {
          reason: 'file_not_last',
        },
      );
  }

  async *#contentOf({ stream }: FilePart, maxBytes: number): AsyncGenerator<Uint8Array, void> {
    let bytes = 0;
    try {
      for await (const chunk of stream) {
        bytes += (chunk as Buffer).length;
        if (bytes > maxBytes) throw fileTooLarge(maxBytes);
        yield chunk as Buffer;
      }
    } catch (error) {
      // The parser destroys its streams when the form fails. The form's own error has the cause.
      throw this.#failure ?? error;
    }
    if (this.#failure !== undefined) throw this.#failure;
  }

  async #nextFile(): Promise<FilePart | undefined> {
    for (;;) {
      if (this.#failure !== undefined) throw this.#failure;
      const part = this.#files.shift();
      if (part !== undefined) return part;
      if (this.#finished) {
        await this.#pumping;
        return undefined;
      }
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      this.#wake = undefined;
    }
  }

  async #pump(exchange: Exchange, { maxBytes, streamMs }: IssuingBounds): Promise<void> {
    try {
      for await (const chunk of audioBody(exchange, maxBytes, streamMs)) {
        for (const { bytes } of this.#framing.push(chunk as Buffer)) {
          if (this.#failure !== undefined) return;
          if (!this.#parser.write(bytes) && this.#failure === undefined) await this.#drained();
        }
      }
      this.#framing.end();
      this.#parser.end();
    } catch (error) {
      this.#fail(error);
    }
  }

  /** Resolves when the parser accepts more, or the form has failed. */
  #drained(): Promise<void> {
    return new Promise((resolve) => {
      this.#resume = resolve;
      this.#parser.once('drain', resolve);
    });
  }

  #onField(name: string | undefined, value: string | undefined, info: busboy.FieldInfo): void {
    if (this.#seenFiles > 0)
      throw new DomainError(
        'invalid_request',
        'A field follows a file. The required order is fields, then `trace`, then `file`.',
        { reason: 'field_after_file' },
      );
    // busboy passes `undefined` for a part without a name and for an unknown character set.
    if (name === undefined || value === undefined)
      throw malformedForm('A part of the form has no name or an unknown character set.');
    if (name === 'file' || name === 'trace')
      throw new DomainError('invalid_request', `The part ${name} must be a file with a file name.`, {
        reason: 'file_name_missing',
      });
    if (!Object.hasOwn(this.#bounds.fields, name))
      throw new DomainError('invalid_request', `The form has the unknown field ${shownName(name)}.`, {
        reason: 'form_field_unknown',
      });
    if (info.valueTruncated || Buffer.byteLength(value) > MAX_FIELD_BYTES)
      throw new DomainError(
        'invalid_request',
        `The field ${shownName(name)} of the form is larger than ${MAX_FIELD_BYTES} bytes.`,
        {
          reason: 'form_field_too_large',
        },
      );
    if (!PLAIN_ENCODINGS.has(info.encoding))
      throw malformedForm('A part of the form uses an unsupported transfer encoding.');
    if (this.#fields.has(name))
      throw new DomainError('invalid_request', `The field ${shownName(name)} of the form is repeated.`, {
        reason: 'form_field_duplicated',
      });
    this.#fields.set(name, value);
  }

  #onFile(name: string | undefined, stream: Readable, info: busboy.FileInfo): void {
    // The reader of the stream gets the error. Before it reads, the stream has no other error listener.
    stream.on('error', () => {});
    this.#seenFiles += 1;
    const expected = this.#seenFiles === 1 ? ['trace', 'file'] : ['file'];
    if (name === undefined || !expected.includes(name))
      throw new DomainError('invalid_request', 'The files of the form must be `trace`, then `file`.', {
        reason: 'form_field_unknown',
      });
    if (!info.filename)
      throw new DomainError('invalid_request', 'The file part has no file name.', {
        reason: 'file_name_missing',
      });
    if (!PLAIN_ENCODINGS.has(info.encoding))
      throw malformedForm('A part of the form uses an unsupported transfer encoding.');
    this.#files.push({ name, stream });
    this.#wake?.();
  }

  #guard(step: () => void): void {
    try {
      step();
    } catch (error) {
      this.#fail(error);
    }
  }

  #fail(error: unknown): void {
    if (this.#failure !== undefined) return;
    this.#failure = error;
    this.#broken.abort(error);
    this.#parser.destroy();
    this.#wake?.();
    this.#resume?.();
  }
}
