import type { MeasuredSamples } from '../../core/domain/audio.js';
import type { IssuedProof } from './proof.js';

/** The kinds of digests that lead to a proof. */
export const DIGEST_KINDS = ['file', 'bound', 'original', 'samples'] as const;
export type DigestKind = (typeof DIGEST_KINDS)[number];

/** The members of an issued proof that indexes need. No store encrypts them. */
export type IndexedProof = Pick<
  IssuedProof,
  | 'proofId'
  | 'partnerId'
  | 'createdAt'
  | 'originalSha256'
  | 'boundAudioSha256'
  | 'fileSha256'
  | 'samplesSha256'
>;

/** Digests that records of earlier versions lack. */
export type AddedDigests = Pick<IssuedProof, 'fileSha256' | 'samplesSha256' | 'samplesReason'>;

/** A proof that was found by one of its digests. */
export interface FoundProof extends IndexedProof {
  /** Present if the store knows that no other proof has one of its digests. */
  readonly isAlone?: true;
}

/** Returns digests to look for after a first look-up, from what it found. */
export type FurtherDigests = (found: ReadonlyMap<string, readonly FoundProof[]>) => Iterable<string>;

export interface ProofDigest {
  readonly kind: DigestKind;
  readonly sha256: string;
}

/** Returns the digests that a proof has. Two kinds may have the same digest. */
export function digestsOf(
  proof: Pick<IndexedProof, 'originalSha256' | 'boundAudioSha256' | 'fileSha256' | 'samplesSha256'>,
): readonly ProofDigest[] {
  const { fileSha256, boundAudioSha256, originalSha256, samplesSha256 } = proof;
  const values = {
    file: fileSha256,
    bound: boundAudioSha256,
    original: originalSha256,
    samples: samplesSha256,
  };
  return DIGEST_KINDS.flatMap((kind) => {
    const sha256 = values[kind];
    return sha256 === undefined ? [] : [{ kind, sha256 }];
  });
}

/** Returns the members of a record that state its samples. A result that may differ at another time is not kept. */
export function samplesMembers(
  samples: MeasuredSamples | undefined,
): Pick<IssuedProof, 'samplesSha256' | 'samplesReason'> {
  if (samples === undefined) return {};
  if ('sha256' in samples) return { samplesSha256: samples.sha256 };
  return samples.reason === 'decoder_busy' ? {} : { samplesReason: samples.reason };
}
