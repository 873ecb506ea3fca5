import { createHash } from 'node:crypto';
import { defined } from '../../../core/domain/defined.js';
import { DomainError } from '../../../core/domain/errors.js';
import type { AudioEngine, AudioIngest } from '../../../core/ports/audio-engine.js';
import { MAX_UPLOAD_BYTES } from '../../domain/upload.js';
import type { VerificationResult } from '../../domain/verification.js';
import type { CredentialReader } from '../../ports/credential-reader.js';
import type { UsageCharge } from '../../ports/stores.js';
import type { Ids } from '../../ports/system.js';
import type { Caller } from '../caller.js';
import { idempotencyDigest, idempotencyKeyReused, REPLAY_SECONDS } from '../idempotency.js';
import {
  type FileReceiver,
  keptMeasurement,
  nowSeconds,
  readCredential,
  type UploadLocks,
} from '../uploads/receive-upload.js';
import { charge, requireQuota } from '../usage/quota.js';
import { shareOf } from '../usage/rate-limits.js';
import { type JudgeFileDeps, judgeFile } from './verify-upload.js';

export interface VerifyFileDeps extends JudgeFileDeps {
  readonly engine: AudioEngine;
  readonly ids: Ids;
  readonly uploadLocks: UploadLocks;
  readonly reader: Pick<CredentialReader, 'readEmbedded' | 'readSidecar'>;
  /** Returns the number of processes that share a plan's limits. */
  readonly processes: () => number;
}

/** A verdict, and whether the Idempotency-Key of the call had been charged for the same bytes. */
export interface VerifiedFile {
  readonly result: VerificationResult;
  readonly replayed: boolean;
}

/** A call that may send its file. */
export interface AdmittedFile {
  /** Takes a place in the engine and begins to receive the file. The sidecar has arrived before. */
  open(sidecar: Uint8Array | undefined): FileReceiver<VerifiedFile>;
  /** Gives back the partner's place. It may be called twice. */
  release(): void;
}

/**
 * Admits a call that sends a file and gets its verdict (rule 8.20). Everything that can refuse the call is checked
 * before its body is read. The call stores no facts: only its charge is written, after the verdict is known.
 * @throws DomainError `rate_limited` / `quota_exceeded`, `concurrency_exceeded`
 */
export async function verifyFile(
  deps: VerifyFileDeps,
  caller: Caller,
  { idempotencyKey }: { readonly idempotencyKey?: string | undefined },
): Promise<AdmittedFile> {
  const { partnerId, plan } = caller;
  const id = deps.ids.next('upload');
  const key =
    idempotencyKey === undefined ? undefined : idempotencyDigest('verification', partnerId, idempotencyKey);
  await requireUnit(deps, caller, key);
  const release = deps.uploadLocks.take(id, partnerId, shareOf(plan.concurrentUploads, deps.processes()));
  return { open: (sidecar) => receiver(deps, caller, { id, key, sidecar }), release };
}

/**
 * Refuses the call if the month has no unit left. The repetition of a charged call costs none, so it is admitted.
 * @param key the digest of the Idempotency-Key
 */
async function requireUnit(deps: VerifyFileDeps, caller: Caller, key: string | undefined): Promise<void> {
  const at = nowSeconds(deps.clock);
  try {
    await requireQuota(deps.stores, caller, at);
  } catch (error) {
    if (key === undefined || !(error instanceof DomainError && error.reason === 'quota_exceeded'))
      throw error;
    const { partnerId } = caller;
    if ((await deps.stores.findCharge({ partnerId, dedupeKey: key, at })) === undefined) throw error;
  }
}

interface FileCall {
  /** The id of the call, under which it is charged if it has no Idempotency-Key. */
  readonly id: string;
  readonly key: string | undefined;
  readonly sidecar: Uint8Array | undefined;
}

function receiver(deps: VerifyFileDeps, caller: Caller, call: FileCall): FileReceiver<VerifiedFile> {
  const ingest = deps.engine.open(caller.partnerId);
  let bytes = 0;
  return {
    signal: ingest.signal,
    write(chunk) {
      bytes += chunk.length;
      if (bytes > MAX_UPLOAD_BYTES) {
        ingest.abort();
        throw new DomainError('payload_too_large', `The file must be at most ${MAX_UPLOAD_BYTES} bytes.`, {
          reason: 'body_too_large',
        });
      }
      return ingest.write(chunk);
    },
    async finish() {
      const { partnerId } = caller;
      const file = await measuredFile(deps, partnerId, ingest);
      const sidecar = call.sidecar && (await deps.reader.readSidecar(partnerId, call.sidecar));
      const now = nowSeconds(deps.clock);
      let replayed = false;
      const result = await judgeFile(deps, caller, { ...file, sidecar, now }, async (isBillable) => {
        const charged = chargeOf(call, file.measurement.sha256, now);
        replayed = await settle(deps, caller, charged, isBillable);
      });
      return { result, replayed };
    },
    abort: () => ingest.abort(),
  };
}

/** Ends the file and reads its credential. Gives the memory back before the file is judged. */
async function measuredFile({ reader }: VerifyFileDeps, partnerId: string, ingest: AudioIngest) {
  try {
    const measured = await ingest.end();
    const embedded = await readCredential(reader, partnerId, measured);
    return defined({ measurement: keptMeasurement(measured), embedded });
  } finally {
    ingest.abort();
  }
}

/**
 * Returns the charge of a call. A call with an Idempotency-Key is charged under this key, which the charge binds to the
 * bytes. Any other call is charged under its own id, which no other call has.
 */
function chargeOf(
  { id, key, sidecar }: FileCall,
  sha256: string,
  at: number,
): Omit<UsageCharge, 'partnerId' | 'monthlyQuota'> {
  if (key === undefined) return { operation: 'verify', dedupeKey: id, at, dedupeUntil: at };
  const ofSidecar = sidecar === undefined ? [] : [createHash('sha256').update(sidecar).digest('hex')];
  return {
    operation: 'verify',
    dedupeKey: key,
    at,
    dedupeUntil: at + REPLAY_SECONDS,
    request: idempotencyDigest(sha256, ...ofSidecar),
  };
}

/**
 * Charges a call, or only checks its Idempotency-Key if the call costs nothing.
 * @returns true if an earlier call with the same key and the same bytes was charged
 */
async function settle(
  { stores }: VerifyFileDeps,
  caller: Caller,
  charged: ReturnType<typeof chargeOf>,
  isBillable: boolean,
): Promise<boolean> {
  if (isBillable && caller.testAnswer === undefined)
    return (await charge(stores, caller, charged)) === 'already_charged';
  if (charged.request === undefined) return false;
  const earlier = await stores.findCharge({ ...charged, partnerId: caller.partnerId });
  if (earlier === 'key_reused') throw idempotencyKeyReused();
  return earlier === 'already_charged';
}
