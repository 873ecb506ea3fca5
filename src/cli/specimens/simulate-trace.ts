import { createHash, createPrivateKey } from 'node:crypto';
import { DeviceKey, openTrace, type TraceSink } from '../../witness/capture/index.js';
import type { CounterName } from '../../witness/domain/session-evidence.js';
import type { TraceHeader } from '../../witness/domain/trace.js';
import { SeededRandom } from './random.js';
import { type SessionOptions, SimulatedSession } from './simulated-session.js';

/** The time in unix seconds at which simulated sessions begin. */
const STARTED_AT = 1_767_225_600;
/** The time between two flushes in microseconds of the session clock. */
const FLUSH_MICROSECONDS = 10_000_000;
/** The number of events after which there is a flush, however little time has passed. */
const FLUSH_EVENTS = 20_000;
/** The part of an Ed25519 private key in PKCS #8 before the 32 bytes of the key (RFC 8410, section 7). */
const PKCS8_ED25519 = Buffer.from('302e020100300506032b657004220420', 'hex');

export interface SimulatedTrace {
  readonly header: TraceHeader;
  readonly events: number;
  /** What the generator wrote by its own account, whether or not a signature covers it. */
  readonly counters: Readonly<Record<CounterName, number>>;
}

/** Returns the key that the seed determines. Everybody has this key, so it vouches for nothing. */
export function seededDeviceKey(seed: number): DeviceKey {
  const secret = createHash('sha256').update(`takemark simulated device ${seed}`).digest();
  const der = Buffer.concat([PKCS8_ED25519, secret]);
  return new DeviceKey(createPrivateKey({ key: der, format: 'der', type: 'pkcs8' }));
}

/**
 * Writes the trace of a simulated session; its header says that it is one. With the same key the same options give
 * the same bytes, ES256 aside, whose signatures differ each time.
 */
export async function simulateTrace(
  options: SessionOptions & { readonly to: TraceSink; readonly key: DeviceKey },
): Promise<SimulatedTrace> {
  const session = new SimulatedSession(options);
  const adverse = new Set(options.adverse ?? []);
  const sink = new TamperedSink(options.to, adverse);
  const writer = await openTrace({
    to: sink,
    key: options.key,
    header: {
      adapter: 'simulator',
      adapterVersion: '1.0',
      startedAt: STARTED_AT,
      simulated: true,
      channels: session.channels,
      traceId: new SeededRandom(options.seed ^ 0x5eed).hex(16),
    },
  });
  const length = options.minutes * 60 * 1_000_000;
  const cutAt = adverse.has('truncated') ? (length * 2) / 3 : Infinity;
  // From there on nothing is signed but by the seal, which is cut off.
  const unsignedFrom = adverse.has('unsigned_tail') ? (length * 2) / 3 : Infinity;
  let flushedAt = 0;
  let flushedEvents = 0;
  for (const batch of session.events()) {
    for (const event of batch) writer.append(event);
    const now = batch.at(-1)?.at ?? flushedAt;
    const due = now - flushedAt >= FLUSH_MICROSECONDS || writer.events - flushedEvents >= FLUSH_EVENTS;
    if (due && now < unsignedFrom) {
      sink.amid = flushedAt < length / 2 && now >= length / 2;
      await writer.flush();
      flushedAt = now;
      flushedEvents = writer.events;
    }
    if (now > cutAt) break;
  }
  if (cutAt < Infinity) await writer.close();
  else {
    sink.last = true;
    await writer.seal();
  }
  return { header: writer.header, events: writer.events, counters: session.counters };
}

/** A sink that changes the file as the scenarios require. */
class TamperedSink implements TraceSink {
  /** True for one write in the middle of the session. */
  amid = false;
  /** True for the write of the seal. */
  last = false;

  constructor(
    private readonly sink: TraceSink,
    private readonly adverse: ReadonlySet<string>,
  ) {}

  async write(bytes: Uint8Array): Promise<void> {
    if (this.amid && this.adverse.has('gap')) return;
    if (this.amid && this.adverse.has('broken_chain')) {
      const changed = Uint8Array.from(bytes);
      const at = bodyStart(bytes);
      changed[at] = bytes[at]! ^ 1;
      await this.sink.write(changed);
      return;
    }
    // The seal is cut off amid its signature.
    await this.sink.write(this.last && this.adverse.has('unsigned_tail') ? bytes.subarray(0, -32) : bytes);
  }

  sync(): Promise<void> {
    return this.sink.sync();
  }

  close(): Promise<void> {
    return this.sink.close();
  }
}

/** Returns the byte offset of the body of a write's first segment, after array, type, two numbers and a length. */
function bodyStart(frame: Uint8Array): number {
  const lengths: Readonly<Record<number, number>> = {
    204: 2,
    205: 3,
    206: 5,
    207: 9,
    196: 2,
    197: 3,
    198: 5,
  };
  let at = 2;
  for (let part = 0; part < 3; part += 1) at += lengths[frame[at]!] ?? 1;
  return at;
}
