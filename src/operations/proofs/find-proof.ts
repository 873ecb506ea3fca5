import { DomainError } from '../../domain/errors.js';
import type { IssuedProof, Proof } from '../../domain/proof.js';
import type { ProofStore } from '../../ports/stores.js';
import type { Caller } from '../operations.js';

/**
 * "Erased, never-issued and still-pending proof ids return one uniform 404"; so does another partner's where
 * only the owner may ask.
 */
export function noSuchProof(): DomainError {
  return new DomainError('not_found', 'There is no such proof.');
}

/** For every key of the environment. */
export async function findIssued(stores: ProofStore, proofId: string): Promise<IssuedProof> {
  const proof = await stores.getProof(proofId);
  if (proof?.state !== 'issued') throw noSuchProof();
  return proof;
}

/** The same one read, for the owner alone. */
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
