import type { Measurement } from '../../../core/domain/audio.js';
import { defined } from '../../../core/domain/defined.js';
import { DomainError } from '../../../core/domain/errors.js';
import type { EmbeddedParseResult } from '../../../core/domain/parsed-credential.js';
import type { AudioEngine, AudioIngest } from '../../../core/ports/audio-engine.js';
import {
  extraSecondsOf,
  FACTS_LIFE_SECONDS,
  isLarge,
  SLOT_LIFE_SECONDS,
  type UploadFacts,
  type UploadSlot,
} from '../../domain/upload.js';
import type { CredentialReader } from '../../ports/credential-reader.js';
import type { PartnerStore, UploadStore } from '../../ports/stores.js';
import type { Clock } from '../../ports/system.js';
import type { Plans } from '../partners/plans.js';
import { shareOf } from '../usage/rate-limits.js';
import type { UploadPolicySigner } from './upload-policy.js';

export interface StoredUpload {
  readonly uploadId: string;
  readonly bytes: number;
  readonly sha256: string;
}

/** A file that is being streamed into the engine. `Result` is what the caller gets for it. */
export interface FileReceiver<Result> {
  /**
   * The signal that aborts when the engine gives up the upload while it waits for the client. Its reason is
   * the DomainError.
   */
  readonly signal: AbortSignal;
  /** The length of a large file, in bytes. Its transfer has a least rate instead of a time limit (rule 7.13). */
  readonly largeBytes?: number;
  /** Writes like AudioIngest.write. Throws `payload_too_large` at the first byte beyond the limit. */
  write(chunk: Uint8Array): Promise<void> | undefined;
  /** Completes the measurement and uses it. */
  finish(): Promise<Result>;
  /** Releases everything that the upload holds. It may be called at any time, any number of times. */
  abort(): void;
}

/** An upload to a slot. An aborted upload leaves the slot open until it expires. */
export type UploadReceiver = FileReceiver<StoredUpload>;

export interface ReceiveUploadDeps {
  readonly stores: UploadStore & PartnerStore;
  readonly engine: AudioEngine;
  readonly clock: Clock;
  readonly policies: UploadPolicySigner;
  readonly uploadLocks: UploadLocks;
  readonly reader: Pick<CredentialReader, 'readEmbedded'>;
  readonly plans: Plans;
  /** Returns the number of processes that share a plan's limits. */
  readonly processes: () => number;
}

/**
 * Begins to receive a post to a slot. The signed fields are checked before the file begins: each must be
 * present and unaltered, and no other field is accepted. The slot is locked in this process during the post.
 * Between processes, the conditional insert of the facts decides.
 * @param leastBytes the least length of the file that the declared length of the form leaves
 */
export async function receiveUpload(
  deps: ReceiveUploadDeps,
  uploadId: string,
  fields: ReadonlyMap<string, string>,
  leastBytes = 0,
): Promise<UploadReceiver> {
  const { maxBytes } = deps.policies.check(uploadId, fields, nowSeconds(deps.clock));
  if (leastBytes > maxBytes) throw fileTooLarge(maxBytes);
  const upload = await deps.stores.getUpload(uploadId, nowSeconds(deps.clock));
  if (upload === undefined) throw new DomainError('not_found', 'There is no such upload slot.');
  if (upload.facts !== undefined) throw alreadyUsed();
  const partner = await deps.stores.getPartner(upload.slot.partnerId);
  const plan = partner && (await deps.plans.of(partner));
  if (plan === undefined) throw new DomainError('not_found', 'There is no such upload slot.');
  const limit = shareOf(plan.concurrentUploads, deps.processes());
  const release = deps.uploadLocks.take(uploadId, upload.slot.partnerId, limit);
  try {
    const { partnerId, purpose } = upload.slot;
    const ingest = deps.engine.open(partnerId, {
      samples: purpose.startsWith('identify'),
      size: isLarge(purpose) ? 'large' : undefined,
    });
    return receiver(deps, upload.slot, maxBytes, ingest, release);
  } catch (error) {
    release();
    throw error;
  }
}

