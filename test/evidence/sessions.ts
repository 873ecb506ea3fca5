import type { EvidenceFacts } from '../../src/witness/domain/evidence.js';
import type { EvidenceReport } from '../../src/witness/domain/evidence-report.js';
import type { Channel, ChannelSupport, TraceEvent } from '../../src/witness/domain/trace.js';
import type { Replayed } from '../../src/witness/replay/replay-trace.js';
import { Replayer } from '../../src/witness/replay/replayer.js';
import { composeReport } from '../../src/witness/report/compose-report.js';
import { type SettlingContext, settleFacts } from '../../src/witness/report/settle-facts.js';
import { ALL_SUPPORTED } from '../capture/write-trace.js';

/** The digest of the audio that sessions export and proofs are issued for. */
export const EXPORTED = 'ee'.repeat(32);
export const STARTED_AT = 1_700_000_000;

/** Replays events without a file, as those of a sealed trace. */
export function sessionOf(
  events: readonly TraceEvent[],
  channels: Readonly<Record<Channel, ChannelSupport>> = ALL_SUPPORTED,
): Replayed {
  const replayer = new Replayer({ channels });
  for (const event of events) replayer.take(event);
  return {
    header: {
      version: 1,
      traceId: '00'.repeat(16),
      adapter: 'test',
      adapterVersion: '1',
      startedAt: STARTED_AT,
      simulated: false,
      algorithm: 'Ed25519',
      channels,
    },
    deviceId: 'dd'.repeat(32),
    sha256: 'aa'.repeat(32),
    bytes: 1000,
    sealed: true,
    findings: [],
    session: replayer.finish(true),
  };
}

/** Settles the facts of a session for the exported audio. */
export function factsOf(replayed: Replayed, context: Partial<SettlingContext> = {}): EvidenceFacts {
  return settleFacts(replayed, { standing: 'enrolled', originalSha256: EXPORTED, ...context }).facts;
}

export function reportOf(facts: EvidenceFacts): EvidenceReport {
  return composeReport({ facts, declarations: [], altered: 0 });
}
