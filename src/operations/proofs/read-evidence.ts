import {
  type DeclarationEnvelope,
  envelopeOf,
  isAuthentic,
  type StoredDeclaration,
} from '../../domain/declaration.js';
import { type EvidenceReport, reportEvidence } from '../../domain/evidence-report.js';
import type { IssuedProof } from '../../domain/proof.js';
import type { Secrets } from '../../ports/secrets.js';

/**
 * The evidence report of a proof that was read already: no store is asked. Absent where nothing was declared:
 * "absent on older proofs, which is to be read as unavailable source evidence". A record that was altered in
 * the store is left out of it and counted, because "it never changes credential validity": it may not fail a
 * verification either.
 */
export function readEvidence(
  secrets: Secrets,
  { proofId, declarations = [] }: IssuedProof,
): EvidenceReport | undefined {
  if (declarations.length === 0) return undefined;
  const checked = readDeclarations(secrets, proofId, declarations);
  const authentic = checked
    .filter((declaration) => declaration.authentic)
    .map(({ authentic: _checked, ...envelope }) => envelope);
  return reportEvidence(authentic, checked.length - authentic.length);
}

/**
 * A declaration as the operator's side sees it: one that was altered in the store is shown, and said to be.
 */
export interface CheckedDeclaration extends DeclarationEnvelope {
  readonly authentic: boolean;
}

export function readDeclarations(
  secrets: Secrets,
  proofId: string,
  declarations: readonly StoredDeclaration[],
): readonly CheckedDeclaration[] {
  // Under the secret of the audit log, whose purpose is the same: who edits the store is found.
  const keys = secrets.all('audit').map(({ key }) => key);
  return declarations.map((stored) => ({
    ...envelopeOf(stored),
    authentic: isAuthentic(keys, proofId, stored),
  }));
}
