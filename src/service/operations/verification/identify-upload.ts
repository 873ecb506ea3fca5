import { DomainError } from '../../../core/domain/errors.js';
import type { IssuedProof } from '../../domain/proof.js';
import { type UploadFacts, unitsOf } from '../../domain/upload.js';
import type { ProofStore, UploadStore, UsageStore } from '../../ports/stores.js';
import type { Clock } from '../../ports/system.js';
import type { Caller } from '../caller.js';
import { charge } from '../usage/quota.js';
import { type RateLimits, weigh } from '../usage/rate-limits.js';
import { findUpload } from './find-upload.js';

/** A match by digest, with a `confidence` of 1. Acoustic matches do not exist yet. */
export interface IdentifyMatch {
  readonly proofId: string;
  readonly type: 'exact_file' | 'bound_audio' | 'original_file';
  readonly confidence: number;
}

/** The number of proofs read for one digest, newest first. */
const CANDIDATES = 100;

/** The types of matches, strongest first. A proof that matches in several ways gets the strongest type. */
const STRENGTH = ['exact_file', 'bound_audio', 'original_file'] as const;

export interface IdentifyUploadDeps {
  readonly stores: UploadStore & ProofStore & UsageStore;
  readonly clock: Clock;
  readonly limits: Pick<RateLimits, 'weigh'>;
}

/**
 * Returns the issued proofs that an upload matches by digest. An upload is billed once, and an upload of
 * unknown container is not billed. A match is not a verification result.
 */
export async function identifyUpload(
  deps: IdentifyUploadDeps,
  caller: Caller,
  { uploadId }: { readonly uploadId: string },
): Promise<{ readonly matches: readonly IdentifyMatch[] }> {
  const now = Math.floor(deps.clock.now() / 1000);
  const { measurement, expiresAt } = await findUpload(deps.stores, caller, uploadId, 'identify', now);
  const candidates = await findCandidates(deps.stores, measurement);
  weigh(deps, caller, { entries: candidates.length });
  // A pair may have audio of any format, so unknown audio is refused only without a match.
  if (measurement.container === 'unknown' && candidates.length === 0)
    throw new DomainError('unprocessable', 'The file is not in an audio format that the service supports.');
  // Rule 6.15.
  if (measurement.container !== 'unknown')
    await charge(deps.stores, caller, {
      operation: 'identify',
      dedupeKey: `identify ${uploadId}`,
      at: now,
      units: unitsOf(measurement.bytes),
      dedupeUntil: expiresAt,
    });
  return {
    matches: candidates
      .map((proof) => ({ proof, type: matchType(proof, measurement) }))
      .sort(byStrength)
      .map(({ proof, type }) => ({ proofId: proof.proofId, type, confidence: 1 })),
  };
}

/** Returns the proofs with a matching digest. An exact file also has the bound digest of its proof. */
async function findCandidates(
  stores: ProofStore,
  { sha256, bindingSha256 }: UploadFacts['measurement'],
): Promise<readonly IssuedProof[]> {
  const found = await Promise.all([
    stores.findProofs('bound', sha256, CANDIDATES),
    bindingSha256 === undefined ? [] : stores.findProofs('bound', bindingSha256, CANDIDATES),
    stores.findProofs('original', sha256, CANDIDATES),
  ]);
  return [...new Map(found.flat().map((proof) => [proof.proofId, proof])).values()];
}

function matchType(
  proof: IssuedProof,
  { sha256, bindingSha256 }: UploadFacts['measurement'],
): IdentifyMatch['type'] {
  if (sha256 === proof.asset.sha256) return 'exact_file';
  return proof.boundAudioSha256 === (bindingSha256 ?? sha256) || proof.boundAudioSha256 === sha256
    ? 'bound_audio'
    : 'original_file';
}

interface Found {
  readonly proof: IssuedProof;
  readonly type: IdentifyMatch['type'];
}

function byStrength(a: Found, b: Found): number {
  return (
    STRENGTH.indexOf(a.type) - STRENGTH.indexOf(b.type) ||
    b.proof.createdAt - a.proof.createdAt ||
    (a.proof.proofId < b.proof.proofId ? 1 : -1)
  );
}
