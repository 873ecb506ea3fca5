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
  for await (const batch of trace.events()) for (const event of batch) replayer.take(event);
  const { publicKey: _publicKey, ...header } = trace.header;
  const { deviceId, sha256, bytes, sealed, findings } = trace;
  return { header, deviceId, sha256, bytes, sealed, findings, session: replayer.finish(sealed) };
}
