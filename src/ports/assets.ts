import type { Readable } from 'node:stream';
import type { EvidencePart } from '../domain/evidence.js';

/**
 * Files that were issued. Names are proof ids: the asset, and beside it the parts of the proof's evidence that the
 * registry does not hold. Without a part the asset is meant.
 */
export interface AssetStore {
  /**
   * A place to build an asset in. It is not visible through `read` until `publish`; a kill leaves at
   * most an orphan that `collectOrphans` removes.
   */
  stage(proofId: string, part?: EvidencePart): Promise<StagedAsset>;
  /** @returns undefined where there is no such asset. `range` is inclusive byte offsets. */
  read(
    proofId: string,
    range?: { readonly start: number; readonly end: number },
    part?: EvidencePart,
  ): Promise<Readable | undefined>;
  size(proofId: string, part?: EvidencePart): Promise<number | undefined>;
  /** Removes the asset and every part. True when the asset was there. Gone for good when it resolves. */
  delete(proofId: string): Promise<boolean>;
  /**
   * Removes staged leftovers, and published assets and parts of proofs for which `keep` says no. Returns how
   * many. A backend that several processes share leaves alone what is younger than its grace: another of them
   * may be about to register it.
   */
  collectOrphans(keep: (proofId: string) => Promise<boolean>): Promise<number>;
}

export interface StagedAsset {
  append(chunk: Uint8Array): Promise<void>;
  /** Overwrites bytes that were appended. */
  patch(offset: number, bytes: Uint8Array): Promise<void>;
  read(): Readable;
  /** Durable and visible when it resolves. */
  publish(): Promise<void>;
  discard(): Promise<void>;
}
