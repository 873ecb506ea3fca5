import { isRecordDamaged } from '../../../../core/domain/errors.js';
import type { ReviewReminder, ReviewReminderKind } from '../../../domain/events.js';
import type { RetentionStore } from '../../../ports/stores.js';
import type { Outbox } from '../commit/outbox.js';
import { shardOf, timeBucketOf } from '../commit/time-bucket.js';
import { Watermark } from '../commit/watermark.js';
import { numberIn, type Row, type Session, textIn } from '../driver/session.js';
import type { ProofRows } from '../proofs/proof-rows.js';

const INSERT =
  'INSERT INTO due_notice (hour, shard, due_at, review_id, kind, partner_id, proof_id, expires_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?) USING TTL ?';
const DELETE =
  'DELETE FROM due_notice WHERE hour = ? AND shard = ? AND due_at = ? AND review_id = ? AND kind = ?';
const DUE =
  'SELECT hour, due_at, review_id, kind, partner_id, proof_id, expires_at FROM due_notice WHERE hour = ? AND shard IN ? AND due_at <= ? PER PARTITION LIMIT ?';
const FIND =
  'SELECT kind FROM due_notice WHERE hour = ? AND shard = ? AND due_at = ? AND review_id = ? AND kind = ?';
const HOUR_SECONDS = 3600;
/** The seconds that a reminder lives beyond its time, longer than any outage after which it is still of use. */
const SPARE_SECONDS = 60 * 86_400;
/** The longest life of a reminder in seconds, twice a review's. Some clusters accept no end after 2038. */
const LONGEST_TTL_SECONDS = 366 * 86_400;
/**
 * The number of hours that are read again although nothing was left in them. Slow clocks lead to writes into them.
 */
const LOOK_BACK_HOURS = 2;
const HOURS_AT_ONCE = 12;
/** The number of partitions of one hour. */
const SHARDS = 32;
const ALL_SHARDS = Array.from({ length: SHARDS }, (_, shard) => shard);

/**
 * Returns the store of reminders. Each reminder is stored in the hour in which it is due, a late one in the hour of
 * its arrival. So nothing is ever written before the watermark, which is the first hour that is not done.
 */
export function reminderStore(session: Session, proofs: ProofRows, outbox: Outbox): RetentionStore {
  const watermark = new Watermark(session, 'notices');
  /** The hours of the late ones among the last reminders that were given out. A reminder does not name its hour. */
  let lateHours = new Map<string, number>();
  /** The reminders that are completed once their events were published. */
  const underWay = new Set<string>();

  const remove = async (reminder: ReviewReminder): Promise<void> => {
    const { kind, dueAt, reviewId } = reminder;
    const hour = lateHours.get(nameOf(reminder)) ?? hourOf(dueAt);
    await session.write(DELETE, [hour, shardOf(reviewId, SHARDS), dueAt, reviewId, kind]);
  };

  /** Returns whether to publish a reminder. An erasure deletes reviews unread, and their reminders are deleted here. */
  const isWanted = async (reminder: ReviewReminder): Promise<boolean> => {
    if (underWay.has(nameOf(reminder))) return false;
    const head = await proofs.head(reminder.proofId).catch((error: unknown) => {
      // The consumer of the reminder finds the damage. The others need not wait for its repair.
      if (isRecordDamaged(error)) return undefined;
      throw error;
    });
    if (head?.state !== 'erased') return true;
    await remove(reminder);
    return false;
  };

  return {
    async scheduleReminders(reminders, now) {
      if (reminders.length === 0) return;
      let reached = await watermark.read();
      if (reached === undefined) {
        reached = hourOf(now) - LOOK_BACK_HOURS;
        await watermark.write(reached);
      }
      const earliest = Math.max(reached, hourOf(now));
      await Promise.all(
        reminders.map(({ kind, dueAt, reviewId, partnerId, proofId, expiresAt }) =>
          session.write(INSERT, [
            Math.max(hourOf(dueAt), earliest),
            shardOf(reviewId, SHARDS),
            dueAt,
            reviewId,
            kind,
            partnerId,
            proofId,
            expiresAt,
            Math.min(LONGEST_TTL_SECONDS, Math.max(0, dueAt - now) + SPARE_SECONDS),
          ]),
        ),
      );
    },

    async dueReminders(now, limit) {
      const reached = await watermark.read();
      if (reached === undefined) return [];
      const found: Row[] = [];
      const lastHour = Math.max(reached, hourOf(now));
      let done = reached;
      for (let first = reached; first <= lastHour && found.length < limit; first += HOURS_AT_ONCE) {
        const hours = Array.from(
          { length: Math.min(HOURS_AT_ONCE, lastHour - first + 1) },
          (_, i) => first + i,
        );
        const rows = await Promise.all(
          hours.map((hour) => session.rows(DUE, [hour, ALL_SHARDS, now, limit])),
        );
        found.push(...rows.flat());
        // All reminders of an hour are due when the hour is over.
        for (const [i, hour] of hours.entries())
          if (hour === done && hour < hourOf(now) - LOOK_BACK_HOURS && rows[i]!.length === 0) done += 1;
      }
      if (done > reached) await watermark.write(done);
      lateHours = new Map(
        found
          .filter((row) => row['hour'] !== hourOf(numberIn(row, 'due_at')!))
          .map((row) => [nameOf(reminderOf(row)), row['hour'] as number]),
      );
      const due = found.map(reminderOf).sort((a, b) => a.dueAt - b.dueAt || (nameOf(a) < nameOf(b) ? -1 : 1));
      const wanted: ReviewReminder[] = [];
      for (const reminder of due) {
        if (wanted.length === limit) break;
        if (await isWanted(reminder)) wanted.push(reminder);
      }
      return wanted;
    },

    async completeReminder(reminder, event) {
      if (event === undefined) return remove(reminder);
      // The reminder itself keeps the event until it is published. A reminder that two processes complete is
      // published twice, under the same event id.
      await outbox.withCapacity('retention', async () => {
        const name = nameOf(reminder);
        underWay.add(name);
        outbox.hold({
          event,
          onPublished: () => remove(reminder).finally(() => underWay.delete(name)),
        });
      });
    },
  };
}

/** Returns whether a reminder is stored in its own hour. A late one is stored in another. */
export async function isScheduled(session: Session, reminder: ReviewReminder): Promise<boolean> {
  const { kind, dueAt, reviewId } = reminder;
  return (
    (await session.first(FIND, [hourOf(dueAt), shardOf(reviewId, SHARDS), dueAt, reviewId, kind])) !==
    undefined
  );
}

function hourOf(at: number): number {
  return timeBucketOf(at, HOUR_SECONDS);
}

function nameOf({ kind, reviewId }: Pick<ReviewReminder, 'kind' | 'reviewId'>): string {
  return `${reviewId}/${kind}`;
}

function reminderOf(row: Row): ReviewReminder {
  return {
    kind: textIn(row, 'kind') as ReviewReminderKind,
    dueAt: numberIn(row, 'due_at')!,
    reviewId: textIn(row, 'review_id')!,
    partnerId: textIn(row, 'partner_id')!,
    proofId: textIn(row, 'proof_id')!,
    expiresAt: numberIn(row, 'expires_at')!,
  };
}
