import type { Secrets } from '../../ports/secrets.js';
import type { ProofStore } from '../../ports/stores.js';
import type { Caller, ProofDetail } from '../operations.js';
import { requireScope } from '../require-scope.js';
import { findOwnIssued } from './find-proof.js';
import { proofEntry } from './list-proofs.js';
import { readEvidence } from './read-evidence.js';

/** "Reads one proof": the owner's alone. */
export async function readProof(
  { stores, secrets }: { readonly stores: ProofStore; readonly secrets: Secrets },
  caller: Caller,
  proofId: string,
): Promise<ProofDetail> {
  requireScope(caller, 'proofs');
  const proof = await findOwnIssued(stores, caller, proofId);
  const evidenceReport = readEvidence(secrets, proof);
  return {
    ...proofEntry(proof),
    createdAt: proof.createdAt,
    originalSha256: proof.originalSha256,
    ...(evidenceReport === undefined ? {} : { evidenceReport }),
  };
}
