import { createHash } from 'node:crypto';
import { DomainError } from '../../core/domain/errors.js';

/** The time in seconds for which an Idempotency-Key returns its first result (rules 4.9, 10.7 and 12.18). */
export const REPLAY_SECONDS = 24 * 3600;

/** Returns the digest of a key with its scope, or of a complete request. Stores keep only the digest. */
export function idempotencyDigest(...parts: readonly string[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex');
}

export function idempotencyKeyReused(): DomainError {
  return new DomainError('conflict', 'The Idempotency-Key was already used for a different request.', {
    reason: 'idempotency_key_reused',
  });
}
