import type { ReviewReminder } from '../../domain/events.js';
import type { RetentionStore } from '../../ports/stores.js';
import { before, reminderKey } from './keys.js';
import type { Outbox } from './outbox.js';
import type { Rows } from './rows.js';

export function reminderStore(rows: Rows, outbox: Outbox): RetentionStore {
  return {
    scheduleReminders: (reminders) =>
      rows.run((tx) => {
        for (const reminder of reminders) tx.put(reminderKey(reminder), reminder);
      }),

    async dueReminders(now, limit) {
      const due = await rows.soundEntries<ReviewReminder>(before(now + 1, 'notice'), limit);
      return due.map(([, reminder]) => reminder);
    },

    completeReminder: (reminder, event) =>
      rows.run((tx) => {
        const key = reminderKey(reminder);
        if (tx.get(key) === undefined) return;
        tx.delete(key);
        if (event !== undefined) outbox.add(tx, event);
      }),
  };
}
