import { createHash } from 'node:crypto';
import { DomainError } from '../../core/domain/errors.js';
import {
  type DeviceId,
  TRACE_LIMITS,
  type TraceEvent,
  TraceFault,
  type TraceFinding,
  type TraceHeader,
} from '../domain/trace.js';
import { TraceReferences } from '../domain/trace-references.js';
import {
  deviceIdOf,
  headOfHeader,
  headOfSegment,
  readDevicePublicKey,
  signedMessage,
  verifyMessage,
} from './trace-chain.js';
import { decodeTraceEvents, type IdOf } from './trace-events.js';
import { FrameSplitter, type TraceFrame } from './trace-frames.js';
import { decodeTraceHeader } from './trace-header.js';
import { WORK, WorkBudget } from './work-budget.js';

/** Opens a stream of a trace's bytes from the start. It is called once for each pass. */
export type OpenTrace = () => AsyncIterable<Uint8Array>;

/** A trace whose frames, chain and signatures were checked. */
export interface ReadTrace {
  readonly header: TraceHeader;
  readonly deviceId: DeviceId;
  /** The SHA-256 of the whole file in lower-case hex. */
  readonly sha256: string;
  readonly bytes: number;
  /** The number of valid signatures. Without one, nothing in the trace is evidence, including the header. */
  readonly signatures: number;
  /** True when the last valid signature is the final one. */
  readonly sealed: boolean;
  /** The number of segments that a valid signature covers. */
  readonly segments: number;
  /** The findings of the file. `trace_time_backwards` is added after `events` has ended. */
  readonly findings: readonly TraceFinding[];
  /**
   * Yields the signed events in batches, one for each segment. Each event is decoded strictly, and its
   * references are known. Times are as recorded. Each call reads the file again.
   * @param idOf maps ids to other numbers
   * @throws DomainError `unprocessable` when the signed part is malformed, or the budget is spent
   */
  events(idOf?: IdOf): AsyncGenerator<readonly TraceEvent[], void, undefined>;
}

/**
 * Reads a trace for the first time: frames, chain, signatures, and the last position that a device signature
 * covers. A fault becomes a finding, and evidence ends at the last valid signature before the fault. Memory
 * is bounded by one segment.
 * @param limits the most segments and signatures; a caller gives fewer only to reach a limit quickly
 * @throws DomainError `unprocessable` for a missing header, an unknown version or an exceeded limit
 */
export async function readTrace(
  open: OpenTrace,
  budget = new WorkBudget(),
  limits: ChainLimits = TRACE_LIMITS,
): Promise<ReadTrace> {
  const digest = createHash('sha256');
  const splitter = new FrameSplitter();
  const chain = new ChainReader(budget, limits);
  let bytes = 0;
  for await (const chunk of open()) {
    bytes += chunk.length;
    if (bytes > TRACE_LIMITS.traceBytes) throw tooLarge('bytes');
    digest.update(chunk);
    if (chain.stopped) continue;
    for (const frame of splitter.push(chunk)) {
      chain.take(frame, splitter.end);
      if (chain.stopped) break;
    }
    if (splitter.damaged) chain.stop({ code: 'trace_damaged', values: { position: splitter.end } });
    if (chain.header === undefined && splitter.damaged) throw malformed('it does not start with a header');
  }
  if (chain.header === undefined) throw malformed('it does not start with a header');
  return new CheckedTrace(open, chain.header, chain, bytes, digest.digest('hex'), budget);
}

/** The most segments and signatures of a trace. */
type ChainLimits = Readonly<Record<'segments' | 'signatures', number>>;

/** The position up to which a valid signature covers the file. */
interface Signed {
  /** The offset in bytes of the end of the signature. */
  readonly end: number;
  readonly segments: number;
  readonly head: Buffer;
  readonly final: boolean;
}

