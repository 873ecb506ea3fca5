import type { Hash } from 'node:crypto';
import type { Readable } from 'node:stream';
import busboy from 'busboy';
import { shownName } from '../../../core/domain/display-name.js';
import { DomainError, type ErrorReason } from '../../../core/domain/errors.js';
import { type ContentDigest, digestHash } from '../../domain/message-signature.js';
import type { FileReceiver } from '../../operations/uploads/receive-upload.js';
import { SIGNED_FIELDS } from '../../operations/uploads/upload-policy.js';
import type { Exchange } from '../exchange.js';
import { ChunkSizes, chunksTooSmall } from '../response/chunk-sizes.js';
import { bodyNotSigned, left, tooSlow } from './body-reader.js';
import { ClientPace } from './client-pace.js';
import type { FormPermits } from './form-permits.js';
import {
  FormFraming,
  type FormPiece,
  formBoundary,
  malformedForm,
  notFormData,
} from './multipart-framing.js';

const MAX_FIELDS = 16;
/** The maximum length of a field name, in characters. busboy does not enforce its own limit on names. */
const MAX_NAME = 64;
const MAX_VALUE = 8192;
/** The most bytes before the first byte of the file: preamble, boundaries, part headers and signed fields. */
const MAX_PREFIX = 65_536;
/**
 * The bytes of a part's content with which the multipart parser certainly reports whether the part is a file.
 * It first reads past a possible boundary, which has at most 74 bytes.
 */
const TELLING_BYTES = 128;
/**
 * The transfer encodings that leave the bytes of a part as they are. Base64 or quoted-printable would be
 * stored undecoded.
 */
const PLAIN_ENCODINGS: ReadonlySet<string> = new Set(['7bit', '8bit', 'binary']);

/** The permits of forms that authenticate themselves, which other forms can take over. */
export interface UploadPermits {
  /** The permits of forms whose sender is unauthenticated, because the signed fields have not arrived yet. */
  readonly unproven: FormPermits;
  /** The permits of authenticated forms that send nothing. */
  readonly stalled: FormPermits;
}

/** The rules of a form whose sender was authenticated before. The form has no fields. */
export interface KeyedForm {
  readonly stalled: FormPermits;
  /** The most bytes of the optional file `sidecar`, which precedes the file. */
  readonly sidecarBytes: number;
  /** The digest of the whole form that the call's signature covers. */
  readonly digest: ContentDigest | undefined;
}

/** Starts to receive the file of a form. Called before the first byte of the file. */
type OpenFile<Result> = (
  fields: ReadonlyMap<string, string>,
  sidecar: Uint8Array | undefined,
) => Promise<FileReceiver<Result>>;

/**
 * Streams a posted form into a receiver. The form has the signed fields first, then exactly one file, named
 * `file`, with a file name. A form of an authenticated sender has an optional sidecar instead of the fields. The
 * multipart parser reads the form without the bytes of files. The file's bytes are passed straight to the receiver
 * and never kept. A full receiver pauses the socket.
 * @param rules the form holds an `unproven` permit until its signed fields have arrived, and a `stalled`
 * one while it sends nothing
 * @param open checks the fields and locks the slot. Called as soon as the signed fields are complete, before
 * the file has begun. Without signed fields it is called when the file begins.
 * @throws DomainError for every failure of the form, the caller's pace or the receiver. The receiver is
 * aborted.
 */
export function receiveForm<Result>(
  exchange: Exchange,
  rules: UploadPermits | KeyedForm,
  open: OpenFile<Result>,
): Promise<Result> {
  const boundary = formBoundary(exchange.request.headers['content-type']);
  return new Promise((resolve, reject) =>
    new FormReader(exchange, boundary, rules, open, resolve, reject).start(),
  );
}

/**
 * How far a form has been read. `sidecar`: the current part is the sidecar. `judged`: the signed fields are complete,
 * and their check has begun. `complete`: the form was read to its end and is valid.
 */
type FormState = 'fields' | 'sidecar' | 'judged' | 'file' | 'complete' | 'ended';

