import type { Readable } from 'node:stream';
import { DomainError } from '../../../core/domain/errors.js';
import type { SnapshotSource } from '../../ports/store-snapshot.js';

/**
 * Returns a snapshot of the store, for a backup.
 * @throws DomainError `conflict` / `snapshot_unsupported`, `snapshot_running`
 */
export async function readSnapshot({
  snapshots,
}: {
  readonly snapshots?: SnapshotSource | undefined;
}): Promise<Readable> {
  if (snapshots === undefined)
    throw new DomainError('conflict', 'The store is shared by several processes.', {
      reason: 'snapshot_unsupported',
    });
  return snapshots.snapshot();
}
