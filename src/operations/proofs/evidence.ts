import { type EvidenceReport, reportEvidence } from '../../domain/evidence-report.js';
import type { IssuedProof } from '../../domain/proof.js';
import type { Secrets } from '../../ports/secrets.js';
import { checkOverlay } from './declarations.js';

export interface ReadReportDeps {
  readonly secrets: Secrets;
}

/**
 * The evidence report of a proof that was read already; the one place where verify, proof, list and record get it.
 * Absent on an imported proof of which nothing was declared (rule 9.28). Evidence never changes the validity of a
 * credential: a record of it that was altered is told of in the report, and fails no call.
 */
export async function readReport(
  { secrets }: ReadReportDeps,
  proof: IssuedProof,
): Promise<EvidenceReport | undefined> {
  const overlay = checkOverlay(secrets, proof);
  if (overlay === undefined && proof.legacy !== undefined) return undefined;
  return reportEvidence(overlay?.declarations ?? [], overlay?.altered ?? 0);
}
