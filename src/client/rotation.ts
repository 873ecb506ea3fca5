import { createHash, randomUUID } from 'node:crypto';
import { type CallOptions, type Connection, PRINTABLE } from './connection.js';
import { TakemarkError } from './errors.js';
import { isTransient } from './retry.js';
import type { Responded, RotatedKey } from './types.js';

/** The progress of a rotation. A finished rotation holds a secret, so store it like a secret. */
export interface RotationState {
  readonly idempotencyKey: string;
  /** The first half of the SHA-256 of the rotating key. The key cannot be derived from it. */
  readonly callingKey: string;
  /** The start of the rotation in unix seconds. */
  readonly startedAt: number;
  /** The new key. Absent until its response has arrived. */
  readonly rotated?: RotatedKey;
}

/**
 * A durable store for a rotation. If the Idempotency-Key is lost, the new secret is lost: the service returns
 * the secret only for the same Idempotency-Key, and refuses another rotation of a key in its grace period.
 */
export interface RotationStore {
  /** Loads the last saved state, or undefined. */
  load(): Promise<RotationState | undefined>;
  /** Saves the state and resolves when it would survive a crash. */
  save(state: RotationState): Promise<void>;
}

export interface RotateOptions extends CallOptions {
  readonly store: RotationStore;
}

export type Rotation = Responded<RotatedKey> & {
  /** True if this is the response to an earlier call. */
  readonly replayed: boolean;
};

/** The seconds during which a repeated Idempotency-Key replays the original response (rule 4.9). */
const REPLAY_SECONDS = 24 * 3600;

/** Starts or continues the rotation of the current key, see `Client.rotateKey`. */
export async function rotate(
  connection: Connection,
  { store, signal }: RotateOptions,
  now = Math.floor(Date.now() / 1000),
): Promise<Rotation> {
  const { apiKey } = connection;
  const callingKey = createHash('sha256').update(apiKey).digest('hex').slice(0, 32);
  signal?.throwIfAborted();
  const saved = await store.load();
  if (saved !== undefined && saved.callingKey === callingKey) {
    // The rotation is finished and its secret is saved, so no call is needed.
    if (saved.rotated !== undefined) return { ...saved.rotated, replayed: true };
  } else if (saved !== undefined) {
    refuseToForget(saved, apiKey, now);
  }
  let state = saved;
  if (state?.callingKey !== callingKey) {
    state = { idempotencyKey: randomUUID(), callingKey, startedAt: now };
    await store.save(state);
  }
  const { headers, body } = await connection.jsonWithHeaders<RotatedKey>(
    {
      method: 'POST',
      path: 'partner/keys/rotate',
      headers: { 'idempotency-key': state.idempotencyKey },
      repeatable: mayBeReplayed,
      signal,
    },
    'a rotated key',
    ({ apiKey: secret, keyId }) =>
      typeof secret === 'string' && PRINTABLE.test(secret) && typeof keyId === 'string',
  );
  const { apiKey: secret, keyId, name, previousKeyExpiresAt } = body;
  // Ignores the signal, so that an abort does not lose a received secret.
  await store.save({ ...state, rotated: { apiKey: secret, keyId, name, previousKeyExpiresAt } });
  return Object.assign(body, { replayed: headers['idempotency-replayed'] === 'true' });
}

/** Returns true also for the transient conflict of an earlier attempt that is still running. */
function mayBeReplayed(error: unknown): error is TakemarkError {
  return (
    isTransient(error) ||
    (error instanceof TakemarkError && error.status === 409 && error.reason === 'rotation_in_progress')
  );
}

/** Throws unless the stored rotation is in use or expired, and may be overwritten. */
function refuseToForget({ rotated, startedAt }: RotationState, apiKey: string, now: number): void {
  if (rotated !== undefined) {
    if (rotated.apiKey !== apiKey)
      throw new TakemarkError(
        'rotation_unfinished',
        'the rotation store holds the new secret of another key, which this rotation would overwrite',
      );
  } else if (now < startedAt + REPLAY_SECONDS) {
    throw new TakemarkError(
      'rotation_unfinished',
      'the rotation store holds an unfinished rotation of another key, whose secret would be lost',
    );
  }
}
