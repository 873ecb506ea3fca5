import { DomainError } from '../../domain/errors.js';
import type { IssuedProof } from '../../domain/proof.js';
import type { UploadFacts } from '../../domain/upload.js';
import type { ProofStore, UploadStore, UsageStore } from '../../ports/stores.js';
import type { Clock } from '../../ports/system.js';
import type { Caller } from '../caller.js';
import { charge } from '../usage/quota.js';
import { findUpload } from './find-upload.js';

/** Acoustic matches come later; `confidence` of a digest match is 1. */
export interface IdentifyMatch {
  readonly proofId: string;
  readonly type: 'exact_file' | 'bound_audio' | 'original_file';
  readonly confidence: number;
}

/** Proofs of one digest that are looked at, newest first. */
const CANDIDATES = 100;

/** Types of matches, the strongest first: the name of a proof that matches in several ways. */
const STRENGTH = ['exact_file', 'bound_audio', 'original_file'] as const;

export interface IdentifyUploadDeps {
  readonly stores: UploadStore & ProofStore & UsageStore;
  readonly clock: Clock;
}

/**
 * The issued proofs that an upload belongs to, by digests; billed once for an upload. A match is no
 * verification result.
 */
export async function identifyUpload(
  deps: IdentifyUploadDeps,
  caller: Caller,
  { uploadId }: { readonly uploadId: string },
): Promise<{ readonly matches: readonly IdentifyMatch[] }> {
  const now = Math.floor(deps.clock.now() / 1000);
  const { measurement, expiresAt } = await findUpload(deps.stores, caller, uploadId, 'identify', now);
  const candidates = await findCandidates(deps.stores, measurement);
  // What was issued as a pair is found, whatever it is.
  if (measurement.container === 'unknown' && candidates.length === 0)
    throw new DomainError('unprocessable', 'The file is no audio that the service knows.');
  await charge(deps.stores, caller, {
    operation: 'identify',
    dedupeKey: `identify ${uploadId}`,
    at: now,
    dedupeUntil: expiresAt,
  });
  return {
    matches: candidates
      .map((proof) => ({ proof, type: matchType(proof, measurement) }))
      .sort(byStrength)
      .map(({ proof, type }) => ({ proofId: proof.proofId, type, confidence: 1 })),
  };
}

/** An exact file has the bound digest of its proof, too. */
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
