import { Readable } from 'node:stream';
import { DomainError } from '../../domain/errors.js';
import type { AssetStore } from '../../ports/assets.js';
import type { ProofStore } from '../../ports/stores.js';
import type { OperatorOperations } from '../operations.js';

export interface ReadDeliverableDeps {
  readonly stores: ProofStore;
  readonly assets: AssetStore;
}

/** The audio that was issued, or with `sidecar` the sidecar of a pair. */
export async function readDeliverable(
  deps: ReadDeliverableDeps,
  proofId: string,
  part: 'audio' | 'sidecar',
): ReturnType<OperatorOperations['readDeliverable']> {
  const proof = await deps.stores.getProof(proofId);
  if (proof?.state !== 'issued') throw new DomainError('not_found', 'There is no such proof.');
  const { asset, sidecar } = proof;
  if (part === 'sidecar') {
    if (sidecar === undefined)
      throw new DomainError('not_found', 'The credential of this proof is embedded; it has no sidecar.');
    return {
      bytes: sidecar.length,
      fileName: sidecarName(asset.fileName),
      mediaType: 'application/octet-stream',
      stream: Readable.from([sidecar]),
    };
  }
  const stream = await deps.assets.read(proofId);
  if (stream === undefined) throw new DomainError('not_found', 'There is no such proof.');
  return { bytes: asset.bytes, fileName: asset.fileName, mediaType: asset.mediaType, stream };
}

/** `song.sidecar` beside `song.wav`. */
export function sidecarName(fileName: string): string {
  return `${fileName.replace(/\.[^.]*$/, '')}.sidecar`;
}
