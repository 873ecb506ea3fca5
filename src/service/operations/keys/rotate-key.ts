import { hkdfSync } from 'node:crypto';
import { defined } from '../../../core/domain/defined.js';
import { DomainError } from '../../../core/domain/errors.js';
import type { ResultOf } from '../../contract/results.js';
import { type Environment, formatApiKey } from '../../domain/partner-key.js';
import type { Secrets } from '../../ports/secrets.js';
import type { KeyStore, Rotation, RotationReplay } from '../../ports/stores.js';
import type { Clock, Ids } from '../../ports/system.js';
import type { Caller } from '../caller.js';
import { REPLAY_SECONDS } from '../idempotency.js';
import type { RateLimits } from '../usage/rate-limits.js';
import { hashApiKey, invalidKey, secretMatches } from './authenticate.js';

/** The time in seconds for which the calling key stays valid after its rotation (rule 4.7). */
export const GRACE_SECONDS = 72 * 3600;

/** The allowed form of an Idempotency-Key: 16 to 128 visible ASCII characters. */
const IDEMPOTENCY_KEY = /^[\x21-\x7e]{16,128}$/;

type RotatedKey = ResultOf<'rotateKey'>;

export interface RotateKeyDeps {
  readonly stores: KeyStore;
  readonly environment: Environment;
  readonly secrets: Secrets;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly limits: RateLimits;
  readonly rotationLocks: RotationLocks;
}

/**
 * Rotates a key. A key has exactly one successor, however often its rotation is requested. The lock keeps
 * duplicates in this process from spending the rotation rate. Between processes the store decides, and every
 * process responds with the stored rotation. A process that is killed before the write leaves no new secret.
 * After the write, every replay derives the same secret.
 * @param apiKey the calling key itself, from which the new secret is derived
 */
export async function rotateKey(
  deps: RotateKeyDeps,
  caller: Caller,
  apiKey: string,
  idempotencyKey: string,
): Promise<RotatedKey & { readonly replayed: boolean }> {
  if (!IDEMPOTENCY_KEY.test(idempotencyKey)) {
    throw new DomainError(
      'invalid_request',
      'The Idempotency-Key must be 16 to 128 visible ASCII characters.',
      { reason: 'invalid_member' },
    );
  }
  const release = await deps.rotationLocks.take(caller.keyId);
  try {
    const earlier = await deps.stores.getRotation(caller.keyId);
    if (earlier !== undefined) return await replay(deps, earlier, apiKey, idempotencyKey);
    // Spent only here, because replays must not spend the rotation rate.
    deps.limits.spend(caller.partnerId, caller.plan, 'rotation');
    let rotated: RotatedKey | undefined;
    try {
      rotated = await rotate(deps, caller, apiKey, idempotencyKey);
    } finally {
      if (rotated === undefined) deps.limits.giveBack(caller.partnerId, caller.plan, 'rotation');
    }
    if (rotated !== undefined) return { ...rotated, replayed: false };
    // Another process rotated the key first.
    const winner = await deps.stores.getRotation(caller.keyId);
    if (winner === undefined) throw invalidKey();
    return await replay(deps, winner, apiKey, idempotencyKey);
  } finally {
    release();
  }
}

/**
 * Creates the successor.
 * @returns undefined when this request did not create the successor
 */
async function rotate(
  deps: RotateKeyDeps,
  caller: Caller,
  apiKey: string,
  idempotencyKey: string,
): Promise<RotatedKey | undefined> {
  const key = await deps.stores.getKey(caller.keyId);
  if (key === undefined) return undefined;
  const now = Math.floor(deps.clock.now() / 1000);
  const replay = {
    nonce: Buffer.from(deps.ids.random(32)).toString('hex'),
    secretId: deps.secrets.current('rotation').id,
  };
  const rotation: Rotation = {
    keyId: key.keyId,
    partnerId: key.partnerId,
    newKeyId: deps.ids.next('key'),
    rotatedAt: now,
    previousKeyExpiresAt: now + GRACE_SECONDS,
    replayUntil: now + REPLAY_SECONDS,
    replay,
  };
  const pepper = deps.secrets.current('key-pepper');
  const secret = deriveSuccessor(deps, rotation, replay, { apiKey, idempotencyKey });
  // The successor keeps the old key's name, scopes and public key. The plan belongs to the partner.
  const { name, scopes, publicKey } = key;
  const secretHash = hashApiKey(secret, pepper.key);
  const successor = defined({
    keyId: rotation.newKeyId,
    partnerId: key.partnerId,
    name,
    scopes,
    secretHash,
    pepperId: pepper.id,
    createdAt: now,
    publicKey,
  });
  const audit = {
    partnerId: key.partnerId,
    action: 'key_rotated',
    at: now,
    actor: key.keyId,
    subjects: [key.keyId, rotation.newKeyId],
  } as const;
  const holding = await deps.stores.rotateKey(rotation, successor, audit);
  if (holding?.newKeyId !== rotation.newKeyId) return undefined;
  return {
    apiKey: secret,
    keyId: rotation.newKeyId,
    name: key.name,
    previousKeyExpiresAt: rotation.previousKeyExpiresAt,
  };
}

