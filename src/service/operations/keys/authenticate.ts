import { createHmac, timingSafeEqual } from 'node:crypto';
import { defined } from '../../../core/domain/defined.js';
import { DomainError } from '../../../core/domain/errors.js';
import { keyStatus, type PartnerKey } from '../../domain/partner.js';
import { type Environment, parseApiKey } from '../../domain/partner-key.js';
import { testAnswerOf } from '../../domain/test-key.js';
import type { Secrets } from '../../ports/secrets.js';
import type { KeyStore, PartnerStore } from '../../ports/stores.js';
import type { Clock } from '../../ports/system.js';
import type { Caller } from '../caller.js';
import type { Plans } from '../partners/plans.js';

export interface AuthenticateDeps {
  readonly environment: Environment;
  readonly plans: Plans;
  readonly secrets: Secrets;
  readonly stores: KeyStore & PartnerStore;
  readonly clock: Clock;
  readonly uses: KeyUses;
}

/** Returns the same error for a malformed, foreign, unknown, expired and revoked key. */
export function invalidKey(): DomainError {
  return new DomainError('forbidden', 'The API key in the header `x-api-key` is not valid.');
}

export function hashApiKey(apiKey: string, pepper: Uint8Array): string {
  return createHmac('sha256', pepper).update(apiKey).digest('hex');
}

/**
 * Returns the caller of an API key. Shape, environment and checksum are checked first, without a store. Then
 * the key is read once, and its keyed hash is compared in constant time.
 * @param apiKey the header as sent
 * @throws DomainError `forbidden`, with the reason `key_missing` only if no key was sent
 */
export async function authenticate(deps: AuthenticateDeps, apiKey: string | undefined): Promise<Caller> {
  if (apiKey === undefined || apiKey === '')
    throw new DomainError('forbidden', 'The header `x-api-key` is missing.', { reason: 'key_missing' });
  const keyId = parseApiKey(deps.environment, apiKey);
  if (keyId === undefined) throw invalidKey();
  const key = await deps.stores.getKey(keyId);
  const now = Math.floor(deps.clock.now() / 1000);
  if (key === undefined || !secretMatches(deps.secrets, key, apiKey) || !isLive(key, now)) throw invalidKey();
  const partner = await deps.stores.getPartner(key.partnerId);
  const plan = partner && (await deps.plans.of(partner));
  if (plan === undefined) throw invalidKey();
  deps.uses.note(key.partnerId, keyId, now);
  const { partnerId, scopes, publicKey, name } = key;
  return defined({
    partnerId,
    keyId,
    scopes,
    plan,
    publicKey,
    testAnswer: testAnswerOf(deps.environment, name),
  });
}

/** Compares hashes in constant time. */
export function secretMatches(secrets: Secrets, key: PartnerKey, apiKey: string): boolean {
  const pepper = secrets.find('key-pepper', key.pepperId);
  return (
    pepper !== undefined &&
    timingSafeEqual(Buffer.from(hashApiKey(apiKey, pepper.key), 'hex'), Buffer.from(key.secretHash, 'hex'))
  );
}

/** Reports whether a key is valid. A rotated key stays valid until the end of its grace window. */
function isLive(key: PartnerKey, now: number): boolean {
  const status = keyStatus(key, now);
  return status === 'active' || status === 'expiring';
}

/**
 * The number of keys whose last use is held between two batches. Beyond it, the key that was added first is
 * dropped.
 */
const HELD = 100_000;

/** The times of keys' last use, collected here and written in batches. `lastUsedAt` is exact to a minute. */
export interface KeyUses {
  /** Notes a use of the key at `at` unix seconds. Never fails and never waits. */
  note(partnerId: string, keyId: string, at: number): void;
  /** Writes the uses since the last flush. A failed batch is kept for the next flush. */
  flush(): Promise<void>;
}

export function createKeyUses(stores: Pick<KeyStore, 'touchKeys'>): KeyUses {
  let held = new Map<string, { readonly partnerId: string; readonly keyId: string; readonly at: number }>();
  return {
    note(partnerId, keyId, at) {
      if (held.get(keyId)?.at === at) return;
      if (held.size >= HELD && !held.has(keyId)) held.delete(held.keys().next().value!);
      held.set(keyId, { partnerId, keyId, at });
    },
    async flush() {
      if (held.size === 0) return;
      const batch = held;
      held = new Map();
      try {
        await stores.touchKeys([...batch.values()]);
      } catch (error) {
        for (const [keyId, use] of batch) if (!held.has(keyId) && held.size < HELD) held.set(keyId, use);
        throw error;
      }
    },
  };
}