class FormReader<Result> {
  readonly #exchange: Exchange;
  readonly #stalledPermits: FormPermits;
  /** The permits of senders that must authenticate themselves in the form. */
  readonly #unproven: FormPermits | undefined;
  readonly #keyed: KeyedForm | undefined;
  readonly #open: OpenFile<Result>;
  readonly #resolve: (result: Result) => void;
  readonly #reject: (error: unknown) => void;
  /** The digest of the bytes so far, if the signature of the call covers it. */
  readonly #hash: Hash | undefined;
  readonly #framing: FormFraming;
  readonly #sizes = new ChunkSizes();
  readonly #parser: busboy.Busboy;
  readonly #pace: ClientPace;
  readonly #fields = new Map<string, string>();
  /** The content of the current part. It goes to the receiver if the parser reports a file. */
  #content: Buffer[] = [];
  #prefixBytes = 0;
  #sidecar: Buffer[] | undefined;
  #state: FormState = 'fields';
  /** The bytes of the file that the receiver has no room for yet. */
  readonly #pieces: Buffer[] = [];
  #receiver: FileReceiver<Result> | undefined;
  /** True while the receiver has not accepted all of the last piece. */
  #receiverFull = false;
  #releasePermit: (() => void) | undefined;
  #fieldsTimer: NodeJS.Timeout | undefined;

