import { createHash, hkdfSync } from 'node:crypto';
import { DomainError } from '../domain/errors.js';
import type { Environment } from '../domain/partner-key.js';
import { formatApiKey } from '../domain/partner-key.js';
import type { Clock } from '../ports/clock.js';
import type { Ids } from '../ports/ids.js';
import type { Secrets } from '../ports/secrets.js';
import type { KeyStore, Rotation } from '../ports/stores.js';
import { hashApiKey } from './authenticate.js';
import type { Caller, RotatedKey } from './operations.js';
import type { RateLimits } from './rate-limits.js';
import { requireScope } from './require-scope.js';
import type { RotationClaims } from './rotation-claims.js';

/** "The calling key stays valid until `previousKeyExpiresAt` (72 hours)." */
export const GRACE_SECONDS = 72 * 3_600;
/** "A repeated `Idempotency-Key` within 24 hours replays the original response." */
export const REPLAY_SECONDS = 24 * 3_600;

/** 16 to 128 visible ASCII characters. */
const IDEMPOTENCY_KEY = /^[\x21-\x7e]{16,128}$/;

export interface RotateKeyDeps {
  readonly stores: KeyStore;
  readonly environment: Environment;
  readonly secrets: Secrets;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly limits: RateLimits;
  readonly claims: RotationClaims;
}

/**
 * One successor for a key, whoever asks how often. The claim keeps this process's duplicates from spending the lane; between
 * processes the store decides, and everyone answers by the rotation that holds. Killed before that write there is no new
 * secret, killed after it every replay derives the same one.
 */
export async function rotateKey(deps: RotateKeyDeps, caller: Caller, apiKey: string, idempotencyKey: string): Promise<RotatedKey & { readonly replayed: boolean }> {
  requireScope(caller, 'keys');
  if (!IDEMPOTENCY_KEY.test(idempotencyKey)) {
    throw new DomainError('invalid_request', 'The Idempotency-Key must be 16 to 128 visible ASCII characters.', { reason: 'invalid_member' });
  }
  // "Scoped to environment, partner and calling key."
  const idempotencySha256 = createHash('sha256').update(JSON.stringify([deps.environment, caller.partnerId, caller.keyId, idempotencyKey])).digest('hex');
  const release = await deps.claims.take(caller.keyId);
  try {
    const earlier = await deps.stores.getRotation(caller.keyId);
    if (earlier !== undefined) return await replay(deps, earlier, apiKey, idempotencySha256);
    // "Replays do not spend the rotation lane": only now.
    deps.limits.spend(caller.partnerId, caller.plan, 'rotation');
    let rotation: Rotation | undefined;
    try {
      rotation = await rotate(deps, caller, apiKey, idempotencySha256);
    } finally {
      if (rotation === undefined) deps.limits.giveBack(caller.partnerId, caller.plan, 'rotation');
    }
    if (rotation !== undefined) return { ...(await answer(deps, rotation, apiKey)), replayed: false };
    // Another process was first.
    const winner = await deps.stores.getRotation(caller.keyId);
    if (winner === undefined) throw new DomainError('forbidden', 'The API key is missing or not valid.');
    return await replay(deps, winner, apiKey, idempotencySha256);
  } finally {
    release();
  }
}

/** @returns undefined where this request did not make the successor */
async function rotate(deps: RotateKeyDeps, caller: Caller, apiKey: string, idempotencySha256: string): Promise<Rotation | undefined> {
  const key = await deps.stores.getKey(caller.keyId);
  if (key === undefined) return undefined;
  const now = Math.floor(deps.clock.now() / 1000);
  const rotation: Rotation = {
    keyId: key.keyId,
    partnerId: key.partnerId,
    idempotencySha256,
    newKeyId: deps.ids.next('key'),
    nonce: Buffer.from(deps.ids.random(32)).toString('hex'),
    secretId: deps.secrets.current('rotation').id,
    rotatedAt: now,
    previousKeyExpiresAt: now + GRACE_SECONDS,
    replayUntil: now + REPLAY_SECONDS,
  };
  const pepper = deps.secrets.current('key-pepper');
  const secretHash = hashApiKey(deriveSuccessor(deps, rotation, apiKey), pepper.key);
  // "Creates a new key on the same plan": the plan is the partner's; name and scopes are the old key's.
  const successor = { keyId: rotation.newKeyId, partnerId: key.partnerId, name: key.name, scopes: key.scopes, secretHash, pepperId: pepper.id, createdAt: now };
  const audit = { partnerId: key.partnerId, action: 'key_rotated', at: now, actor: key.keyId, subjects: [key.keyId, rotation.newKeyId] } as const;
  const holding = await deps.stores.rotateKey(rotation, successor, audit);
  return holding?.newKeyId === rotation.newKeyId ? holding : undefined;
}

/** "Without a key that is being replayed, a retry after a completed rotation is refused with 409." */
async function replay(deps: RotateKeyDeps, rotation: Rotation, apiKey: string, idempotencySha256: string): Promise<RotatedKey & { readonly replayed: boolean }> {
  if (rotation.idempotencySha256 !== idempotencySha256 || Math.floor(deps.clock.now() / 1000) >= rotation.replayUntil) {
    throw new DomainError('conflict', 'The key has been rotated and is in its grace window.', { reason: 'already_rotated' });
  }
  return { ...(await answer(deps, rotation, apiKey)), replayed: true };
}

async function answer(deps: RotateKeyDeps, rotation: Rotation, apiKey: string): Promise<RotatedKey> {
  const successor = await deps.stores.getKey(rotation.newKeyId);
  if (successor === undefined) throw new Error('a rotation without its successor');
  return { apiKey: deriveSuccessor(deps, rotation, apiKey), keyId: rotation.newKeyId, name: successor.name, previousKeyExpiresAt: rotation.previousKeyExpiresAt };
}

/**
 * The successor's secret comes from the caller's own key, the service's secret and the rotation's nonce: neither the disk alone
 * nor the disk with the service's secrets gives it, and every replay gives the same bytes.
 */
export function deriveSuccessor({ environment, secrets }: Pick<RotateKeyDeps, 'environment' | 'secrets'>, rotation: Pick<Rotation, 'partnerId' | 'keyId' | 'newKeyId' | 'nonce' | 'secretId'>, apiKey: string): string {
  const secret = secrets.find('rotation', rotation.secretId);
  if (secret === undefined) throw new Error('the secret of this rotation is not kept any more');
  const info = JSON.stringify(['takemark rotation', environment, rotation.partnerId, rotation.keyId, rotation.newKeyId, rotation.nonce]);
  return formatApiKey(environment, rotation.newKeyId, new Uint8Array(hkdfSync('sha256', apiKey, secret.key, info, 32)));
}
