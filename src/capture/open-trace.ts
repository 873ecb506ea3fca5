import { randomBytes } from 'node:crypto';
import { open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { headOfHeader, headOfSegment, signedMessage } from '../codec/trace-chain.js';
import { encodeTraceEvent, MAX_EVENT_BYTES } from '../codec/trace-events.js';
import {
  encodeHeaderFrame,
  encodeSegmentFrame,
  encodeSignatureFrame,
  MAX_SIGNATURE_FRAME_BYTES,
} from '../codec/trace-frames.js';
import { encodeTraceHeader } from '../codec/trace-header.js';
import { defined } from '../domain/defined.js';
import {
  type Channel,
  type ChannelSupport,
  TRACE_LIMITS,
  TRACE_VERSION,
  type TraceEvent,
  TraceFault,
  type TraceHeader,
} from '../domain/trace.js';
import { TraceReferences } from '../domain/trace-references.js';
import { CaptureError } from './capture-error.js';
import { type DeviceKey, syncDirectory } from './device-key.js';

/** Bytes of events that may wait for a flush. */
export const MAX_BUFFERED_BYTES = 8_388_608;
/** Bytes that stay free, so that a full trace can still be sealed: the signatures of a last flush and of the seal. */
const RESERVED_BYTES = 2 * MAX_SIGNATURE_FRAME_BYTES;
/** Heads of a segment's frame at most. */
const SEGMENT_HEAD_BYTES = 32;

/** Place to which a trace is written, one write after the other. */
export interface TraceSink {
  /** Takes all of the bytes, or fails. */
  write(bytes: Uint8Array): Promise<void>;
  /** Resolves once what was written survives a power cut. */
  sync(): Promise<void>;
  close(): Promise<void>;
}

export interface TraceOptions {
  /** Path of a new file, or a sink. */
  readonly to: string | TraceSink;
  readonly key: DeviceKey;
  readonly header: {
    readonly adapter: string;
    readonly adapterVersion: string;
    readonly dawVersion?: string | undefined;
    /** Unix seconds at which the session clock is 0; now, unless given. */
    readonly startedAt?: number | undefined;
    readonly simulated?: boolean | undefined;
    readonly channels: Readonly<Record<Channel, ChannelSupport>>;
    /** 16 bytes in lower-case hex; random, unless given. */
    readonly traceId?: string | undefined;
  };
}

/**
 * Begins a trace and writes its header.
 * @throws CaptureError where the header is not what the format demands; the error of the file system where the file
 * is there already
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
 * Writer of a trace. Events wait in memory until `flush`, which signs and stores them: whenever the process is killed,
 * what was flushed is a valid trace that ends early.
 */
export class TraceWriter {
  readonly #sink: TraceSink;
  readonly #key: DeviceKey;
  readonly #references = new TraceReferences();
  readonly #body = Buffer.allocUnsafeSlow(TRACE_LIMITS.segmentBytes);
  /** Frames of whole segments that wait for a flush. */
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
  /** End of the last write that was asked for: writes go one after the other. */
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

  /** Bytes that wait for a flush. */
  get bufferedBytes(): number {
    return this.#bufferedBytes + this.#bodyBytes;
  }

  /** Events that were appended. */
  get events(): number {
    return this.#events;
  }

  /**
   * Takes an event; nothing is written yet.
   * @throws CaptureError where the event is not in the vocabulary or refers to what is not there, where the buffer is
   * full (flush, then append it again) or the trace is (seal it). The trace is then as it was
   */
  append(event: TraceEvent): void {
    this.#checkOpen();
    if (this.#bodyBytes + MAX_EVENT_BYTES > TRACE_LIMITS.segmentBytes) this.#closeSegment();
    if (this.bufferedBytes + MAX_EVENT_BYTES > MAX_BUFFERED_BYTES)
      throw new CaptureError('the buffer is full: flush before more is appended');
    if (
      this.#bytes + this.bufferedBytes + MAX_EVENT_BYTES + SEGMENT_HEAD_BYTES + RESERVED_BYTES >
        TRACE_LIMITS.traceBytes ||
      this.#segments >= TRACE_LIMITS.segments ||
      this.#signatures + 2 > TRACE_LIMITS.signatures
    )
      throw new CaptureError('the trace is full: seal it');
    this.#bodyBytes = speakClearly(() => {
      const end = encodeTraceEvent(event, this.#body, this.#bodyBytes);
      this.#references.take(event);
      return end;
    });
    this.#events += 1;
  }

  /** Signs and stores what was appended before the call; it resolves once that survives a power cut. */
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

  /** Closes the trace without a seal; what was not flushed is lost. */
  async close(): Promise<void> {
    if (this.#state === 'sealed' || this.#state === 'closed') return;
    this.#state = 'closed';
    await this.#writing.catch(() => {});
    await this.#sink.close();
  }

  #checkOpen(): void {
    if (this.#state === 'failed') throw new CaptureError('an earlier write failed: the trace ends before it');
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

  /** Bytes of the waiting segments and of a signature over all so far. */
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
        throw new CaptureError('an earlier write failed: the trace ends before it');
      try {
        await this.#sink.write(bytes);
        await this.#sink.sync();
      } catch (error) {
        // Part of the bytes may be there: nothing can follow them.
        this.#state = 'failed';
        throw error;
      }
    };
    this.#writing = this.#writing.then(write, write);
    // Whoever asked for the write hears of its failure.
    this.#writing.catch(() => {});
    return this.#writing;
  }
}

function speakClearly<Result>(step: () => Result): Result {
  try {
    return step();
  } catch (error) {
    throw error instanceof TraceFault ? new CaptureError(error.message, { cause: error }) : error;
  }
}