class ChainReader {
  header: { readonly value: TraceHeader; readonly head: Buffer } | undefined;
  signed: Signed | undefined;
  signatures = 0;
  /** The first fault of the file. Nothing after it is read. */
  fault: TraceFinding | undefined;
  #key: ReturnType<typeof readDevicePublicKey>;
  #head: Buffer = Buffer.alloc(0);
  #segments = 0;
  #stopped = false;
  readonly #budget: WorkBudget;
  readonly #limits: ChainLimits;

  constructor(budget: WorkBudget, limits: ChainLimits) {
    this.#budget = budget;
    this.#limits = limits;
  }

  get stopped(): boolean {
    return this.#stopped;
  }

  /** Stops reading. Data after a seal needs no fault: `trace_unsigned_tail` already reports it. */
  stop(fault: TraceFinding): void {
    this.#stopped = true;
    if (this.signed?.final !== true) this.fault ??= fault;
  }

  take(frame: TraceFrame, end: number): void {
    if (this.header === undefined) {
      if (frame.kind !== 'header') throw malformed('it does not start with a header');
      this.#takeHeader(frame.bytes);
    } else if (frame.kind === 'header' || this.signed?.final === true)
      this.stop({ code: 'trace_damaged', values: { position: end } });
    else if (frame.kind === 'segment') this.#takeSegment(frame);
    else this.#takeSignature(frame, end);
  }

  #takeHeader(bytes: Buffer): void {
    const decoded = decodeTraceHeader(bytes);
    if ('fault' in decoded)
      throw decoded.fault === 'version_unknown'
        ? new DomainError('unprocessable', 'This service does not support the version of the trace.', {
            reason: 'trace_version_unknown',
          })
        : malformed(decoded.text);
    const { header } = decoded;
    this.#head = headOfHeader(bytes);
    this.#key = readDevicePublicKey(header.publicKey, header.algorithm);
    this.header = { value: header, head: this.#head };
  }

