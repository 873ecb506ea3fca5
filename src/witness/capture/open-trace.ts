import { randomBytes } from 'node:crypto';
import { open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { defined } from '../../core/domain/defined.js';
import {
  type Channel,
  type ChannelSupport,
  TRACE_LIMITS,
  TRACE_VERSION,
  type TraceEvent,
  TraceFault,
  type TraceHeader,
  TraceLimitFault,
} from '../domain/trace.js';
import { TraceReferences } from '../domain/trace-references.js';
import { headOfHeader, headOfSegment, signedMessage } from '../trace/trace-chain.js';
import { encodeTraceEvent, MAX_EVENT_BYTES } from '../trace/trace-events.js';
import {
  encodeHeaderFrame,
  encodeSegmentFrame,
  encodeSignatureFrame,
  MAX_SIGNATURE_FRAME_BYTES,
} from '../trace/trace-frames.js';
import { encodeTraceHeader } from '../trace/trace-header.js';
import { CaptureError, TraceFullError } from './capture-error.js';
import { type DeviceKey, syncDirectory } from './device-key.js';

/** The most bytes of events that may wait for a flush. Beyond it, `append` fails. */
export const MAX_BUFFERED_BYTES = 8_388_608;
/**
 * The bytes kept free for the signatures of a last flush and of the seal, so that a full trace can be sealed.
 */
const RESERVED_BYTES = 2 * MAX_SIGNATURE_FRAME_BYTES;
/** The maximum size of a segment frame's head in bytes. */
const SEGMENT_HEAD_BYTES = 32;

/** The output of a trace. Writes run one after the other. */
export interface TraceSink {
  /** Writes all bytes, or fails. */
  write(bytes: Uint8Array): Promise<void>;
  /** Resolves when all written bytes survive a power cut. */
  sync(): Promise<void>;
  close(): Promise<void>;
}

export interface TraceOptions {
  /** The path of a new file, or a sink. */
  readonly to: string | TraceSink;
  readonly key: DeviceKey;
  readonly header: {
    readonly adapter: string;
    readonly adapterVersion: string;
    readonly dawVersion?: string | undefined;
    /** The unix seconds at session clock 0. Default: now. */
    readonly startedAt?: number | undefined;
    readonly simulated?: boolean | undefined;
    readonly channels: Readonly<Record<Channel, ChannelSupport>>;
    /** The id of the trace, 16 bytes in lower-case hex. Default: random. */
    readonly traceId?: string | undefined;
  };
}

/**
 * Starts a trace and writes its header.
 * @throws CaptureError for an invalid header. The file system's error if the file exists
 */
export async function openTrace({ to, key, header }: TraceOptions): Promise<TraceWriter> {
  const whole: TraceHeader = defined({
    version: TRACE_VERSION,
    traceId: header.traceId ?? randomBytes(16).toString('hex'),
    adapter: header.adapter,
    adapterVersion: header.adapterVersion,
    dawVersion: header.dawVersion,
    startedAt: header.startedAt ?? Math.floor(Date.now() / 1000),
    simulated: header.simulated ?? false,
    channels: header.channels,
    algorithm: key.algorithm,
    publicKey: key.publicKey,
  });
  const bytes = speakClearly(() => encodeTraceHeader(whole));
  const frame = encodeHeaderFrame(bytes);
  const sink = typeof to === 'string' ? await createFile(to) : to;
  try {
    await sink.write(frame);
    await sink.sync();
  } catch (error) {
    await sink.close().catch(() => {});
    throw error;
  }
  return new TraceWriter(sink, key, headOfHeader(bytes), frame.length, whole);
}

async function createFile(file: string): Promise<TraceSink> {
  const handle = await open(file, 'wx', 0o600);
  await syncDirectory(dirname(file));
  return {
    async write(bytes) {
      let at = 0;
      while (at < bytes.length) at += (await handle.write(bytes, at)).bytesWritten;
    },
    sync: () => handle.datasync(),
    close: () => handle.close(),
  };
}

type State = 'open' | 'sealed' | 'closed' | 'failed';

/**
 * Writes a trace. Events wait in memory until `flush` signs and stores them. If the process is killed, the
 * flushed part is a valid trace that ends early.
 */
export class TraceWriter {
  readonly #sink: TraceSink;
  readonly #key: DeviceKey;
  readonly #references = new TraceReferences();
  readonly #body = Buffer.allocUnsafeSlow(TRACE_LIMITS.segmentBytes);
  /** The frames of complete segments that wait for a flush. */
  #frames: Buffer[] = [];
  #bodyBytes = 0;
  #bufferedBytes = 0;
  #head: Buffer;
  #bytes: number;
  #segments = 0;
  #signedSegments = 0;
  #signatures = 0;
  #events = 0;
  #segmentStart = 0;
  #state: State = 'open';
  /** The end of the last requested write. Writes run one after the other. */
  #writing: Promise<void> = Promise.resolve();

  constructor(
    sink: TraceSink,
    key: DeviceKey,
    head: Buffer,
    bytes: number,
    readonly header: TraceHeader,
  ) {
    this.#sink = sink;
    this.#key = key;
    this.#head = head;
    this.#bytes = bytes;
  }

  /** The number of bytes that wait for a flush. */
  get bufferedBytes(): number {
    return this.#bufferedBytes + this.#bodyBytes;
  }

  /** The number of appended events. */
  get events(): number {
    return this.#events;
  }

  /**
   * Appends an event to the buffer without writing it.
   * @throws CaptureError for an unknown event or an unknown reference, or for a full buffer (flush, then append
   * again). TraceFullError for a full trace (seal it). The trace is then unchanged
   */
  append(event: TraceEvent): void {
    this.#checkOpen();
    if (this.#bodyBytes + MAX_EVENT_BYTES > TRACE_LIMITS.segmentBytes) this.#closeSegment();
    if (this.bufferedBytes + MAX_EVENT_BYTES > MAX_BUFFERED_BYTES)
      throw new CaptureError('the buffer is full: flush before you append more');
    if (
      this.#bytes + this.bufferedBytes + MAX_EVENT_BYTES + SEGMENT_HEAD_BYTES + RESERVED_BYTES >
        TRACE_LIMITS.traceBytes ||
      this.#segments >= TRACE_LIMITS.segments ||
      this.#signatures + 2 > TRACE_LIMITS.signatures
    )
      throw new TraceFullError('the trace is full: seal it');
    this.#bodyBytes = speakClearly(() => {
      const end = encodeTraceEvent(event, this.#body, this.#bodyBytes);
      this.#references.take(event);
      return end;
    });
    this.#events += 1;
  }

  /** Signs and stores all events appended before the call. Resolves when they survive a power cut. */
  flush(): Promise<void> {
    this.#checkOpen();
    this.#closeSegment();
    return this.#segments === this.#signedSegments ? this.#writing : this.#write(this.#signed(false));
  }

  /** Flushes, signs the end of the trace and closes it. */
  seal(): Promise<void> {
    this.#checkOpen();
    this.#closeSegment();
    const bytes = this.#signed(true);
    this.#state = 'sealed';
    return this.#write(bytes).then(() => this.#sink.close());
  }

  /** Closes the trace without a seal. Events that were not flushed are lost. */
  async close(): Promise<void> {
    if (this.#state === 'sealed' || this.#state === 'closed') return;
    this.#state = 'closed';
    await this.#writing.catch(() => {});
    await this.#sink.close();
  }

  #checkOpen(): void {
    if (this.#state === 'failed')
      throw new CaptureError('an earlier write failed: the trace ends before that write');
    if (this.#state !== 'open') throw new CaptureError(`the trace is ${this.#state}`);
  }

  #closeSegment(): void {
    if (this.#bodyBytes === 0) return;
    const segment = {
      sequence: this.#segments,
      firstEvent: this.#segmentStart,
      body: this.#body.subarray(0, this.#bodyBytes),
    };
    this.#head = headOfSegment(this.#head, segment);
    const frame = encodeSegmentFrame(segment.sequence, segment.firstEvent, segment.body);
    this.#frames.push(frame);
    this.#bufferedBytes += frame.length;
    this.#segments += 1;
    this.#segmentStart = this.#events;
    this.#bodyBytes = 0;
  }

  /** Returns the bytes of the waiting segments and of a signature over everything so far. */
  #signed(final: boolean): Buffer {
    const signature = this.#key.sign(signedMessage(final, this.#segments, this.#head));
    const bytes = Buffer.concat([
      ...this.#frames,
      encodeSignatureFrame(final, this.#segments, this.#head, signature),
    ]);
    this.#frames = [];
    this.#bufferedBytes = 0;
    this.#bytes += bytes.length;
    this.#signedSegments = this.#segments;
    this.#signatures += 1;
    return bytes;
  }

  #write(bytes: Buffer): Promise<void> {
    const write = async () => {
      if (this.#state === 'failed')
        throw new CaptureError('an earlier write failed: the trace ends before that write');
      try {
        await this.#sink.write(bytes);
        await this.#sink.sync();
      } catch (error) {
        // A part of the bytes may have been written, so nothing may follow.
        this.#state = 'failed';
        throw error;
      }
    };
    this.#writing = this.#writing.then(write, write);
    // The returned promise reports the failure. This handler prevents an unhandled rejection.
    this.#writing.catch(() => {});
    return this.#writing;
  }
}

function speakClearly<Result>(step: () => Result): Result {
  try {
    return step();
  } catch (error) {
    if (!(error instanceof TraceFault)) throw error;
    const Refused = error instanceof TraceLimitFault ? TraceFullError : CaptureError;
    throw new Refused(error.message, { cause: error });
  }
}
