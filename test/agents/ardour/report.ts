/** Returns the report of a trace as an issuer with this trace gets it. */
import { createReadStream } from 'node:fs';
import type { EvidenceFact } from '../../../src/witness/domain/evidence-report.js';
import { replayTrace } from '../../../src/witness/replay/replay-trace.js';
import { composeReport } from '../../../src/witness/report/compose-report.js';
import { settleFacts } from '../../../src/witness/report/settle-facts.js';

export async function reportOf(trace: string) {
  const replayed = await replayTrace(() => createReadStream(trace));
  const originalSha256 = replayed.session.exports.at(-1)?.fileSha256 ?? '00'.repeat(32);
  const { facts, detail } = settleFacts(replayed, { standing: 'enrolled', originalSha256 });
  const report = composeReport({
    facts,
    declarations: [],
    altered: 0,
    detail,
    consent: { consentVersion: '1.0' },
  });
  const stated: readonly EvidenceFact[] = [...report.facts, ...report.conflicts, ...report.unverifiable];
  return {
    session: replayed.session,
    placements: report.sourceDetail?.placements ?? [],
    /** Values of the facts of a code; none where the report does not have it. */
    values: (code: string) => stated.filter((fact) => fact.code === code).map(({ values }) => values),
    codes: stated.map(({ code }) => code),
    conflicts: report.conflicts.map(({ code }) => code),
    reviewed: stated.filter(({ status }) => status === 'needs_review').map(({ code }) => code),
  };
}
