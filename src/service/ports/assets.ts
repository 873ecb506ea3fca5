import type { Readable } from 'node:stream';
import type { EvidencePart } from '../../witness/domain/evidence.js';
import type { AuditPage } from './audited-store.js';

/** A file of a proof, as an entry of a list. */
export interface AssetEntry {
  readonly proofId: string;
  /** The part of the evidence. Absent for the asset itself. */
  readonly part?: EvidencePart;
  /** The time of writing, in unix seconds. */
  readonly writtenAt: number;
}

/** A range of byte offsets, both inclusive. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

/**
 * Stores issued files. The names are proof ids. A proof has its asset, and the parts of its evidence that the
 * registry does not hold. Calls without a part concern the asset.
 */
export interface AssetStore {
  /**
   * Opens a staging area for a new asset, which `read` does not find until `publish`. The id must already be
   * reserved in the registry. After a crash the reservation leads to leftover files, so that the store is
   * never searched.
   */
  stage(proofId: string, part?: EvidencePart): Promise<StagedAsset>;
  /**
   * Opens an asset or part.
   * @returns undefined when it does not exist
   */
  read(proofId: string, range?: ByteRange, part?: EvidencePart): Promise<Readable | undefined>;
  size(proofId: string, part?: EvidencePart): Promise<number | undefined>;
  /**
   * Lists files of proofs in a stable order, at most `limit`. A file that is created during the listing may
   * be omitted until the next pass.
   * @param after the place after which the page begins. Absent for the first page.
   */
  list(after: string | undefined, limit: number): Promise<AuditPage<AssetEntry>>;
  /**
   * Deletes the asset and every part. The deletion is final when the promise resolves.
   * @returns true when the asset existed
   */
  delete(proofId: string): Promise<boolean>;
  /**
   * Deletes what a killed process left of assets that it was building under this id. The caller knows that no asset is
   * being built under it.
   */
  deleteUnfinished(proofId: string): Promise<void>;
}

export interface StagedAsset {
  append(chunk: Uint8Array): Promise<void>;
  /** Overwrites bytes that were already appended. */
  patch(offset: number, bytes: Uint8Array): Promise<void>;
  /** Opens the content appended so far. May be called repeatedly. */
  read(range?: ByteRange): Readable;
  /** Publishes the asset, which is durable and visible when the promise resolves. */
  publish(): Promise<void>;
  discard(): Promise<void>;
}
