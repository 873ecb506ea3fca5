import type { ProofStore } from '../ports/stores.js';
import { findOwnIssued } from './find-proof.js';
import { proofEntry } from './list-proofs.js';
import type { Caller, ProofDetail } from './operations.js';
import { requireScope } from './require-scope.js';

/** "Reads one proof": the owner's alone. */
export async function readProof(stores: ProofStore, caller: Caller, proofId: string): Promise<ProofDetail> {
  requireScope(caller, 'proofs');
  const proof = await findOwnIssued(stores, caller, proofId);
  return { ...proofEntry(proof), createdAt: proof.createdAt, originalSha256: proof.originalSha256 };
}
