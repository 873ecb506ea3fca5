import { Readable } from 'node:stream';
import { DomainError } from '../../domain/errors.js';
import type { IssuedProof } from '../../domain/proof.js';
import type { AssetStore } from '../../ports/assets.js';
import type { ProofStore } from '../../ports/stores.js';
import type { Caller } from '../caller.js';
import { findIssued, findOwnIssued, noSuchProof } from './find-proof.js';

export interface ReadAssetDeps {
  readonly stores: ProofStore;
  readonly assets: AssetStore;
}

/** Part of a proof's asset: of a pair the audio or the sidecar; an embedded one has no sidecar. */
export type AssetPart = 'audio' | 'sidecar';

/** An asset as a response needs it. */
export interface Asset {
  /** Length of the whole representation. */
  readonly bytes: number;
  readonly sha256: string;
  readonly fileName: string;
  readonly mediaType: string;
  /** @param range bytes that the stream holds; absent for all */
  read(range?: { readonly start: number; readonly end: number }): Promise<Readable>;
}

/** The asset of any issued proof, for the operator. */
export async function readAsset(deps: ReadAssetDeps, proofId: string, part: AssetPart): Promise<Asset> {
  return assetOf(deps, await findIssued(deps.stores, proofId), part);
}

/** The asset of a proof of the caller's own. */
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
      // Erased since the record was read.
      if (stream === undefined) throw noSuchProof();
      // An error of the stream is told to whoever reads, however late that is.
      stream.on('error', () => undefined);
      try {
        // A file whose key is destroyed is read as it lies, like one that was never encrypted. The tombstone of an
        // erasure comes before that: where the proof still stands now, nothing was destroyed when the key was read.
        await findIssued(stores, proofId);
      } catch (error) {
        stream.destroy();
        throw error;
      }
      return stream;
    },
  };
}

/** `song.sidecar` beside `song.wav`. */
function sidecarName(fileName: string): string {
  return `${fileName.replace(/\.[^.]*$/, '')}.sidecar`;
}