  constructor(
    exchange: Exchange,
    boundary: string,
    rules: UploadPermits | KeyedForm,
    open: OpenFile<Result>,
    resolve: (result: Result) => void,
    reject: (error: unknown) => void,
  ) {
    this.#exchange = exchange;
    this.#stalledPermits = rules.stalled;
    if ('unproven' in rules) this.#unproven = rules.unproven;
    else this.#keyed = rules;
    const digest = this.#keyed?.digest;
    if (digest !== undefined) this.#hash = digestHash(digest);
    this.#open = open;
    this.#resolve = resolve;
    this.#reject = reject;
    this.#framing = new FormFraming(boundary);
    // The parser gets the boundary of the framing, not the header, so that both use the same boundary.
    this.#parser = busboy({
      headers: { 'content-type': `multipart/form-data; boundary="${boundary}"` },
      defParamCharset: 'utf8',
      limits: { fields: MAX_FIELDS, fieldSize: MAX_VALUE + 1, parts: MAX_FIELDS + 2 },
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
      // For a malformed part head busboy emits `error` and never `close`.
      .on('error', () => this.#fail(malformedForm('The headers of a part are malformed.')))
      .on('drain', () => this.#setPace())
      .on('finish', () => this.#onFinish());
    request
      .on('data', this.#onData)
      .on('end', this.#onEnd)
      .on('close', this.#onClose)
      .on('error', this.#onClose);
    this.#exchange.message.readBy((error) => this.#fail(error));
    // The caller may have left while its key was checked. Its request then reports nothing any more.
    if (this.#exchange.gone.aborted) return this.#fail(left());
    if (this.#unproven !== undefined) {
      // A form without its signed fields holds a permit that other forms can take.
      this.#acquire(this.#unproven);
      // If this process was too busy to read, the bytes that arrived meanwhile must be read first. Node runs
      // timers before socket reads.
      this.#fieldsTimer = setTimeout(() => setImmediate(() => this.#fieldsDue()), limits.fieldsMs);
    }
    this.#exchange.message.sendContinue();
  }

  readonly #onData = (chunk: Buffer): void => {
    this.#exchange.log.bytesIn += chunk.length;
    this.#pace.received(chunk.length);
    this.#hash?.update(chunk);
    this.#guard(() => {
      if (!this.#sizes.count(chunk.length)) throw chunksTooSmall();
      if (this.#readsPrefix) this.#prefixBytes += chunk.length;
      for (const piece of this.#framing.push(chunk)) {
        this.#pass(piece);
        if (this.#state === 'ended') return;
      }
      if (!this.#readsPrefix) return;
      if (this.#prefixBytes > MAX_PREFIX)
        throw invalid('form_field_too_large', 'The bytes before the file are too many.');
      // Pays for the fields until the file starts.
      this.#exchange.lease.growTo(this.#prefixBytes);
    });
  };

  /** Returns true until the file begins. */
  get #readsPrefix(): boolean {
    return this.#state === 'fields' || this.#state === 'sidecar' || this.#state === 'judged';
  }

  /** Passes the parser the form without the file's content. */
  #pass({ kind, bytes }: FormPiece): void {
    if (kind === 'content') return this.#passContent(bytes);
    if (kind === 'head') this.#content = [];
    this.#parse(bytes);
    // The parser may report an empty file only now.
    if (kind === 'boundary' && this.#state === 'file') throw fileNotLast();
    if (kind === 'head' || !this.#readsPrefix) return;
    if (this.#state === 'sidecar') this.#state = 'fields';
    const ended = kind === 'boundary' ? this.#framing.parts - 1 : this.#framing.parts;
    const known = this.#fields.size + (this.#sidecar === undefined ? 0 : 1);
    if (known !== ended) throw notFormData();
  }

  #passContent(bytes: Buffer): void {
    if (this.#state === 'file') return this.#take(bytes);
    if (this.#state === 'sidecar') return this.#keep(bytes);
    const state = this.#state;
    this.#content.push(bytes);
    this.#parse(bytes.subarray(0, TELLING_BYTES));
    // The part is a field if the parser has not reported a file.
    if (this.#state === state && bytes.length > TELLING_BYTES) this.#parse(bytes.subarray(TELLING_BYTES));
  }

  /** Keeps a copy of bytes of the sidecar, because a subarray would keep the whole chunk in memory. */
  #keep(bytes: Buffer): void {
    this.#sidecar!.push(Buffer.from(bytes));
    const { sidecarBytes } = this.#keyed!;
    if (sizeOf(this.#sidecar!) > sidecarBytes)
      throw invalid('form_field_too_large', `The sidecar is larger than ${sidecarBytes} bytes.`);
  }

  #parse(bytes: Buffer): void {
    if (!this.#parser.write(bytes)) this.#setPace();
  }

  /** Resumes or pauses the request, depending on the free room. */
  #setPace(): void {
    const { request } = this.#exchange;
    const holding = this.#parser.writableNeedDrain || this.#receiverFull || this.#pieces.length > 0;
    if (this.#state === 'ended' || holding === request.isPaused()) return;
    if (holding) {
      request.pause();
      this.#pace.holding();
    } else {
      this.#pace.waiting();
      request.resume();
    }
  }

  readonly #onEnd = (): void => {
    // The caller has sent everything, so only the service can be slow now.
    this.#pace.stop();
    this.#guard(() => {
      this.#framing.end();
      if (this.#hash?.digest().equals(this.#keyed!.digest!.digest) === false) throw bodyNotSigned();
      this.#parser.end();
    });
  };

  readonly #onClose = (): void => {
    if (!this.#exchange.request.complete) this.#fail(left());
  };

  #onField(name: string | undefined, value: string | undefined, info: busboy.FieldInfo): void {
    // busboy passes `undefined` for an unknown character set.
    if (value === undefined) throw malformedForm('A part of the form has an unknown character set.');
    // busboy passes `undefined` for a part without a name.
    if (name === undefined) throw malformedForm('A part of the form has no name.');
    // A file part without a file name arrives as a field.
    if (name === 'file') throw invalid('file_name_missing', 'The file part has no file name.');
    if (name.length > MAX_NAME) throw invalid('form_field_too_large', 'A field name is too long.');
    if (info.valueTruncated || value.length > MAX_VALUE)
      throw invalid('form_field_too_large', `The field ${shownName(name)} of the form is too large.`);
    if (!PLAIN_ENCODINGS.has(info.encoding))
      throw malformedForm('A part of the form uses an unsupported transfer encoding.');
    if (this.#fields.has(name))
      throw invalid('form_field_duplicated', `The field ${shownName(name)} of the form is repeated.`);
    if (this.#keyed !== undefined && name === 'sidecar')
      throw invalid('file_name_missing', 'The sidecar part has no file name.');
    if (this.#state !== 'fields' || this.#keyed !== undefined) throw this.#unknownField(name);
    this.#fields.set(name, value);
    if (!SIGNED_FIELDS.every((signed) => this.#fields.has(signed))) return;
    this.#state = 'judged';
    this.#judge();
  }

  /** Starts the check of the fields and the locking of the slot, once. */
  #judge(): void {
    clearTimeout(this.#fieldsTimer);
    this.#release();
    this.#open(this.#fields, this.#sidecar && Buffer.concat(this.#sidecar)).then(
      (receiver) => {
        if (this.#state === 'ended') return receiver.abort();
        this.#receiver = receiver;
        if (receiver.largeBytes !== undefined) this.#pace.allowLarge(receiver.largeBytes);
        // The engine may abort an upload while the service waits for its client. Without this listener only
        // the client's next byte would reveal the abort.
        receiver.signal.addEventListener('abort', () => this.#fail(receiver.signal.reason), { once: true });
        this.#guard(() => this.#give());
      },
      (error: unknown) => this.#fail(error),
    );
  }

  #fieldsDue(): void {
    if (this.#state === 'fields') this.#fail(tooSlow());
  }

  #acquire(permits: FormPermits): void {
    this.#releasePermit = permits.acquire(this.#exchange.address, (error) => this.#fail(error));
  }

  #release(): void {
    this.#releasePermit?.();
    this.#releasePermit = undefined;
  }

  #stalled(stalled: boolean): void {
    // A form that is not authenticated already has a permit, and its time is limited anyway.
    if (this.#unproven !== undefined && this.#state === 'fields') return;
    if (!stalled) this.#release();
    else if (this.#releasePermit === undefined) this.#acquire(this.#stalledPermits);
  }

  #onFile(name: string | undefined, stream: Readable, info: busboy.FileInfo): void {
    // The parser destroys the stream with an error when the form ends early. The form's own error has the
    // cause.
    stream.on('error', () => {});
    if (name === undefined) throw malformedForm('A part of the form has no name.');
    const isSidecar = this.#keyed !== undefined && name === 'sidecar';
    if (name !== 'file' && !isSidecar)
      throw invalid(
        'form_field_unknown',
        `The file is in the field ${shownName(name)}. It must be in the field \`file\`.`,
      );
    if (!info.filename) throw invalid('file_name_missing', `The ${name} part has no file name.`);
    if (!PLAIN_ENCODINGS.has(info.encoding))
      throw malformedForm('A part of the form uses an unsupported transfer encoding.');
    // The parser's copy of the file's first bytes is dropped.
    stream.resume();
    if (isSidecar) return this.#onSidecar();
    const isJudged = this.#state === 'judged';
    this.#state = 'file';
    // The lease pays for a sidecar until the call ends.
    if (this.#sidecar === undefined) this.#exchange.lease.end();
    else this.#exchange.lease.growTo(sizeOf(this.#sidecar));
    // Report missing fields before any problem of the file.
    if (!isJudged) this.#judge();
    for (const bytes of this.#content) this.#take(bytes);
    this.#content = [];
  }

  #onSidecar(): void {
    if (this.#sidecar !== undefined)
      throw invalid('form_field_duplicated', 'The field `sidecar` of the form is repeated.');
    this.#sidecar = [];
    this.#state = 'sidecar';
    for (const bytes of this.#content) this.#keep(bytes);
    this.#content = [];
  }

  #take(file: Buffer): void {
    this.#pieces.push(file);
    this.#give();
  }

  /** Passes the receiver the bytes that it has room for. Finishes the upload when the form is complete. */
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
    if (this.#state !== 'complete' || receiver === undefined || this.#receiverFull) return;
    receiver.finish().then(
      (result) => {
        if (this.#state === 'ended') return;
        this.#end();
        this.#resolve(result);
      },
      (error: unknown) => this.#fail(error),
    );
  }

  /** Handles the closing boundary. The file's last bytes may still wait for the receiver. */
  #onFinish(): void {
    this.#guard(() => {
      if (this.#state !== 'file') throw invalid('file_missing', 'The form contains no file.');
      this.#state = 'complete';
      this.#give();
    });
  }

  #unknownField(name: string): DomainError {
    const rest =
      this.#keyed === undefined
        ? 'which does not belong to the upload slot.'
        : 'but it can have only the files `sidecar` and `file`.';
    return invalid('form_field_unknown', `The form has the field ${shownName(name)}, ${rest}`);
  }

  #guard(step: () => void): void {
    if (this.#state === 'ended') return;
    try {
      step();
    } catch (error) {
      this.#fail(error);
    }
  }

  #fail(error: unknown): void {
    if (this.#state === 'ended') return;
    this.#end();
    this.#receiver?.abort();
    this.#reject(error);
  }

  /** Stops reading the request, so that the response can read the rest of the body. */
  #end(): void {
    this.#state = 'ended';
    clearTimeout(this.#fieldsTimer);
    this.#release();
    this.#pace.stop();
    this.#exchange.message.readBy(undefined);
    this.#exchange.request.off('data', this.#onData).off('end', this.#onEnd).off('close', this.#onClose);
    this.#parser.destroy();
  }
}

function invalid(reason: ErrorReason, message: string): DomainError {
  return new DomainError('invalid_request', message, { reason });
}

function sizeOf(pieces: readonly Buffer[]): number {
  return pieces.reduce((size, { length }) => size + length, 0);
}

/** Returns the error of rule 7.4: the form has exactly one file, as its last part. */
function fileNotLast(): DomainError {
  return invalid('file_not_last', 'The form continues after the file, which must be its last part.');
}
