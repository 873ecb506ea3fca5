import { defined } from '../../../core/domain/defined.js';
import type { ReasonOf } from '../../../core/domain/reference/reasons.js';
import type { ResultOf } from '../../contract/results.js';
import type { FoundProof } from '../../domain/digests.js';
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
  readonly bound: readonly string[];
  readonly samples: readonly string[];
}

type FoundProofs = ReadonlyMap<string, readonly FoundProof[]>;

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
  // A list may name one digest a thousand times.
  const distinct = new Map(files.map((file) => [keyOf(file), file]));
  const wanted = new Set<string>();
  for (const { file, bound, samples } of distinct.values())
    for (const sha256 of [file, bound, samples]) if (sha256 !== undefined) wanted.add(sha256);
  const proofs = await stores.findByDigests([...wanted], MOST_MATCHES, (first) => {
    const learnt = new Set<string>();
    for (const file of distinct.values()) {
      const { bound, samples } = learn(file, first);
      for (const sha256 of bound) learnt.add(sha256);
      for (const sha256 of samples) learnt.add(sha256);
    }
    return learnt;
  });
  const found = await withFiles(stores, proofs);
  const matches = new Map(
    [...distinct].map(([key, file]) => [key, matchesOf(learn(file, found), found, view)]),
  );
  return files.map((file) => matches.get(keyOf(file))!);
}

function keyOf({ file, bound, samples }: KnownDigests): string {
  return `${file} ${bound} ${samples}`;
}

/** Adds the digest of the delivered file to the proofs whose records have none of their own. */
async function withFiles(stores: Pick<ProofStore, 'getProof'>, found: FoundProofs): Promise<FoundProofs> {
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
  const complete = (proof: FoundProof): readonly FoundProof[] => {
    const fileSha256 = proof.fileSha256 ?? files.get(proof.proofId);
    return fileSha256 === undefined ? [] : [{ ...proof, fileSha256 }];
  };
  return new Map([...found].map(([sha256, proofs]) => [sha256, proofs.flatMap(complete)]));
}

/** Returns the digests of a file. A proof that shares no digest with another one adds none, because they find only it. */
function learn(known: KnownDigests, found: FoundProofs): LearntDigests {
  const { file } = known;
  const bound = known.bound === undefined ? [] : [known.bound];
  const samples = known.samples === undefined ? [] : [known.samples];
  if (file === undefined) return { bound, samples };
  for (const proof of found.get(file) ?? []) {
    const { fileSha256, originalSha256, boundAudioSha256, samplesSha256, isAlone } = proof;
    if (isAlone) continue;
    if (fileSha256 === file) add(bound, boundAudioSha256);
    else if (originalSha256 !== file) continue;
    if (samplesSha256 !== undefined) add(samples, samplesSha256);
  }
  return { file, bound, samples };
}

/** Adds a digest once. All proofs of one file name the same few digests. */
function add(digests: string[], sha256: string): void {
  if (!digests.includes(sha256)) digests.push(sha256);
}

function matchesOf(
  file: LearntDigests,
  found: FoundProofs,
  view: OwnerView | undefined,
): readonly IdentifyMatch[] {
  const matches = new Map<string, Found>();
  const digests = [...file.bound, ...file.samples];
  if (file.file !== undefined && !digests.includes(file.file)) digests.push(file.file);
  for (const sha256 of digests) {
    for (const proof of found.get(sha256) ?? []) {
      const type = typeOf(proof, file);
      if (type !== undefined) matches.set(proof.proofId, { proof, type });
    }
  }
  if (matches.size === 0) return [];
  return [...matches.values()]
    .sort(byStrength)
    .slice(0, MOST_MATCHES)
    .map(({ proof: { proofId, partnerId }, type }) => {
      const match = { proofId, type, confidence: 1 };
      const isOwners = type === 'same_samples' && partnerId === view?.partnerId;
      return isOwners ? defined({ ...match, unreadableBecause: view.unreadableBecause }) : match;
    });
}

function typeOf(proof: FoundProof, { file, bound, samples }: LearntDigests): MatchType | undefined {
  if (file !== undefined && file === proof.fileSha256) return 'exact_file';
  if (bound.includes(proof.boundAudioSha256) || file === proof.boundAudioSha256) return 'bound_audio';
  if (file === proof.originalSha256) return 'original_file';
  return proof.samplesSha256 !== undefined && samples.includes(proof.samplesSha256)
    ? 'same_samples'
    : undefined;
}

interface Found {
  readonly proof: FoundProof;
  readonly type: MatchType;
}

function byStrength(a: Found, b: Found): number {
  return (
    STRENGTH.indexOf(a.type) - STRENGTH.indexOf(b.type) ||
    b.proof.createdAt - a.proof.createdAt ||
    (a.proof.proofId < b.proof.proofId ? 1 : -1)
  );
}
