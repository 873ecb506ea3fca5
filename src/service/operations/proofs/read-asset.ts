import { Readable } from 'node:stream';
import { DomainError } from '../../../core/domain/errors.js';
import type { IssuedProof } from '../../domain/proof.js';
import type { AssetStore } from '../../ports/assets.js';
import type { ProofStore } from '../../ports/stores.js';
import type { Caller } from '../caller.js';
import { findIssued, findOwnIssued, noSuchProof } from './find-proof.js';

export interface ReadAssetDeps {
  readonly stores: ProofStore;
  readonly assets: AssetStore;
}

/** The part of a proof's asset. A pair has audio and sidecar. An embedded proof has no sidecar. */
export type AssetPart = 'audio' | 'sidecar';

/** An asset with the metadata for a response. */
export interface Asset {
  /** The length of the whole representation in bytes. */
  readonly bytes: number;
  readonly sha256: string;
  readonly fileName: string;
  readonly mediaType: string;
  /** @param range bytes that the stream contains. Absent for all bytes */
  read(range?: { readonly start: number; readonly end: number }): Promise<Readable>;
}

/** Returns the asset of any issued proof, for the operator. */
export async function readAsset(deps: ReadAssetDeps, proofId: string, part: AssetPart): Promise<Asset> {
  return assetOf(deps, await findIssued(deps.stores, proofId), part);
}

/** Returns the asset of a proof that the caller owns. */
export async function readOwnAsset(
  deps: ReadAssetDeps,
  caller: Caller,
  proofId: string,
  part: AssetPart,
): Promise<Asset> {
  return assetOf(deps, await findOwnIssued(deps.stores, caller, proofId), part);
}

function assetOf(
  { stores, assets }: ReadAssetDeps,
  { proofId, asset, sidecar, credentialSha256, legacy }: IssuedProof,
  part: AssetPart,
): Asset {
  if (legacy !== undefined)
    throw new DomainError('not_found', 'The proof was imported from an earlier registry without its files.', {
      reason: 'asset_not_kept',
    });
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
      // The proof was erased after its record was read.
      if (stream === undefined) throw noSuchProof();
      // A listener keeps an early error from ending the process. The reader still receives the error, however
      // late it reads.
      stream.on('error', () => undefined);
      try {
        // If an erasure has destroyed the key, the stream has the encrypted bytes: the store takes the file for one
        // that was never encrypted. An erasure writes its tombstone before it destroys the key. So if there is no
        // tombstone now, the key still existed when the stream was opened.
        await findIssued(stores, proofId);
      } catch (error) {
        stream.destroy();
        throw error;
      }
      return stream;
    },
  };
}

/** Returns the name of the sidecar: `song.sidecar` for `song.wav`. */
function sidecarName(fileName: string): string {
  return `${fileName.replace(/\.[^.]*$/, '')}.sidecar`;
}
