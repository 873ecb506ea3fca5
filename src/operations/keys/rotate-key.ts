import { hkdfSync } from 'node:crypto';
import { defined } from '../../domain/defined.js';
import { DomainError } from '../../domain/errors.js';
import { type Environment, formatApiKey } from '../../domain/partner-key.js';
import type { Secrets } from '../../ports/secrets.js';
import type { KeyStore, Rotation, RotationReplay } from '../../ports/stores.js';
import type { Clock, Ids } from '../../ports/system.js';
import type { Caller } from '../caller.js';
import { REPLAY_SECONDS } from '../idempotency.js';
import type { RateLimits } from '../usage/rate-limits.js';
import { hashApiKey, secretMatches } from './authenticate.js';

/** Seconds for which the calling key stays valid after its rotation (rule 4.7). */
export const GRACE_SECONDS = 72 * 3600;

/** 16 to 128 visible ASCII characters. */
const IDEMPOTENCY_KEY = /^[\x21-\x7e]{16,128}$/;

export interface RotatedKey {
  readonly apiKey: string;
  readonly keyId: string;
  readonly name: string;
  readonly previousKeyExpiresAt: number;
}

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
 * The successor of a key, a single one, whoever asks how often. The lock keeps this process's duplicates from
 * spending the rotation rate; between processes the store decides, and every process responds with the
 * rotation that holds. A process killed before that write leaves no new secret; after the write every replay
 * derives the same one.
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
    // Only now: replays do not spend the rotation rate.
    deps.limits.spend(caller.partnerId, caller.plan, 'rotation');
    let rotated: RotatedKey | undefined;
    try {
      rotated = await rotate(deps, caller, apiKey, idempotencyKey);
    } finally {
      if (rotated === undefined) deps.limits.giveBack(caller.partnerId, caller.plan, 'rotation');
    }
    if (rotated !== undefined) return { ...rotated, replayed: false };
    // Another process was first.
    const winner = await deps.stores.getRotation(caller.keyId);
    if (winner === undefined) throw new DomainError('forbidden', 'The API key is missing or not valid.');
    return await replay(deps, winner, apiKey, idempotencyKey);
  } finally {
    release();
  }
}

/** @returns undefined where this request did not make the successor */
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
  // The plan is the partner's; name, scopes and public key are the old key's.
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
 * The same result for the same Idempotency-Key in the replay window; another one derives another secret,
 * which is not the successor's.
 */
async function replay(
  deps: RotateKeyDeps,
  rotation: Rotation,
  apiKey: string,
  idempotencyKey: string,
): Promise<RotatedKey & { readonly replayed: boolean }> {
  if (rotation.replay !== undefined && Math.floor(deps.clock.now() / 1000) < rotation.replayUntil) {
    const successor = await deps.stores.getKey(rotation.newKeyId);
    if (successor === undefined) throw new Error('a rotation without its successor');
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
  throw new DomainError('conflict', 'The key has been rotated and is in its grace window.', {
    reason: 'already_rotated',
  });
}

/**
 * The successor's secret comes from what only the caller has, its own key and its Idempotency-Key, and from
 * the service's secret and the rotation's nonce. Nothing of the caller's is stored, so a leaked key and a
 * copy of the stores do not give it; and the nonce is removed after the replay window, so that from then on
 * nothing does. HKDF: RFC 5869.
 */
export function deriveSuccessor(
  { environment, secrets }: Pick<RotateKeyDeps, 'environment' | 'secrets'>,
  { partnerId, keyId, newKeyId }: Pick<Rotation, 'partnerId' | 'keyId' | 'newKeyId'>,
  { nonce, secretId }: RotationReplay,
  { apiKey, idempotencyKey }: { readonly apiKey: string; readonly idempotencyKey: string },
): string {
  const secret = secrets.find('rotation', secretId);
  if (secret === undefined) throw new Error('the secret of this rotation is not kept any more');
  const info = JSON.stringify(['takemark rotation', environment, partnerId, keyId, newKeyId, nonce]);
  return formatApiKey(
    environment,
    newKeyId,
    new Uint8Array(hkdfSync('sha256', JSON.stringify([apiKey, idempotencyKey]), secret.key, info, 32)),
  );
}

/** Time for which a duplicate waits for the request before it (rule 4.11). */
const WAIT_MS = 5000;

/** Locks of keys: one rotation of a key at a time in this process, the others in line. */
export interface RotationLocks {
  /**
   * @returns gives the lock to the next in line; safe to call twice
   * @throws DomainError `conflict` / `rotation_in_progress` after 5 s
   */
  take(keyId: string): Promise<() => void>;
}

export function createRotationLocks(waitMs: number = WAIT_MS): RotationLocks {
  /** For each key that is being rotated, who waits for it. */
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