function receiver(
  deps: ReceiveUploadDeps,
  slot: UploadSlot,
  maxBytes: number,
  ingest: AudioIngest,
  release: () => void,
): UploadReceiver {
  let bytes = 0;
  let ended = false;
  const giveBack = () => {
    if (ended) return;
    ended = true;
    ingest.abort();
    release();
  };
  return {
    signal: ingest.signal,
    ...(isLarge(slot.purpose) && { largeBytes: maxBytes }),
    write(chunk) {
      bytes += chunk.length;
      if (bytes > maxBytes) {
        giveBack();
        throw fileTooLarge(maxBytes);
      }
      return ingest.write(chunk);
    },
    async finish() {
      try {
        if (slot.contentLength !== undefined && bytes !== slot.contentLength) {
          throw new DomainError('invalid_request', 'The file does not have the contentLength of the slot.', {
            reason: 'content_length_mismatch',
          });
        }
        const measurement = await ingest.end();
        const embedded = await readCredential(deps.reader, slot.partnerId, measurement);
        const now = nowSeconds(deps.clock);
        // The post ended after the slot expired, so the slot may already be deleted.
        if (now >= lastEndOf(slot))
          throw new DomainError('forbidden', 'The slot has expired. Request a new one.', {
            reason: 'form_policy_expired',
          });
        const outcome = await deps.stores.putFacts(factsOf(slot, measurement, embedded, now));
        if (outcome === 'already_used') throw alreadyUsed();
        return { uploadId: slot.uploadId, bytes: measurement.bytes, sha256: measurement.sha256 };
      } finally {
        giveBack();
      }
    },
    abort: giveBack,
  };
}

/** Returns the unix second from which a post to the slot may not end any more. A post begins before the slot expires. */
function lastEndOf({ purpose, contentLength = 0, expiresAt }: UploadSlot): number {
  return isLarge(purpose)
    ? expiresAt + SLOT_LIFE_SECONDS + extraSecondsOf(purpose, contentLength)
    : expiresAt;
}

function fileTooLarge(maxBytes: number): DomainError {
  return new DomainError(
    'payload_too_large',
    `The file must be at most ${maxBytes} bytes, the \`maxBytes\` of its slot.`,
    { reason: 'body_too_large' },
  );
}

/**
 * Reads the embedded credential. If reading fails, nothing is stored or judged, and the caller may send the file again.
 */
export async function readCredential(
  reader: ReceiveUploadDeps['reader'],
  owner: string,
  { credential, bindingSha256 }: Measurement,
): Promise<EmbeddedParseResult | undefined> {
  return credential === undefined || bindingSha256 === undefined
    ? undefined
    : reader.readEmbedded(owner, credential.data, credential);
}

function factsOf(
  slot: UploadSlot,
  measured: Measurement,
  embedded: EmbeddedParseResult | undefined,
  now: number,
): UploadFacts {
  return defined({
    uploadId: slot.uploadId,
    partnerId: slot.partnerId,
    purpose: slot.purpose,
    uploadedAt: now,
    expiresAt: now + FACTS_LIFE_SECONDS,
    measurement: keptMeasurement(measured),
    // The signature is checked only here. A verify call reads the stored result.
    embedded,
  });
}

/** Returns the part of a measurement that verdicts need. It contains no bytes of the file. */
export function keptMeasurement(measured: Measurement): UploadFacts['measurement'] {
  const { credential, bext, ds64: _ds64, chunks: _chunks, ...rest } = measured;
  return defined({
    ...rest,
    broadcastWave: bext !== undefined,
    credential: credential && { offset: credential.offset, length: credential.length },
  });
}

function alreadyUsed(): DomainError {
  return new DomainError('conflict', 'The slot has already been used.', { reason: 'upload_already_used' });
}

export function nowSeconds(clock: Clock): number {
  return Math.floor(clock.now() / 1000);
}

/**
 * The locks of slots that receive a post in this process, and the number of posts in flight for each partner.
 */
export interface UploadLocks {
  /**
   * Locks a slot.
   * @returns a function that releases the lock. It is safe to call twice
   * @throws DomainError `conflict` / `upload_in_progress`, or `rate_limited` / `concurrency_exceeded`
   */
  take(uploadId: string, partnerId: string, limit: number): () => void;
}

export function createUploadLocks(): UploadLocks {
  const slots = new Set<string>();
  const inFlight = new Map<string, number>();
  return {
    take(uploadId, partnerId, limit) {
      if (slots.has(uploadId))
        throw new DomainError('conflict', 'Another upload to this slot is in progress.', {
          reason: 'upload_in_progress',
        });
      const count = inFlight.get(partnerId) ?? 0;
      if (count >= limit) {
        throw new DomainError('rate_limited', `The plan allows ${limit} uploads at a time.`, {
          reason: 'concurrency_exceeded',
          limit: 'concurrent_uploads',
          retryAfterSeconds: 1,
        });
      }
      slots.add(uploadId);
      inFlight.set(partnerId, count + 1);
      return () => {
        if (!slots.delete(uploadId)) return;
        const left = (inFlight.get(partnerId) ?? 1) - 1;
        if (left === 0) inFlight.delete(partnerId);
        else inFlight.set(partnerId, left);
      };
    },
  };
}
