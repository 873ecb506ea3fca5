import { DomainError } from '../../../core/domain/errors.js';
import type { IssuedProof, Proof } from '../../domain/proof.js';
import type { ProofStore } from '../../ports/stores.js';
import type { Caller } from '../caller.js';

/**
 * Returns the same error for an erased, a never-issued and a pending proof. If only the owner may ask, a
 * proof of another partner gives the same error too (rule 11.2).
 */
export function noSuchProof(): DomainError {
  return new DomainError('not_found', 'There is no such proof.');
}

/** Returns an issued proof, for every key of the environment. */
export async function findIssued(stores: ProofStore, proofId: string): Promise<IssuedProof> {
  const proof = await stores.getProof(proofId);
  if (proof?.state !== 'issued') throw noSuchProof();
  return proof;
}

/** Returns an issued or erased proof, for its owner only. */
export async function findOwn(
  stores: ProofStore,
  caller: Caller,
  proofId: string,
): Promise<Exclude<Proof, { state: 'pending' }>> {
  const proof = await stores.getProof(proofId);
  if (proof === undefined || proof.state === 'pending' || proof.partnerId !== caller.partnerId)
    throw noSuchProof();
  return proof;
}

export async function findOwnIssued(
  stores: ProofStore,
  caller: Caller,
  proofId: string,
): Promise<IssuedProof> {
  const proof = await findOwn(stores, caller, proofId);
  if (proof.state !== 'issued') throw noSuchProof();
  return proof;
}
