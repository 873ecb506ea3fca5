import { randomBytes } from 'node:crypto';
import type { DeviceId, TraceFinding, TraceHeader } from '../domain/trace.js';
import { type OpenTrace, readTrace } from '../trace/read-trace.js';
import type { IdOf } from '../trace/trace-events.js';
import { WorkBudget } from '../trace/work-budget.js';
import { type ReplayedSession, Replayer } from './replayer.js';

/**
 * A replayed trace: everything that it says about the session, before it is compared with other sources. It
 * contains only plain values.
 */
export interface Replayed {
  readonly header: Omit<TraceHeader, 'publicKey'>;
  readonly deviceId: DeviceId;
  /** The SHA-256 of the whole file in lower-case hex. */
  readonly sha256: string;
  readonly bytes: number;
  readonly sealed: boolean;
  readonly findings: readonly TraceFinding[];
  readonly session: ReplayedSession;
}

/**
 * Replays a trace in two passes over its file. The result depends only on the bytes, not on how they are
 * split into chunks. Memory is bounded by what exists at one time in the session, and work by the budget.
 * @throws DomainError `unprocessable` for an invalid trace, and for a trace that takes more work than the budget has
 */
export async function replayTrace(open: OpenTrace, budget = new WorkBudget()): Promise<Replayed> {
  const trace = await readTrace(open, budget);
  const replayer = new Replayer(trace.header, budget);
  for await (const batch of trace.events(scattered())) for (const event of batch) replayer.take(event);
  const { publicKey: _publicKey, ...header } = trace.header;
  const { deviceId, sha256, bytes, sealed, findings } = trace;
  return { header, deviceId, sha256, bytes, sealed, findings, session: replayer.finish(sealed) };
}

/**
 * Maps ids to unpredictable numbers. Maps hash whole numbers without a seed. With colliding ids, each lookup
 * of one of 65,536 clips would visit all of them. No result depends on the numbers.
 */
function scattered(): IdOf {
  const random = randomBytes(8);
  const mask = random.readInt32LE(0);
  // An odd factor has an inverse modulo 2^32, so no two ids become one.
  const factor = random.readInt32LE(4) | 1;
  return (id) => Math.imul(id ^ mask, factor);
}
