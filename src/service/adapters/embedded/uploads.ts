import { DomainError } from '../../../core/domain/errors.js';
import { extraSecondsOf, FACTS_LIFE_SECONDS } from '../../domain/upload.js';
import type { UploadStore } from '../../ports/stores.js';
import { expiryKey, uploadKey } from './keys.js';
import type { Rows } from './rows.js';

export function uploadStore(rows: Rows): UploadStore {
  return {
    createSlot: (slot) =>
      rows.run((tx) => {
        const key = uploadKey(slot.uploadId);
        const existing = tx.get(key);
        if (existing !== undefined) {
          if (existing.slot.partnerId === slot.partnerId && existing.slot.createdAt === slot.createdAt)
            return;
          throw new DomainError('conflict', 'This id is taken.');
        }
        // The row outlives the slot, unseen, so that a post that began in time finds the row when it ends.
        const { purpose, contentLength = 0, expiresAt } = slot;
        const sweepAt = expiresAt + FACTS_LIFE_SECONDS + extraSecondsOf(purpose, contentLength);
        tx.put(key, { slot, sweepAt });
        tx.put(expiryKey(sweepAt, key), null);
      }),

    async getUpload(uploadId, now) {
      const row = rows.getKept(uploadKey(uploadId));
      if (row === undefined) return undefined;
      const { slot, facts } = row;
      if (facts !== undefined && facts.expiresAt > now) return { slot, facts };
      return facts === undefined && slot.expiresAt > now ? { slot } : undefined;
    },

    putFacts: (facts) =>
      rows.run((tx) => {
        const key = uploadKey(facts.uploadId);
        const row = tx.get(key);
        if (row === undefined) throw new DomainError('not_found', 'There is no such upload.');
        if (row.facts !== undefined) return 'already_used';
        // The row lives at least to the slot's own time, so that a used slot stays used.
        const sweepAt = Math.max(row.sweepAt, facts.expiresAt);
        tx.delete(expiryKey(row.sweepAt, key));
        tx.put(key, { slot: row.slot, facts, sweepAt });
        tx.put(expiryKey(sweepAt, key), null);
        return 'stored';
      }),
  };
}
