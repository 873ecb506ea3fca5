import { createHash } from 'node:crypto';
import { DecryptionError } from '../../../core/codec/encrypt.js';
import { isRecordDamaged } from '../../../core/domain/errors.js';
import type { EvidenceFacts, EvidenceReference } from '../../../witness/domain/evidence.js';
import { decodeEvidence, type EvidenceBodies } from '../../../witness/report/evidence-body.js';
import type { IssuedProof } from '../../domain/proof.js';
import type { AssetStore } from '../../ports/assets.js';
import type { ProofStore } from '../../ports/stores.js';

export interface ReadPartDeps {
  readonly stores: Pick<ProofStore, 'readEvidence'>;
  readonly assets: Pick<AssetStore, 'read'>;
}

/**
 * Reads a part of a proof's evidence and checks it against the digest in the proof's record.
 * @returns undefined when issuing stored no such part. `altered` when the body is missing or has another
 * digest
 */
export async function readPart<Part extends keyof EvidenceBodies>(
  deps: ReadPartDeps,
  { proofId, evidence }: IssuedProof,
  part: Part,
): Promise<EvidenceBodies[Part] | 'altered' | undefined> {
  const settled = evidence?.parts.find((one) => one.part === part);
  if (settled === undefined) return undefined;
  const body = await readBody(deps, proofId, settled);
  return body !== undefined && createHash('sha256').update(body).digest('hex') === settled.sha256
    ? decodeEvidence(part, body)
    : 'altered';
}

/** Reads the body of a part as it is stored. Returns undefined when it is missing or cannot be decrypted. */
export async function readBody(
  { stores, assets }: ReadPartDeps,
  proofId: string,
  { part, place, bytes }: EvidenceReference['parts'][number],
): Promise<Uint8Array | undefined> {
  if (place === 'objects') return wholeOf(await assets.read(proofId, undefined, part), bytes);
  return stores.readEvidence(proofId, part).catch((error: unknown) => {
    if (isRecordDamaged(error)) return undefined;
    throw error;
  });
}

/**
 * Returns a stream as one array. Returns undefined when the stream is longer than `bytes`, or when the key of
 * the proof does not decrypt it. A longer stream is not read to its end.
 */
async function wholeOf(
  stream: AsyncIterable<Uint8Array> | undefined,
  bytes: number,
): Promise<Uint8Array | undefined> {
  if (stream === undefined) return undefined;
  const chunks: Uint8Array[] = [];
  let length = 0;
  try {
    for await (const chunk of stream) {
      length += chunk.length;
      if (length > bytes) return undefined;
      chunks.push(chunk);
    }
  } catch (error) {
    if (error instanceof DecryptionError) return undefined;
    throw error;
  }
  return Buffer.concat(chunks);
}

/**
 * Returns the facts of a proof's trace, for rules. Returns undefined when there are none, or they were
 * altered.
 */
export async function readFacts(deps: ReadPartDeps, proof: IssuedProof): Promise<EvidenceFacts | undefined> {
  const facts = await readPart(deps, proof, 'facts');
  return facts === 'altered' ? undefined : facts;
}
