import { defined } from '../../../core/domain/defined.js';
import type { ReasonOf } from '../../../core/domain/reference/reasons.js';
import type { ResultOf } from '../../contract/results.js';
import type { IndexedProof } from '../../domain/digests.js';
import { MATCH_MEANINGS } from '../../domain/reference/values.js';
import type { ProofStore } from '../../ports/stores.js';

export type MatchType = keyof typeof MATCH_MEANINGS;

/** The result of the identify of an upload. */
export type IdentifiedUpload = Extract<ResultOf<'identify'>, { readonly matches: unknown }>;
/** A match by digest, with a `confidence` of 1. Acoustic matches do not exist yet. */
type IdentifyMatch = IdentifiedUpload['matches'][number];

/** What the matches of an upload say to the owners of the proofs. */
export interface OwnerView {
  readonly partnerId: string;
  /** The reasons for which a verify of the upload is `unreadable`. Absent with any other verdict. */
  readonly unreadableBecause?: readonly ReasonOf<'unreadable'>[];
}

/** What is known of a file. */
export interface KnownDigests {
  /** The digest of the whole file. */
  readonly file?: string;
  /** The digest without the credential. Of a file without a credential, the digest of the whole file. */
  readonly bound?: string;
  readonly samples?: string;
}

/** The digests of a file that are known after the first look-up. */
interface LearntDigests {
  readonly file?: string;
  readonly bound: ReadonlySet<string>;
  readonly samples: ReadonlySet<string>;
}

/** The most matches of one file, strongest first, and the most proofs read for one digest, newest first. */
const MOST_MATCHES = 100;
/** The types of matches, strongest first. A proof that matches in several ways gets the strongest type. */
const STRENGTH = Object.keys(MATCH_MEANINGS) as readonly MatchType[];

/**
 * Finds the issued proofs that match each file. If the service issued a file, or received it for issuing, the file's
 * other digests are known from its proof. So the digest of such a file finds what the file finds.
 * @param view of the caller who sent the file
 */
export async function findMatches(
  stores: Pick<ProofStore, 'findByDigests' | 'getProof'>,
  files: readonly KnownDigests[],
  view?: OwnerView,
): Promise<readonly (readonly IdentifyMatch[])[]> {
  const proofs = await stores.findByDigests(
    [...new Set(files.flatMap(digestsKnown))],
    MOST_MATCHES,
    (first) =>
      files.flatMap((file) => {
        const { bound, samples } = learn(file, (sha256) => first.get(sha256) ?? []);
        return [...bound, ...samples];
      }),
  );
  const found = await withFiles(stores, proofs);
  const proofsOf = (sha256: string): readonly IndexedProof[] => found.get(sha256) ?? [];
  const learnt = files.map((file) => learn(file, proofsOf));
  return learnt.map((file) => matchesOf(file, proofsOf, view));
}

function digestsKnown({ file, bound, samples }: KnownDigests): readonly string[] {
  return [file, bound, samples].filter((sha256) => sha256 !== undefined);
}

/** Adds the digest of the delivered file to the proofs whose records have none of their own. */
async function withFiles(
  stores: Pick<ProofStore, 'getProof'>,
  found: ReadonlyMap<string, readonly IndexedProof[]>,
): Promise<ReadonlyMap<string, readonly IndexedProof[]>> {
  const former = new Set<string>();
  for (const proofs of found.values())
    for (const { proofId, fileSha256 } of proofs) if (fileSha256 === undefined) former.add(proofId);
  if (former.size === 0) return found;
  const files = new Map(
    await Promise.all(
      [...former].map(async (proofId) => {
        const whole = await stores.getProof(proofId);
        return [proofId, whole?.state === 'issued' ? whole.asset.sha256 : undefined] as const;
      }),
    ),
  );
  const complete = (proof: IndexedProof): readonly IndexedProof[] => {
    const fileSha256 = proof.fileSha256 ?? files.get(proof.proofId);
    return fileSha256 === undefined ? [] : [{ ...proof, fileSha256 }];
  };
  return new Map([...found].map(([sha256, proofs]) => [sha256, proofs.flatMap(complete)]));
}

function learn(
  { file, bound, samples }: KnownDigests,
  proofsOf: (sha256: string) => readonly IndexedProof[],
): LearntDigests {
  const known = {
    bound: new Set(bound === undefined ? [] : [bound]),
    samples: new Set(samples === undefined ? [] : [samples]),
  };
  if (file === undefined) return known;
  for (const { fileSha256, originalSha256, boundAudioSha256, samplesSha256 } of proofsOf(file)) {
    if (fileSha256 === file) known.bound.add(boundAudioSha256);
    else if (originalSha256 !== file) continue;
    if (samplesSha256 !== undefined) known.samples.add(samplesSha256);
  }
  return { file, ...known };
}

function matchesOf(
  file: LearntDigests,
  proofsOf: (sha256: string) => readonly IndexedProof[],
  view: OwnerView | undefined,
): readonly IdentifyMatch[] {
  const digests = [...(file.file === undefined ? [] : [file.file]), ...file.bound, ...file.samples];
  const proofs = new Map(digests.flatMap(proofsOf).map((proof) => [proof.proofId, proof]));
  return [...proofs.values()]
    .flatMap((proof) => {
      const type = typeOf(proof, file);
      return type === undefined ? [] : [{ proof, type }];
    })
    .sort(byStrength)
    .slice(0, MOST_MATCHES)
    .map(({ proof: { proofId, partnerId }, type }) =>
      defined({
        proofId,
        type,
        confidence: 1,
        unreadableBecause:
          type === 'same_samples' && partnerId === view?.partnerId ? view.unreadableBecause : undefined,
      }),
    );
}

function typeOf(proof: IndexedProof, { file, bound, samples }: LearntDigests): MatchType | undefined {
  if (file !== undefined && file === proof.fileSha256) return 'exact_file';
  if (bound.has(proof.boundAudioSha256) || file === proof.boundAudioSha256) return 'bound_audio';
  if (file === proof.originalSha256) return 'original_file';
  return proof.samplesSha256 !== undefined && samples.has(proof.samplesSha256) ? 'same_samples' : undefined;
}

interface Found {
  readonly proof: IndexedProof;
  readonly type: MatchType;
}

function byStrength(a: Found, b: Found): number {
  return (
    STRENGTH.indexOf(a.type) - STRENGTH.indexOf(b.type) ||
    b.proof.createdAt - a.proof.createdAt ||
    (a.proof.proofId < b.proof.proofId ? 1 : -1)
  );
}