  #takeSegment(segment: TraceFrame & { kind: 'segment' }): void {
    if (segment.sequence !== this.#segments) {
      this.stop(gap(this.#segments, segment.sequence));
      return;
    }
    if (this.#segments >= this.#limits.segments) throw tooLarge('segments');
    this.#budget.spend(WORK.segment);
    this.#head = headOfSegment(this.#head, segment);
    this.#segments += 1;
  }

  #takeSignature(frame: TraceFrame & { kind: 'signature' }, end: number): void {
    const { final, segments, head, signature } = frame;
    if (this.signatures >= this.#limits.signatures) throw tooLarge('signatures');
    this.#budget.spend(WORK.signature);
    // A flush must sign new segments. A seal may follow a flush directly.
    const repeated = !final && segments === this.signed?.segments;
    if (segments !== this.#segments || repeated) this.stop(gap(this.#segments, segments));
    else if (!this.#head.equals(head)) this.stop({ code: 'trace_chain_broken', values: { segments } });
    else if (
      !verifyMessage(
        this.header!.value.algorithm,
        this.#key!,
        signedMessage(final, segments, head),
        signature,
      )
    )
      this.stop({ code: 'trace_signature_invalid', values: { segments } });
    else {
      this.signatures += 1;
      this.signed = { end, segments, head: this.#head, final };
    }
  }
}

class CheckedTrace implements ReadTrace {
  readonly header: TraceHeader;
  readonly deviceId: DeviceId;
  readonly signatures: number;
  readonly sealed: boolean;
  readonly segments: number;
  readonly #open: OpenTrace;
  readonly #firstHead: Buffer;
  readonly #signed: Signed | undefined;
  readonly #found: readonly TraceFinding[];
  readonly #budget: WorkBudget;
  #backwards: TraceFinding | undefined;

  constructor(
    open: OpenTrace,
    { value, head }: { readonly value: TraceHeader; readonly head: Buffer },
    { signed, signatures, fault }: ChainReader,
    readonly bytes: number,
    readonly sha256: string,
    budget: WorkBudget,
  ) {
    this.#budget = budget;
    this.header = value;
    this.deviceId = deviceIdOf(value.publicKey);
    this.signatures = signatures;
    this.sealed = signed?.final ?? false;
    this.segments = signed?.segments ?? 0;
    this.#open = open;
    this.#firstHead = head;
    this.#signed = signed;
    const unsigned = bytes - (signed?.end ?? 0);
    this.#found = [
      ...(fault === undefined ? [] : [fault]),
      ...(this.sealed || fault !== undefined ? [] : [{ code: 'trace_truncated' } as const]),
      ...(unsigned === 0 ? [] : [{ code: 'trace_unsigned_tail', values: { bytes: unsigned } } as const]),
      ...(value.simulated ? [{ code: 'trace_simulated' } as const] : []),
    ];
  }

  get findings(): readonly TraceFinding[] {
    return this.#backwards === undefined ? this.#found : [...this.#found, this.#backwards];
  }

  async *events(idOf?: IdOf): AsyncGenerator<readonly TraceEvent[], void, undefined> {
    if (this.segments === 0) return;
    const splitter = new FrameSplitter();
    const content = new ContentReader(idOf, this.#budget);
    let head = this.#firstHead;
    let segments = 0;
    for await (const chunk of this.#open()) {
      for (const frame of splitter.push(chunk)) {
        if (frame.kind !== 'segment') continue;
        this.#budget.spend(WORK.segment);
        head = headOfSegment(head, frame);
        segments += 1;
        yield content.read(frame);
        if (segments === this.segments) break;
      }
      if (segments === this.segments || splitter.damaged) break;
    }
    if (segments !== this.segments || !head.equals(this.#signed!.head))
      throw malformed('it changed while it was read');
    this.#backwards = content.backwards();
  }
}

/** Reads the events of one segment after another, and checks the rules that connect segments. */
class ContentReader {
  readonly #references = new TraceReferences();
  readonly #idOf: IdOf | undefined;
  readonly #budget: WorkBudget;
  #events = 0;
  #latest = 0;
  /**
   * The events with a time before an earlier event: their number, the first one, and the largest step back in
   * microseconds.
   */
  #back: { count: number; readonly event: number; microseconds: number } | undefined;

  constructor(idOf: IdOf | undefined, budget: WorkBudget) {
    this.#idOf = idOf;
    this.#budget = budget;
  }

  read(segment: TraceFrame & { kind: 'segment' }): TraceEvent[] {
    const { sequence, firstEvent, body } = segment;
    if (firstEvent !== this.#events)
      throw malformed(`segment ${sequence} does not continue the numbers of the events`);
    const events: TraceEvent[] = [];
    try {
      for (const event of decodeTraceEvents(body, this.#idOf)) {
        this.#budget.spend(WORK.event);
        this.#references.take(event);
        this.#clock(event.at);
        events.push(event);
        this.#events += 1;
      }
    } catch (error) {
      if (!(error instanceof TraceFault)) throw error;
      throw malformed(`segment ${sequence}, event ${this.#events}: ${error.message}`);
    }
    return events;
  }

  backwards(): TraceFinding | undefined {
    return this.#back && { code: 'trace_time_backwards', values: { ...this.#back } };
  }

  #clock(at: number): void {
    if (at >= this.#latest) {
      this.#latest = at;
      return;
    }
    this.#back ??= { count: 0, event: this.#events, microseconds: 0 };
    this.#back.count += 1;
    this.#back.microseconds = Math.max(this.#back.microseconds, this.#latest - at);
  }
}

function gap(expected: number, found: number): TraceFinding {
  return { code: 'trace_sequence_gap', values: { expected, found } };
}

function malformed(where: string): DomainError {
  return new DomainError('unprocessable', `The trace is malformed: ${where}.`, { reason: 'trace_malformed' });
}

function tooLarge(what: string): DomainError {
  return new DomainError('unprocessable', `The trace has more ${what} than allowed.`, {
    reason: 'trace_too_large',
  });
}
