import { randomBytes } from 'node:crypto';
import type { IdOf } from '../../codec/trace-events.js';
import type { DeviceId, TraceFinding, TraceHeader } from '../../domain/trace.js';
import { type OpenTrace, readTrace } from '../trace/read-trace.js';
import { type ReplayedSession, Replayer } from './replayer.js';

/** A trace, replayed: all that it says of the session, before it is held to what others know. Of plain values alone. */
export interface Replayed {
  readonly header: Omit<TraceHeader, 'publicKey'>;
  readonly deviceId: DeviceId;
  /** SHA-256 of the whole file, lower-case hex. */
  readonly sha256: string;
  readonly bytes: number;
  readonly sealed: boolean;
  readonly findings: readonly TraceFinding[];
  readonly session: ReplayedSession;
}

/**
 * Replays a trace in two passes over its file. The result depends on the bytes alone, however they are cut into chunks;
 * the memory is bounded by what lives at once in the session.
 * @throws DomainError `unprocessable` for what is no trace
 */
export async function replayTrace(open: OpenTrace): Promise<Replayed> {
  const trace = await readTrace(open);
  const replayer = new Replayer(trace.header);
  for await (const batch of trace.events(scattered())) for (const event of batch) replayer.take(event);
  const { publicKey: _publicKey, ...header } = trace.header;
  const { deviceId, sha256, bytes, sealed, findings } = trace;
  return { header, deviceId, sha256, bytes, sealed, findings, session: replayer.finish(sealed) };
}

/**
 * Ids under numbers that nobody can foresee. Maps hash whole numbers without a seed: with ids that collide, each look at
 * one of 65,536 clips would visit all of them. No result depends on the numbers.
 */
function scattered(): IdOf {
  const random = randomBytes(8);
  const mask = random.readInt32LE(0);
  // An odd factor has an inverse modulo 2^32, so no two ids become one.
  const factor = random.readInt32LE(4) | 1;
  return (id) => Math.imul(id ^ mask, factor);
}
