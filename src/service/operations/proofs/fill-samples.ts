import { setTimeout as delay } from 'node:timers/promises';
import { defined } from '../../../core/domain/defined.js';
import { DomainError, isRecordDamaged } from '../../../core/domain/errors.js';
import type { AudioEngine } from '../../../core/ports/audio-engine.js';
import { type AddedDigests, samplesMembers } from '../../domain/digests.js';
import type { IssuedProof } from '../../domain/proof.js';
import type { AssetStore } from '../../ports/assets.js';
import type { AuditedStore } from '../../ports/audited-store.js';
import type { ProofStore } from '../../ports/stores.js';
import { measure } from '../issuing/issue-proof.js';

export interface FillSamplesDeps {
  readonly stores: Pick<ProofStore, 'getProof' | 'addDigests'>;
  /** The stores below the encryption. Reading a record there needs no content key. */
  readonly encrypted: Pick<ProofStore, 'getProof'>;
  readonly assets: Pick<AssetStore, 'read'>;
  readonly engine: AudioEngine;
  readonly audited: Pick<AuditedStore, 'proofs'>;
  /** The bytes of files to read per second. */
  readonly samplesRate: number;
  /** The signal that aborts when the call is given up. */
  readonly signal?: AbortSignal;
}

/** The result of one step. */
export interface FillStep {
  /** The records that were read. */
  readonly looked: number;
  /** The proofs that got a samples digest, and those whose audio has none. */
  readonly filled: number;
  readonly without: number;
  /** The proofs whose file is missing or damaged. */
  readonly failed: readonly string[];
  /** The place where the next step continues. Absent at the end. */
  readonly next?: string;
}

/** The records of one page. */
const PAGE = 200;
/** A step ends after the file during which this time in milliseconds has passed. */
const STEP_MS = 5000;
/** The form of a place: how many records of a page are done, and the place of the page in the store. */
const PLACE = /^(\d{1,3}):(.*)$/;

/**
 * Computes the samples digest of proofs that have none yet, from their files: one step of a pass over all proofs. The
 * pass may be repeated, because a proof whose samples are known is only read.
 * @throws DomainError `invalid_request` for a place that no step returned
 */
export async function fillSamples(
  deps: FillSamplesDeps,
  { from = '0:' }: { readonly from?: string | undefined },
): Promise<FillStep> {
  const [, done = '', place] = PLACE.exec(from) ?? [];
  if (place === undefined)
    throw new DomainError(
      'invalid_request',
      'The parameter `from` is not a `next` value of an earlier step.',
      { reason: 'invalid_member' },
    );
  const { items, next } = await deps.audited.proofs(place === '' ? undefined : place, PAGE);
  const began = performance.now();
  const step = { looked: 0, filled: 0, without: 0, failed: [] as string[] };
  for (const proofId of items.slice(Number(done))) {
    const outcome = await fill(deps, proofId);
    step.looked += 1;
    if (outcome === 'failed') step.failed.push(proofId);
    else if (outcome !== undefined) step[outcome] += 1;
    if (performance.now() - began < STEP_MS) continue;
    const end = Number(done) + step.looked;
    if (end < items.length) return { ...step, next: `${end}:${place}` };
  }
  return defined({ ...step, next: next === undefined ? undefined : `0:${next}` });
}

async function fill(
  deps: FillSamplesDeps,
  proofId: string,
): Promise<'filled' | 'without' | 'failed' | undefined> {
  try {
    const stored = await deps.encrypted.getProof(proofId);
    if (stored?.state !== 'issued') return undefined;
    if (stored.samplesSha256 !== undefined || stored.samplesReason !== undefined) return undefined;
    const proof = await deps.stores.getProof(proofId);
    // An imported proof has no files.
    if (proof?.state !== 'issued' || proof.legacy !== undefined) return undefined;
    const digests = await digestsOf(deps, proof);
    if (digests === undefined) {
      // The file of a proof that was erased meanwhile is missing, too.
      return (await deps.stores.getProof(proofId))?.state === 'issued' ? 'failed' : undefined;
    }
    // All memory for decoding was in use, so a later pass computes them.
    if (digests.samplesSha256 === undefined && digests.samplesReason === undefined) return undefined;
    if ((await deps.stores.addDigests(proofId, digests)) === 'proof_gone') return undefined;
    return digests.samplesSha256 === undefined ? 'without' : 'filled';
  } catch (error) {
    if (isRecordDamaged(error)) return 'failed';
    throw error;
  }
}

/** Returns the samples of the delivered file. Undefined if the file is missing or is not the delivered file. */
async function digestsOf(
  { assets, engine, samplesRate, signal }: FillSamplesDeps,
  { proofId, asset }: IssuedProof,
): Promise<AddedDigests | undefined> {
  const stream = await assets.read(proofId);
  if (stream === undefined) return undefined;
  // A listener keeps an early error from ending the process. The reader still receives the error.
  stream.on('error', () => undefined);
  const { sha256, samples } = await measure(engine, paced(stream, samplesRate, signal), { samples: true });
  return sha256 === asset.sha256 ? samplesMembers(samples) : undefined;
}

/** Yields chunks at a bounded rate, in bytes per second. */
async function* paced(
  chunks: AsyncIterable<Uint8Array>,
  rate: number,
  signal: AbortSignal | undefined,
): AsyncGenerator<Uint8Array> {
  const began = performance.now();
  let bytes = 0;
  for await (const chunk of chunks) {
    signal?.throwIfAborted();
    yield chunk;
    bytes += chunk.length;
    const aheadMs = (bytes / rate) * 1000 - (performance.now() - began);
    if (aheadMs > 1) await delay(aheadMs, undefined, signal === undefined ? {} : { signal });
  }
}
