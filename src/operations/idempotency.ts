import { createHash } from 'node:crypto';
import { DomainError } from '../domain/errors.js';

/** Seconds for which an Idempotency-Key stands for what was done under it (rules 4.9, 10.7 and 12.18). */
export const REPLAY_SECONDS = 24 * 3600;

/** Digest of what a key is bound to: of its scope, or of a complete request. No store keeps either itself. */
export function idempotencyDigest(...parts: readonly string[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex');
}

export function idempotencyKeyReused(): DomainError {
  return new DomainError('conflict', 'The Idempotency-Key was used with another request.', {
    reason: 'idempotency_key_reused',
  });
}
