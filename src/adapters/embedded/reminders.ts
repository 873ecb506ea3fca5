import type { ReviewReminder } from '../../domain/events.js';
import type { RetentionStore } from '../../ports/stores.js';
import { before, noticeKey } from './keys.js';
import type { Outbox } from './outbox.js';
import type { Rows } from './rows.js';

export function retentionStore(rows: Rows, outbox: Outbox): RetentionStore {
  return {
    scheduleReminders: (notices) =>
      rows.run((tx) => {
        for (const notice of notices) tx.put(noticeKey(notice), notice);
      }),

    async dueReminders(now, limit) {
      const due = await rows.soundEntries<ReviewReminder>(before(now + 1, 'notice'), limit);
      return due.map(([, notice]) => notice);
    },

    completeReminder: (notice, event) =>
      rows.run((tx) => {
        const key = noticeKey(notice);
        if (tx.get(key) === undefined) return;
        tx.delete(key);
        if (event !== undefined) outbox.add(tx, event);
      }),
  };
}
