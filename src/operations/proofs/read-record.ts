import type { Secrets } from '../../ports/secrets.js';
import type { ProofStore } from '../../ports/stores.js';
import type { Caller, ProofRecord } from '../operations.js';
import { requireScope } from '../require-scope.js';
import { findIssued } from './find-proof.js';
import { readEvidence } from './read-evidence.js';

/**
 * "Returns the registered record of a proof without presenting audio": to any key of the environment,
 * claiming no file matches.
 */
export async function readRecord(
  { stores, secrets }: { readonly stores: ProofStore; readonly secrets: Secrets },
  caller: Caller,
  proofId: string,
): Promise<ProofRecord> {
  requireScope(caller, 'proofs');
  const proof = await findIssued(stores, proofId);
  const { song, createdAt, boundAudioSha256, carrier, asset } = proof;
  const { bytes, sha256, mediaType, fileName } = asset;
  const evidenceReport = readEvidence(secrets, proof);
  return {
    proofId,
    song: { title: song.title },
    issuedAt: createdAt,
    boundAudioSha256,
    ...(evidenceReport === undefined ? {} : { evidenceReport }),
    delivery: { carrier, bytes, sha256, mediaType, fileName },
  };
}