/**
 * Returns the same result for the same Idempotency-Key in the replay window. Another Idempotency-Key derives
 * another secret, which does not match the successor.
 * @throws DomainError `conflict` / `already_rotated`
 */
async function replay(
  deps: RotateKeyDeps,
  rotation: Rotation,
  apiKey: string,
  idempotencyKey: string,
): Promise<RotatedKey & { readonly replayed: boolean }> {
  if (rotation.replay !== undefined && Math.floor(deps.clock.now() / 1000) < rotation.replayUntil) {
    const successor = await deps.stores.getKey(rotation.newKeyId);
    if (successor === undefined) throw new Error('the successor of this rotation is missing');
    const secret = deriveSuccessor(deps, rotation, rotation.replay, { apiKey, idempotencyKey });
    if (secretMatches(deps.secrets, successor, secret)) {
      return {
        apiKey: secret,
        keyId: rotation.newKeyId,
        name: successor.name,
        previousKeyExpiresAt: rotation.previousKeyExpiresAt,
        replayed: true,
      };
    }
  }
  throw new DomainError('conflict', 'The key was already rotated. Use the new key that replaced it.', {
    reason: 'already_rotated',
  });
}

/**
 * Derives the successor's secret with HKDF (RFC 5869). The inputs are the caller's API key and
 * Idempotency-Key, the service's secret and the rotation's nonce. The store keeps neither input of the
 * caller, so a leaked key and a copy of the stores together do not reveal the secret. The nonce is removed
 * after the replay window, and the secret cannot be derived from then on.
 */
export function deriveSuccessor(
  { environment, secrets }: Pick<RotateKeyDeps, 'environment' | 'secrets'>,
  { partnerId, keyId, newKeyId }: Pick<Rotation, 'partnerId' | 'keyId' | 'newKeyId'>,
  { nonce, secretId }: RotationReplay,
  { apiKey, idempotencyKey }: { readonly apiKey: string; readonly idempotencyKey: string },
): string {
  const secret = secrets.find('rotation', secretId);
  if (secret === undefined) throw new Error('the service secret of this rotation is missing');
  const info = JSON.stringify(['takemark rotation', environment, partnerId, keyId, newKeyId, nonce]);
  return formatApiKey(
    environment,
    newKeyId,
    new Uint8Array(hkdfSync('sha256', JSON.stringify([apiKey, idempotencyKey]), secret.key, info, 32)),
  );
}

/** The time in milliseconds for which a duplicate waits for the request before it (rule 4.11). */
const WAIT_MS = 5000;

/**
 * The locks of keys. One rotation of a key runs at a time in this process, and further ones wait in order.
 */
export interface RotationLocks {
  /**
   * Waits for the lock of a key.
   * @returns a function that passes the lock to the next in line. It is safe to call twice
   * @throws DomainError `conflict` / `rotation_in_progress` after 5 s
   */
  take(keyId: string): Promise<() => void>;
}

export function createRotationLocks(waitMs: number = WAIT_MS): RotationLocks {
  /** The waiting requests for each key that is being rotated. */
  const lines = new Map<string, (() => void)[]>();
  const lock = (keyId: string): (() => void) => {
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      const next = lines.get(keyId)?.shift();
      if (next === undefined) lines.delete(keyId);
      else next();
    };
  };
  return {
    async take(keyId) {
      const line = lines.get(keyId);
      if (line === undefined) {
        lines.set(keyId, []);
        return lock(keyId);
      }
      await new Promise<void>((resolve, reject) => {
        const enter = (): void => {
          clearTimeout(timer);
          resolve();
        };
        const timer = setTimeout(() => {
          line.splice(line.indexOf(enter), 1);
          reject(
            new DomainError('conflict', 'The key is being rotated by another request.', {
              reason: 'rotation_in_progress',
            }),
          );
        }, waitMs);
        line.push(enter);
      });
      return lock(keyId);
    },
  };
}
