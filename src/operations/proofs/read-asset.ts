import { Readable } from 'node:stream';
import { DomainError } from '../../domain/errors.js';
import type { AssetStore } from '../../ports/assets.js';
import type { ProofStore } from '../../ports/stores.js';
import type { Caller, Deliverable } from '../operations.js';
import { requireScope } from '../require-scope.js';
import { findOwnIssued, noSuchProof } from './find-proof.js';
import { sidecarName } from './read-deliverable.js';

export interface ReadAssetDeps {
  readonly stores: ProofStore;
  readonly assets: AssetStore;
}

/** "Retrieves an owned credentialed deliverable": of a pair the audio, or with `sidecar` its sidecar. */
export async function readAsset(
  { stores, assets }: ReadAssetDeps,
  caller: Caller,
  proofId: string,
  part: 'audio' | 'sidecar',
): Promise<Deliverable> {
  requireScope(caller, 'proofs');
  const { asset, sidecar, credentialSha256 } = await findOwnIssued(stores, caller, proofId);
  if (part === 'sidecar') {
    if (sidecar === undefined)
      throw new DomainError('not_found', 'The credential of this proof is embedded; it has no sidecar.');
    return {
      bytes: sidecar.length,
      sha256: credentialSha256,
      fileName: sidecarName(asset.fileName),
      mediaType: 'application/octet-stream',
      read: async (range) =>
        Readable.from([range === undefined ? sidecar : sidecar.subarray(range.start, range.end + 1)]),
    };
  }
  return {
    ...asset,
    async read(range) {
      const stream = await assets.read(proofId, range);
      // Erased since the record was read.
      if (stream === undefined) throw noSuchProof();
      return stream;
    },
  };
}
