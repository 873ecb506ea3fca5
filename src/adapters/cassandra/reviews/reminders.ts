import {
  type ReviewReminder,
  type ReviewReminderKind,
  remindersOf,
  reviewCreated,
} from '../../../domain/events.js';
import type { ReviewCase } from '../../../domain/review.js';
import type { RetentionStore } from '../../../ports/stores.js';
import type { Outbox } from '../commit/outbox.js';
import { SHARDS, shardOf, timeBucketOf } from '../commit/time-bucket.js';
import { Watermark } from '../commit/watermark.js';
import { aheadOfClocks, numberIn, type Row, type Session, textIn } from '../driver/session.js';

const INSERT =
  'INSERT INTO due_notice (hour, shard, due_at, review_id, kind, partner_id, proof_id, expires_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?) USING TTL ?';
const DELETE =
  'DELETE FROM due_notice WHERE hour = ? AND shard = ? AND due_at = ? AND review_id = ? AND kind = ?';
const DUE =
  'SELECT hour, due_at, review_id, kind, partner_id, proof_id, expires_at FROM due_notice WHERE hour = ? AND shard IN ? AND due_at <= ? PER PARTITION LIMIT ?';
const REMOVE_FOR_GOOD =
  'DELETE FROM due_notice USING TIMESTAMP ? WHERE hour = ? AND shard = ? AND due_at = ? AND review_id = ? AND kind = ?';

const HOUR_SECONDS = 3600;
/** Life of a reminder beyond its time: longer than any outage after which it is still of use. */
const SPARE_SECONDS = 60 * 86_400;
/** Bound of a reminder's life, twice a review's: some clusters take no end of life later than 2038. */
const LONGEST_TTL_SECONDS = 366 * 86_400;
/**
 * Hours that are read again although nothing was left in them: processes with slow clocks write into them.
 */
const LOOK_BACK_HOURS = 2;
const HOURS_AT_ONCE = 12;
const ALL_SHARDS = Array.from({ length: SHARDS }, (_, shard) => shard);

/**
 * Reminders, each in the hour in which it is due. A reminder that comes late lies in the hour in which it
 * comes, so nothing is ever written behind the watermark, which is the first hour that is not done.
 */
export function reminderStore(session: Session, outbox: Outbox): RetentionStore {
  const watermark = new Watermark(session, 'notices');
  /** Hours of late reminders among the ones that were given out last: a reminder does not name its hour. */
  let lateHours = new Map<string, number>();

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
            shardOf(reviewId),
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
      const due = found
        .sort(
          (a, b) =>
            numberIn(a, 'due_at')! - numberIn(b, 'due_at')! ||
            (nameOf(reminderOf(a)) < nameOf(reminderOf(b)) ? -1 : 1),
        )
        .slice(0, limit);
      lateHours = new Map(
        due
          .filter((row) => row['hour'] !== hourOf(numberIn(row, 'due_at')!))
          .map((row) => [nameOf(reminderOf(row)), row['hour'] as number]),
      );
      return due.map(reminderOf);
    },

    async completeReminder(reminder, event) {
      const { kind, dueAt, reviewId } = reminder;
      // Published first: a reminder that is completed twice is published twice, under the same event id.
      if (event !== undefined) await outbox.withCapacity(() => outbox.add(event));
      await session.write(DELETE, [
        lateHours.get(nameOf(reminder)) ?? hourOf(dueAt),
        shardOf(reviewId),
        dueAt,
        reviewId,
        kind,
      ]);
    },
  };
}

/**
 * Removes the reminders of a review that goes with its proof. The timestamp is ahead of every clock, since no
 * review has this id again. A reminder that came late lies in another hour; it is due, and completed with the
 * next pass.
 */
export async function removeReminders(session: Session, review: ReviewCase): Promise<void> {
  const at = aheadOfClocks();
  await Promise.all(
    remindersOf(reviewCreated(review)).map(({ kind, dueAt, reviewId }) =>
      session.write(REMOVE_FOR_GOOD, [at, hourOf(dueAt), shardOf(reviewId), dueAt, reviewId, kind]),
    ),
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
