import type { Readable } from 'node:stream';

/** A store that one process owns, and that can be read as a whole while it serves. */
export interface SnapshotSource {
  /**
   * Returns every row of the store as it is at the call, in the form of `codec/store-snapshot.ts`. Later writes
   * do not change what the stream returns. One snapshot at a time.
   * @throws DomainError `conflict` / `snapshot_running`
   */
  snapshot(): Promise<Readable>;
}
