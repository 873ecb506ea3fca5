import type { ReviewStore } from '../../../ports/stores.js';
import { numberIn, type Session, textIn } from '../driver/session.js';
import type { IdempotencyRecords } from '../proofs/idempotency-records.js';

/**
 * Idempotency-Keys of reviews, in the table of those of issuing, whose digests name the operation. The review's id
 * stands where an issuing has its operation's: it is what the call creates, and no other call does.
 */
export function reviewKeyTaking(session: Session, records: IdempotencyRecords): ReviewStore['takeReviewKey'] {
  return async (replay, now) => {
    for (;;) {
      const record = await records.get(replay.key);
      const expiresAt = record && numberIn(record, 'expires_at')!;
      if (record !== undefined && expiresAt! > now)
        return {
          key: replay.key,
          requestSha256: textIn(record, 'request_sha256')!,
          proofId: textIn(record, 'proof_id')!,
          reviewId: textIn(record, 'op')!,
          expiresAt: expiresAt!,
        };
      const { applied } = await session.lightweightTransaction(
        records.taking(replay, record, replay.reviewId, now),
      );
      if (applied) return replay;
    }
  };
}
