import type { Readable } from 'node:stream';
import busboy from 'busboy';
import { DomainError, type ErrorReason } from '../../domain/errors.js';
import type { StoredUpload, UploadReceiver } from '../../operations/uploads/receive-upload.js';
import { SIGNED_FIELDS } from '../../operations/uploads/upload-policy.js';
import { type Exchange, sendContinue } from '../exchange.js';
import { left, tooSlow } from './body-reader.js';
import { ClientPace } from './client-pace.js';
import type { FormPermits } from './form-permits.js';
import { FileCutter, FormEnvelope, formBoundary, malformedForm } from './multipart-framing.js';

const MAX_FIELDS = 16;
/** Greatest length of a name: busboy does not enforce its own limit on names. */
const MAX_NAME = 64;
const MAX_VALUE = 8192;
/**
 * Transfer encodings of a part that is its bytes as sent; base64 or quoted-printable would be stored
 * undecoded.
 */
const PLAIN_ENCODINGS: ReadonlySet<string> = new Set(['7bit', '8bit', 'binary']);

/** Permits of forms that give way to others. */
export interface UploadPermits {
  /** Forms whose signed fields have not come yet: their senders are strangers. */
  readonly unproven: FormPermits;
  /** Proven forms that bring nothing. */
  readonly stalled: FormPermits;
}

/**
 * Streams a posted form into a receiver: signed fields first, then exactly one file, named `file`, with a
 * file name. The multipart parser reads the form without the file's bytes, which go straight to the receiver
 * and are never kept; a receiver that is full holds the socket.
 * @param permits the form holds an unproven one until its signed fields have come, and a stalled one while it
 * brings nothing
 * @param open checks the fields and locks the slot; called as soon as the signed fields are whole, before
 * the file has begun
 * @throws DomainError for every way in which the form, the caller's pace or the receiver fails; the receiver
 * is aborted then
 */
export function receiveForm(
  exchange: Exchange,
  permits: UploadPermits,
  open: (fields: ReadonlyMap<string, string>) => Promise<UploadReceiver>,
): Promise<StoredUpload> {
  const boundary = formBoundary(exchange.request.headers['content-type']);
  return new Promise((resolve, reject) =>
    new FormReader(exchange, boundary, permits, open, resolve, reject).start(),
  );
}

class FormReader {
  readonly #exchange: Exchange;
  readonly #permits: UploadPermits;
  readonly #open: (fields: ReadonlyMap<string, string>) => Promise<UploadReceiver>;
  readonly #resolve: (stored: StoredUpload) => void;
  readonly #reject: (error: unknown) => void;
  readonly #envelope: FormEnvelope;
  readonly #parser: busboy.Busboy;
  readonly #pace: ClientPace;
  readonly #fields = new Map<string, string>();
  readonly #cutter: FileCutter;
  #hasFile = false;
  #fileEnded = false;
  /** Bytes of the file that the receiver has no room for yet. */
  readonly #pieces: Buffer[] = [];
  /** True once the signed fields are whole: right or wrong, they are being looked at. */
  #judged = false;
  #receiver: UploadReceiver | undefined;
  /** The receiver has not taken the whole piece that it got last. */
  #receiverFull = false;
  #parserFull = false;
  /** The service holds the caller back. */
  #holding = false;
  /** The form has been read to its end, and is whole. */
  #complete = false;
  #ended = false;
  #releasePermit: (() => void) | undefined;
  #fieldsTimer: NodeJS.Timeout | undefined;

