import { DomainError } from '../../domain/errors.js';

/** Which slots are being posted to in this process, and how many a partner has in flight. */
export interface UploadClaims {
  /**
   * @returns gives the claim back; safe to call twice
   * @throws DomainError `conflict` / `upload_in_progress`, or `rate_limited` / `concurrency_exceeded`
   */
  claim(uploadId: string, partnerId: string, limit: number): () => void;
}

export function createUploadClaims(): UploadClaims {
  const slots = new Set<string>();
  const inFlight = new Map<string, number>();
  return {
    claim(uploadId, partnerId, limit) {
      if (slots.has(uploadId))
        throw new DomainError('conflict', 'The slot is being posted to.', { reason: 'upload_in_progress' });
      const count = inFlight.get(partnerId) ?? 0;
      if (count >= limit) {
        throw new DomainError('rate_limited', `The plan allows ${limit} uploads at a time.`, {
          reason: 'concurrency_exceeded',
          retryAfterSeconds: 1,
        });
      }
      slots.add(uploadId);
      inFlight.set(partnerId, count + 1);
      return () => {
        if (!slots.delete(uploadId)) return;
        const left = (inFlight.get(partnerId) ?? 1) - 1;
        if (left === 0) inFlight.delete(partnerId);
        else inFlight.set(partnerId, left);
      };
    },
  };
}
