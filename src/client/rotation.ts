import { createHash, randomUUID } from 'node:crypto';
import { type CallOptions, type Connection, PRINTABLE } from './connection.js';
import { TakemarkError } from './errors.js';
import { isTransient } from './retry.js';
import type { Responded, RotatedKey } from './types.js';

/** Progress of a rotation. A finished one holds a secret, so it belongs where secrets are kept. */
export interface RotationState {
  readonly idempotencyKey: string;
  /** Mark of the key that rotates: the first half of its SHA-256, from which the key cannot be found. */
  readonly callingKey: string;
  /** Unix seconds. */
  readonly startedAt: number;
  /** The new key; absent while its response has not been seen. */
  readonly rotated?: RotatedKey;
}

/**
 * Where a rotation is remembered. A rotation whose Idempotency-Key is lost is lost itself: the service gives
 * its secret only to who repeats that key, and refuses another rotation of a key in its grace window.
 */
export interface RotationStore {
  /** Loads the state that was saved last, or undefined. */
  load(): Promise<RotationState | undefined>;
  /** Resolves when the state would survive a crash. */
  save(state: RotationState): Promise<void>;
}

export interface RotateOptions extends CallOptions {
  readonly store: RotationStore;
}

export type Rotation = Responded<RotatedKey> & {
  /** True where this is the response to an earlier call. */
  readonly replayed: boolean;
};

/** Seconds in which a repeated Idempotency-Key replays the original response (rule 4.9). */
const REPLAY_SECONDS = 24 * 3600;

/** The one rotation of the key in use, begun or continued; see Client.rotateKey. */
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
    // Done before, and not lost: there is nothing to ask the service for.
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
  // Not under the signal: a response that is here is not given away.
  await store.save({ ...state, rotated: { apiKey: secret, keyId, name, previousKeyExpiresAt } });
  return Object.assign(body, { replayed: headers['idempotency-replayed'] === 'true' });
}

/** A call that meets itself, still running, is told so by a conflict that passes. */
function mayBeReplayed(error: unknown): error is TakemarkError {
  return (
    isTransient(error) ||
    (error instanceof TakemarkError && error.status === 409 && error.reason === 'rotation_in_progress')
  );
}

/** The store may be taken for a new rotation only where what it holds is in use or worthless. */
function refuseToForget({ rotated, startedAt }: RotationState, apiKey: string, now: number): void {
  if (rotated !== undefined) {
    if (rotated.apiKey !== apiKey)
      throw new TakemarkError(
        'rotation_unfinished',
        'the store holds the new secret of another key, which this rotation would overwrite',
      );
  } else if (now < startedAt + REPLAY_SECONDS) {
    throw new TakemarkError(
      'rotation_unfinished',
      'the store holds the unfinished rotation of another key, whose secret would be lost',
    );
  }
}
