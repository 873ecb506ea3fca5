import type { Measurement } from '../../domain/audio.js';
import { DomainError } from '../../domain/errors.js';
import type { EmbeddedParseResult } from '../../domain/parsed-credential.js';
import type { UploadFacts, UploadSlot } from '../../domain/upload.js';
import { FACTS_LIFE_SECONDS } from '../../domain/upload.js';
import type { AudioEngine, AudioIngest } from '../../ports/audio-engine.js';
import type { Clock } from '../../ports/clock.js';
import type { CredentialReader } from '../../ports/credential-reader.js';
import type { UploadStore } from '../../ports/stores.js';
import type { UploadReceiver } from '../operations.js';
import type { UploadClaims } from './upload-locks.js';
import type { UploadPolicySigner } from './upload-policy.js';

export interface ReceiveUploadDeps {
  readonly stores: UploadStore;
  readonly engine: AudioEngine;
  readonly clock: Clock;
  readonly policies: UploadPolicySigner;
  readonly claims: UploadClaims;
  readonly reader: Pick<CredentialReader, 'readEmbedded'>;
  /** Concurrent uploads that the partner's plan allows this process; undefined where the partner is gone. */
  readonly concurrentUploads: (partnerId: string) => Promise<number | undefined>;
}

/**
 * One post to a slot. The signed fields are checked before the file has begun; the slot is claimed in this
 * process while the post lasts, and the conditional insert of the facts decides between processes.
 */
export async function receiveUpload(
  deps: ReceiveUploadDeps,
  uploadId: string,
  fields: ReadonlyMap<string, string>,
): Promise<UploadReceiver> {
  const policy = deps.policies.check(uploadId, fields, nowSeconds(deps.clock));
  const upload = await deps.stores.getUpload(uploadId, nowSeconds(deps.clock));
  if (upload === undefined) throw new DomainError('not_found', 'There is no such upload slot.');
  if (upload.facts !== undefined) throw alreadyUsed();
  const limit = await deps.concurrentUploads(upload.slot.partnerId);
  if (limit === undefined) throw new DomainError('not_found', 'There is no such upload slot.');
  const release = deps.claims.claim(uploadId, upload.slot.partnerId, limit);
  try {
    return receiver(deps, upload.slot, policy.maxBytes, deps.engine.open(upload.slot.partnerId), release);
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
  let settled = false;
  const settle = () => {
    if (settled) return;
    settled = true;
    ingest.abort();
    release();
  };
  return {
    maxBytes,
    signal: ingest.signal,
    write(chunk) {
      bytes += chunk.length;
      if (bytes > maxBytes) {
        settle();
        throw new DomainError('payload_too_large', `The file is larger than the slot's ${maxBytes} bytes.`, {
          reason: 'body_too_large',
        });
      }
      return ingest.write(chunk);
    },
    async finish() {
      try {
        if (slot.contentLength !== undefined && bytes !== slot.contentLength) {
          throw new DomainError('invalid_request', 'The file is not as long as the slot was asked for.', {
            reason: 'content_length_mismatch',
          });
        }
        const measurement = await ingest.end();
        const embedded = await readCredential(deps.reader, measurement);
        const now = nowSeconds(deps.clock);
        // A post that outlived its slot: its row may be swept already.
        if (now >= slot.expiresAt)
          throw new DomainError('forbidden', 'The slot has expired; ask for a new one.', {
            reason: 'form_policy_expired',
          });
        const outcome = await deps.stores.putFacts(factsOf(slot, measurement, embedded, now));
        if (outcome === 'already_used') throw alreadyUsed();
        return { uploadId: slot.uploadId, bytes: measurement.bytes, sha256: measurement.sha256 };
      } finally {
        settle();
      }
    },
    abort: settle,
  };
}

/** Where it fails nothing was judged: no facts are kept, and the slot stays open for another post. */
async function readCredential(
  reader: ReceiveUploadDeps['reader'],
  { credential, bindingSha256 }: Measurement,
): Promise<EmbeddedParseResult | undefined> {
  return credential === undefined || bindingSha256 === undefined
    ? undefined
    : reader.readEmbedded(credential.data, credential);
}

function factsOf(
  slot: UploadSlot,
  measured: Measurement,
  embedded: EmbeddedParseResult | undefined,
  now: number,
): UploadFacts {
  const { credential, bext, ds64: _ds64, chunks: _chunks, ...rest } = measured;
  return {
    uploadId: slot.uploadId,
    partnerId: slot.partnerId,
    purpose: slot.purpose,
    uploadedAt: now,
    expiresAt: now + FACTS_LIFE_SECONDS,
    measurement: {
      ...rest,
      broadcastWave: bext !== undefined,
      ...(credential === undefined
        ? {}
        : { credential: { offset: credential.offset, length: credential.length } }),
    },
    // The signature is checked once, here; a verify call only reads the result.
    ...(embedded === undefined ? {} : { embedded }),
  };
}

function alreadyUsed(): DomainError {
  return new DomainError('conflict', 'The slot has been used.', { reason: 'upload_already_used' });
}

function nowSeconds(clock: Clock): number {
  return Math.floor(clock.now() / 1000);
}
