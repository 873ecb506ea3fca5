import type { ProofStore } from '../ports/stores.js';
import { findIssued } from './find-proof.js';
import type { Caller, ProofRecord } from './operations.js';
import { requireScope } from './require-scope.js';

/** "Returns the registered record of a proof without presenting audio": to any key of the environment, claiming no file matches. */
export async function readRecord(stores: ProofStore, caller: Caller, proofId: string): Promise<ProofRecord> {
  requireScope(caller, 'proofs');
  const { song, createdAt, boundAudioSha256, carrier, asset } = await findIssued(stores, proofId);
  const { bytes, sha256, mediaType, fileName } = asset;
  return { proofId, song: { title: song.title }, issuedAt: createdAt, boundAudioSha256, delivery: { carrier, bytes, sha256, mediaType, fileName } };
}
