import { createHmac, timingSafeEqual } from 'node:crypto';
import { DomainError } from '../../domain/errors.js';
import type { PartnerKey, Plan } from '../../domain/partner.js';
import { keyStatus } from '../../domain/partner.js';
import type { Environment } from '../../domain/partner-key.js';
import { parseApiKey } from '../../domain/partner-key.js';
import type { Clock } from '../../ports/clock.js';
import type { Secrets } from '../../ports/secrets.js';
import type { KeyStore, PartnerStore } from '../../ports/stores.js';
import type { Caller } from '../operations.js';
import type { KeyUses } from './key-uses.js';

export interface AuthenticateDeps {
  readonly environment: Environment;
  readonly plans: ReadonlyMap<string, Plan>;
  readonly secrets: Secrets;
  readonly stores: KeyStore & PartnerStore;
  readonly clock: Clock;
  readonly uses: KeyUses;
}

/**
 * "A missing or invalid key, or an action not allowed for the key, yields 403": the same refusal for every
 * reason.
 */
function refused(): DomainError {
  return new DomainError('forbidden', 'The API key is missing or not valid.');
}

export function hashApiKey(apiKey: string, pepper: Uint8Array): string {
  return createHmac('sha256', pepper).update(apiKey).digest('hex');
}

/**
 * Shape, environment and checksum first, without a store; then one read; then the keyed hash, in constant
 * time.
 */
export async function authenticate(deps: AuthenticateDeps, apiKey: string | undefined): Promise<Caller> {
  const keyId = apiKey === undefined ? undefined : parseApiKey(deps.environment, apiKey);
  if (apiKey === undefined || keyId === undefined) throw refused();
  const key = await deps.stores.getKey(keyId);
  const now = Math.floor(deps.clock.now() / 1000);
  if (key === undefined || !secretMatches(deps.secrets, key, apiKey) || !isLive(key, now)) throw refused();
  const partner = await deps.stores.getPartner(key.partnerId);
  const plan = partner === undefined ? undefined : deps.plans.get(partner.plan);
  if (plan === undefined) throw refused();
  deps.uses.note(key.partnerId, keyId, now);
  return {
    partnerId: key.partnerId,
    keyId,
    scopes: key.scopes,
    plan,
    ...(key.publicKey === undefined ? {} : { publicKey: key.publicKey }),
  };
}

/** In constant time. */
export function secretMatches(secrets: Secrets, key: PartnerKey, apiKey: string): boolean {
  const pepper = secrets.find('key-pepper', key.pepperId);
  return (
    pepper !== undefined &&
    timingSafeEqual(Buffer.from(hashApiKey(apiKey, pepper.key), 'hex'), Buffer.from(key.secretHash, 'hex'))
  );
}

/** "The calling key stays valid until `previousKeyExpiresAt`." */
function isLive(key: PartnerKey, now: number): boolean {
  const status = keyStatus(key, now);
  return status === 'active' || status === 'expiring';
}
