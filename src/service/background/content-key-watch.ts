import { createHash } from 'node:crypto';
import { DomainError, isRecordDamaged } from '../../core/domain/errors.js';
import { CONTENT_KEYS_LOG, contentKeysEntry } from '../domain/service-logs.js';
import type { AuditedStore } from '../ports/audited-store.js';
import type { ContentKeys } from '../ports/content-keys.js';
import type { AuditStore, ProofStore } from '../ports/stores.js';
import type { Clock } from '../ports/system.js';

/** The id of a key that belongs to no proof. It shows whether the keys of this store are in their place. */
export const CANARY = 'content-keys.canary';
/** The number of proofs that are read before the first canary is made. */
const SAMPLED = 20;
const PAGE = 100;

export interface ContentKeyWatchParts {
  /** Stores that decrypt content with the keys. */
  readonly stores: AuditStore & Pick<ProofStore, 'getProof'>;
  readonly audited: Pick<AuditedStore, 'proofs'>;
  /** The keys without a cache, because other processes may make the canary at the same time. */
  readonly keys: Pick<ContentKeys, 'obtain' | 'read'>;
  readonly clock: Clock;
}

/** Keys that are not those of the store. */
export interface LostKeys {
  /** The identifier of exactly this loss, 16 hexadecimal digits. */
  readonly code: string;
}

/**
 * Compares the content keys with the store, at the start and while they do not match. The store records the
 * digest of one key, the canary. If the canary is absent or another one, a volume is not mounted, another
 * directory or bucket is configured, or the keys are lost. Every call would then fail or, worse, issue proofs
 * whose keys are in the wrong place.
 */
export class ContentKeyWatch {
  readonly #parts: ContentKeyWatchParts;
  #lost: LostKeys | undefined;
  #hasLooked = false;

  constructor(parts: ContentKeyWatchParts) {
    this.#parts = parts;
  }

  get lost(): LostKeys | undefined {
    return this.#lost;
  }

  /** True when a look found the keys of the store. */
  get isSettled(): boolean {
    return this.#hasLooked && this.#lost === undefined;
  }

  /**
   * Looks for the canary, and makes it in a store that has none. After a failure the previous result remains.
   * @param accepted the code of a loss that the operator accepts. The present keys then become the store's.
   */
  async look(accepted?: string): Promise<void> {
    const { keys } = this.#parts;
    const recorded = await this.#recorded();
    if (recorded !== undefined) {
      const key = await keys.read(CANARY);
      this.#lost =
        key !== undefined && digestOf(key) === recorded ? undefined : { code: recorded.slice(0, 16) };
    } else this.#lost = await this.#lostBeforeCanary();
    this.#hasLooked = true;
    if (this.#lost !== undefined && this.#lost.code !== accepted) return;
    if (recorded === undefined || this.#lost !== undefined) await this.#record();
    this.#lost = undefined;
  }

  /** @throws DomainError `unavailable` / `content_keys_lost`, or `restoring` before the first look */
  assertPresent(): void {
    if (!this.#hasLooked)
      throw new DomainError('unavailable', 'The content keys have not been compared with the store yet.', {
        reason: 'restoring',
        retryAfterSeconds: 30,
      });
    if (this.#lost !== undefined)
      throw new DomainError(
        'unavailable',
        'The content keys of this store are not in their place. Mount their volume, or correct their directory or bucket.',
        { reason: 'content_keys_lost', retryAfterSeconds: 30 },
      );
  }

  /** Returns the digest of the canary that was recorded last. */
  async #recorded(): Promise<string | undefined> {
    let digest: string | undefined;
    for (let from = 1; ; ) {
      const page = await this.#parts.stores.readAudit(CONTENT_KEYS_LOG, from, PAGE);
      const last = page.at(-1);
      if (last === undefined) return digest;
      [digest] = last.subjects;
      from = last.sequence + 1;
    }
  }

  /** Makes the canary if none exists, and records its digest. */
  async #record(): Promise<void> {
    const { stores, keys, clock } = this.#parts;
    await keys.obtain(CANARY);
    // Some buckets let the processes of a new cluster overwrite each other's canary. So each process reads the canary
    // again after its entry, and the last entry is that of the canary which remains.
    let recorded: string | undefined;
    for (;;) {
      const canary = await keys.read(CANARY);
      if (canary === undefined) throw new Error('the canary of the content keys was removed');
      const digest = digestOf(canary);
      if (digest === recorded) return;
      await stores.appendAudit(contentKeysEntry(digest, Math.floor(clock.now() / 1000)));
      recorded = await this.#recorded();
    }
  }

  /** Reports a store of an earlier version, which made no canary, whose proofs cannot be decrypted. */
  async #lostBeforeCanary(): Promise<LostKeys | undefined> {
    const { stores, audited } = this.#parts;
    let unreadable: string | undefined;
    for (const proofId of (await audited.proofs(undefined, SAMPLED)).items) {
      const proof = await stores.getProof(proofId).catch((error: unknown) => {
        if (!isRecordDamaged(error)) throw error;
        unreadable ??= proofId;
        return undefined;
      });
      if (proof?.state === 'issued') return undefined;
    }
    return unreadable === undefined ? undefined : { code: digestOf(Buffer.from(unreadable)).slice(0, 16) };
  }
}

function digestOf(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}
