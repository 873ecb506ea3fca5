import type { Readable } from 'node:stream';
import type { EvidencePart } from '../domain/evidence.js';
import type { AuditPage } from './audited-store.js';

/** A file of a proof, as a list names it. */
export interface AssetEntry {
  readonly proofId: string;
  /** Absent for the asset itself. */
  readonly part?: EvidencePart;
  /** Unix seconds at which it was written. */
  readonly writtenAt: number;
}

/** Byte offsets, both inclusive. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

/**
 * Files that were issued. Names are proof ids: the asset, and beside it the parts of the proof's evidence that the
 * registry does not hold. Without a part the asset is meant.
 */
export interface AssetStore {
  /**
   * A place to build an asset in. It is not visible through `read` until `publish`. The id is reserved in the
   * registry before: that leads to what a kill leaves, and nobody has to search the store for it.
   */
  stage(proofId: string, part?: EvidencePart): Promise<StagedAsset>;
  /** @returns undefined where there is no such asset */
  read(proofId: string, range?: ByteRange, part?: EvidencePart): Promise<Readable | undefined>;
  size(proofId: string, part?: EvidencePart): Promise<number | undefined>;
  /**
   * Files in an order that stays, at most `limit`: files of proofs alone. One that is made while a caller goes
   * from page to page may be left out until the next pass.
   * @param after place behind which the page begins; absent for the first
   */
  list(after: string | undefined, limit: number): Promise<AuditPage<AssetEntry>>;
  /** Removes the asset and every part. True when the asset was there. Gone for good when it resolves. */
  delete(proofId: string): Promise<boolean>;
}

export interface StagedAsset {
  append(chunk: Uint8Array): Promise<void>;
  /** Overwrites bytes that were appended. */
  patch(offset: number, bytes: Uint8Array): Promise<void>;
  /** Content as far as it was appended, any number of times. */
  read(range?: ByteRange): Readable;
  /** Durable and visible when it resolves. */
  publish(): Promise<void>;
  discard(): Promise<void>;
}