  constructor(
    exchange: Exchange,
    boundary: string,
    permits: UploadPermits,
    open: (fields: ReadonlyMap<string, string>) => Promise<UploadReceiver>,
    resolve: (stored: StoredUpload) => void,
    reject: (error: unknown) => void,
  ) {
    this.#exchange = exchange;
    this.#permits = permits;
    this.#open = open;
    this.#resolve = resolve;
    this.#reject = reject;
    this.#envelope = new FormEnvelope(boundary, exchange.lease);
    this.#cutter = new FileCutter(boundary);
    // The parser gets the boundary that the envelope checks, not the header, so that the two cannot read it
    // differently.
    this.#parser = busboy({
      headers: { 'content-type': `multipart/form-data; boundary="${boundary}"` },
      defParamCharset: 'utf8',
      limits: { fields: MAX_FIELDS, fieldSize: MAX_VALUE + 1, files: 1, parts: MAX_FIELDS + 2 },
    });
    this.#pace = new ClientPace(exchange.limits, {
      tooSlow: () => this.#fail(tooSlow()),
      stalled: (stalled) => this.#stalled(stalled),
    });
  }

  start(): void {
    const { request, limits } = this.#exchange;
    this.#parser
      .on('field', (name: string | undefined, value, info) =>
        this.#guard(() => this.#onField(name, value, info)),
      )
      .on('file', (name: string | undefined, stream, info) =>
        this.#guard(() => this.#onFile(name, stream, info)),
      )
      .on('fieldsLimit', () => this.#fail(malformedForm('The form has too many fields.')))
      .on('partsLimit', () => this.#fail(malformedForm('The form has too many parts.')))
      .on('filesLimit', () => this.#fail(fileNotLast()))
      // A malformed part head emits this and never `close`; a form without its last boundary ends here too.
      .on('error', () => this.#fail(malformedForm('The form is malformed or ends before its last boundary.')))
      .on('drain', this.#onDrain)
      .on('finish', () => this.#onFinish());
    request
      .on('data', this.#onData)
      .on('end', this.#onEnd)
      .on('close', this.#onClose)
      .on('error', this.#onClose);
    this.#exchange.abortBody = (error) => this.#fail(error);
    // A form without its signed fields holds a permit that others need.
    this.#acquire(this.#permits.unproven);
    // After a moment in which this process did not get to read, the bytes that came meanwhile are read first:
    // timers run before them.
    this.#fieldsTimer = setTimeout(() => setImmediate(() => this.#fieldsDue()), limits.fieldsMs);
    sendContinue(this.#exchange);
  }

  readonly #onData = (chunk: Buffer): void => {
    this.#exchange.bytesIn += chunk.length;
    this.#pace.received(chunk.length);
    this.#guard(() => {
      this.#envelope.push(chunk);
      if (this.#fileEnded) this.#pass(chunk);
      else if (this.#hasFile) this.#cut(chunk);
      else this.#parse(chunk);
      this.#envelope.checkPrefix();
    });
  };

  #parse(bytes: Buffer): void {
    if (this.#parser.write(bytes)) return;
    this.#parserFull = true;
    this.#setPace();
  }

  readonly #onDrain = (): void => {
    this.#parserFull = false;
    this.#setPace();
  };

  /** Reads on, or holds the caller back, as there is room. */
  #setPace(): void {
    const holding = this.#parserFull || this.#receiverFull || this.#pieces.length > 0;
    if (this.#ended || holding === this.#holding) return;
    this.#holding = holding;
    if (holding) {
      this.#exchange.request.pause();
      this.#pace.holding();
    } else {
      this.#pace.waiting();
      this.#exchange.request.resume();
    }
  }

  readonly #onEnd = (): void => {
    // From here on only the service itself can be slow.
    this.#pace.stop();
    this.#parser.end();
  };

  readonly #onClose = (): void => {
    if (!this.#exchange.request.complete) this.#fail(left());
  };

  #onField(name: string | undefined, value: string | undefined, info: busboy.FieldInfo): void {
    if (this.#hasFile) throw fileNotLast();
    // busboy gives `undefined` for a character set it does not know.
    if (value === undefined) throw malformedForm('A part of the form has an unknown character set.');
    // busboy gives `undefined` for a part without a name.
    if (name === undefined) throw malformedForm('A part of the form has no name.');
    // A file part without a file name arrives as a field.
    if (name === 'file') throw invalid('file_name_missing', 'The file part has no file name.');
    if (name.length > MAX_NAME) throw invalid('form_field_too_large', "A field's name is too long.");
    if (info.valueTruncated || value.length > MAX_VALUE)
      throw invalid('form_field_too_large', 'A field is too large.');
    if (!PLAIN_ENCODINGS.has(info.encoding))
      throw malformedForm('A part of the form has a transfer encoding.');
    if (this.#fields.has(name)) throw invalid('form_field_duplicated', 'A field is given more than once.');
    if (this.#judged)
      throw invalid('form_field_unknown', 'The form holds a field that the slot does not have.');
    this.#fields.set(name, value);
    if (SIGNED_FIELDS.every((signed) => this.#fields.has(signed))) this.#judge();
  }

  /** Has the fields checked and the slot locked, once. */
  #judge(): void {
    this.#judged = true;
    clearTimeout(this.#fieldsTimer);
    this.#release();
    this.#open(this.#fields).then(
      (receiver) => {
        if (this.#ended) return receiver.abort();
        this.#receiver = receiver;
        // The engine may give up an upload whose client is waited for; no byte of the client would show that.
        receiver.signal.addEventListener('abort', () => this.#fail(receiver.signal.reason), { once: true });
        this.#guard(() => this.#give());
      },
      (error: unknown) => this.#fail(error),
    );
  }

  #fieldsDue(): void {
    if (!this.#judged) this.#fail(tooSlow());
  }

  #acquire(permits: FormPermits): void {
    this.#releasePermit = permits.acquire(this.#exchange.address, (error) => this.#fail(error));
  }

  #release(): void {
    this.#releasePermit?.();
    this.#releasePermit = undefined;
  }

  #stalled(stalled: boolean): void {
    // An unproven form has its permit already, for a time that is bounded anyway.
    if (!this.#judged) return;
    if (!stalled) this.#release();
    else if (this.#releasePermit === undefined) this.#acquire(this.#permits.stalled);
  }

  #onFile(name: string | undefined, stream: Readable, info: busboy.FileInfo): void {
    // The parser destroys the stream with an error when the form ends early; the form's own error says it
    // all.
    stream.on('error', () => {});
    if (this.#hasFile) throw fileNotLast();
    if (name === undefined) throw malformedForm('A part of the form has no name.');
    if (name !== 'file') throw invalid('form_field_unknown', 'The file belongs in the field named file.');
    if (!info.filename) throw invalid('file_name_missing', 'The file part has no file name.');
    if (!PLAIN_ENCODINGS.has(info.encoding))
      throw malformedForm('A part of the form has a transfer encoding.');
    this.#hasFile = true;
    // The parser's part of the file is dropped: its bytes are taken from the form itself.
    stream.resume();
    const came = this.#envelope.fileStarts(this.#fields.size + 1);
    // A form that lacks fields is refused for its fields, before its file is looked at.
    if (!this.#judged) this.#judge();
    const { file, rest } = this.#cutter.push(came);
    this.#take(file);
    if (rest === undefined) return;
    // The parser has all that came; it finds the delimiter by itself.
    this.#fileEnded = true;
    this.#envelope.fileEnded(rest);
  }

  /**
   * Takes bytes behind the file's head that the parser has not got, and gives it what is not of the file. Where
   * it holds the beginning of a delimiter back, a whole one follows: the two make no other one, as there is one
   * CR in it.
   */
  #cut(chunk: Buffer): void {
    const { file, rest } = this.#cutter.push(chunk);
    this.#take(file);
    if (rest === undefined) return;
    this.#fileEnded = true;
    this.#pass(rest);
  }

  /** Passes on what is behind the file. */
  #pass(bytes: Buffer): void {
    this.#envelope.fileEnded(bytes);
    this.#parse(bytes);
  }

  #take(file: Buffer): void {
    if (file.length === 0) return;
    this.#pieces.push(file);
    this.#give();
  }

  /** Gives the receiver what it has room for, then ends the upload where the form is complete. */
  #give(): void {
    const receiver = this.#receiver;
    while (receiver !== undefined && !this.#receiverFull && this.#pieces.length > 0) {
      const taken = receiver.write(this.#pieces.shift()!);
      if (taken === undefined) continue;
      this.#receiverFull = true;
      taken.then(
        () => {
          this.#receiverFull = false;
          this.#guard(() => this.#give());
        },
        (error: unknown) => this.#fail(error),
      );
    }
    this.#setPace();
    if (!this.#complete || receiver === undefined || this.#receiverFull) return;
    receiver.finish().then(
      (stored) => {
        if (this.#ended) return;
        this.#end();
        this.#resolve(stored);
      },
      (error: unknown) => this.#fail(error),
    );
  }

  /** The parser has read the closing boundary. The file's last bytes may still wait for the receiver. */
  #onFinish(): void {
    this.#guard(() => {
      if (!this.#hasFile) throw invalid('file_missing', 'The form holds no file.');
      this.#envelope.checkEnd();
      this.#complete = true;
      this.#give();
    });
  }

  #guard(step: () => void): void {
    if (this.#ended) return;
    try {
      step();
    } catch (error) {
      this.#fail(error);
    }
  }

  #fail(error: unknown): void {
    if (this.#ended) return;
    this.#end();
    this.#receiver?.abort();
    this.#reject(error);
  }

  /** Lets go of the request: the response can then read the rest of the body. */
  #end(): void {
    this.#ended = true;
    clearTimeout(this.#fieldsTimer);
    this.#release();
    this.#pace.stop();
    this.#exchange.abortBody = undefined;
    this.#exchange.request.off('data', this.#onData).off('end', this.#onEnd).off('close', this.#onClose);
    this.#parser.destroy();
  }
}

function invalid(reason: ErrorReason, message: string): DomainError {
  return new DomainError('invalid_request', message, { reason });
}

/** Rule 7.4: the file comes last, and there is one. */
function fileNotLast(): DomainError {
  return invalid('file_not_last', 'Something follows the file; it must be the last part of the form.');
}
