import { defined } from '../../../core/domain/defined.js';
import { DomainError } from '../../../core/domain/errors.js';
import type { LegacyValues } from '../../domain/legacy-proof.js';
import type { IssuedProof } from '../../domain/proof.js';
import type { PartnerStore, ProofStore } from '../../ports/stores.js';
import type { Clock } from '../../ports/system.js';
import { safeFileName } from '../file-name.js';

/** A proof as an earlier registry recorded it. */
export type LegacyProof = LegacyValues &
  Pick<
    IssuedProof,
    | 'proofId'
    | 'partnerId'
    | 'createdAt'
    | 'kid'
    | 'carrier'
    | 'song'
    | 'originalSha256'
    | 'boundAudioSha256'
    | 'credentialSha256'
    | 'asset'
  >;

export interface ImportLegacyDeps {
  readonly stores: PartnerStore & ProofStore;
  readonly clock: Clock;
  /** The signal that aborts when the call is given up. */
  readonly signal?: AbortSignal;
}

/**
 * Registers a proof of an earlier registry (rule 9.28) with the two steps of issuing: reservation, then
 * proof. Repeating the call changes nothing, and completes a call that a crash interrupted.
 */
export async function importLegacy(
  { stores, clock, signal }: ImportLegacyDeps,
  legacy: LegacyProof,
): Promise<{ readonly proofId: string; readonly outcome: 'imported' | 'already_imported' }> {
  const now = Math.floor(clock.now() / 1000);
  if ((await stores.getPartner(legacy.partnerId)) === undefined)
    throw new DomainError('not_found', 'There is no such partner.');
  if (legacy.createdAt > now)
    throw new DomainError('invalid_request', 'createdAt is in the future.', { reason: 'invalid_member' });
  const proof = proofOf(legacy, now);
  const { proofId, partnerId } = proof;

  const known = await stores.getProof(proofId);
  if (known !== undefined && known.state !== 'pending') {
    if (known.state === 'erased' || !isSame(known, proof)) throw differs();
    return { proofId, outcome: 'already_imported' };
  }
  await stores.reserveProof(proofId, partnerId, now);
  // The registration of a proof does not stop by itself, because it also follows published files.
  signal?.throwIfAborted();
  await stores.issueProof(proof, {
    partnerId,
    action: 'proof_imported',
    at: now,
    actor: 'operator',
    subjects: [proofId],
  });
  // A concurrent call with the same id may have registered other content first.
  const registered = await stores.getProof(proofId);
  if (registered?.state !== 'issued' || !isSame(registered, proof)) throw differs();
  return { proofId, outcome: 'imported' };
}

function differs(): DomainError {
  return new DomainError('conflict', 'This id already belongs, or belonged, to a different proof.', {
    reason: 'legacy_differs',
  });
}

/** Copies the known members one by one, so that no other member of the request is stored. */
function proofOf(given: LegacyProof, importedAt: number): IssuedProof {
  const { proofId, partnerId, song, carrier, createdAt, kid, asset } = given;
  const { originalSha256, boundAudioSha256, credentialSha256 } = given;
  const { classification, grade, interpretation } = given;
  return {
    state: 'issued',
    proofId,
    partnerId,
    song: { title: song.title },
    carrier,
    createdAt,
    kid,
    originalSha256,
    boundAudioSha256,
    fileSha256: asset.sha256,
    credentialSha256,
    asset: {
      bytes: asset.bytes,
      sha256: asset.sha256,
      fileName: safeFileName(asset.fileName),
      mediaType: asset.mediaType,
    },
    legacy: defined({ importedAt, classification, grade, interpretation }),
  };
}

/** Compares the imported content. The time of import and later declarations do not count. */
function isSame(known: IssuedProof, proof: IssuedProof): boolean {
  if (known.legacy === undefined) return false;
  const content = (one: IssuedProof) =>
    JSON.stringify([
      one.partnerId,
      one.song.title,
      one.carrier,
      one.createdAt,
      one.kid,
      one.originalSha256,
      one.boundAudioSha256,
      one.credentialSha256,
      [one.asset.bytes, one.asset.sha256, one.asset.fileName, one.asset.mediaType],
      [one.legacy?.classification, one.legacy?.grade, one.legacy?.interpretation],
    ]);
  return content(known) === content(proof);
}
