import {
  type ReviewReminder,
  type ReviewReminderKind,
  remindersOf,
  reviewCreated,
} from '../../../domain/events.js';
import type { ReviewCase } from '../../../domain/review.js';
import type { RetentionStore } from '../../../ports/stores.js';
import type { Outbox } from '../commit/outbox.js';
import { SHARDS, shardOf } from '../commit/time-buckets.js';
import { aheadOfClocks, numberIn, type Row, type Session, textIn } from '../driver/session.js';

const INSERT =
  'INSERT INTO due_notice (hour, shard, due_at, review_id, kind, partner_id, proof_id, expires_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?) USING TTL ?';
const DELETE =
  'DELETE FROM due_notice WHERE hour = ? AND shard = ? AND due_at = ? AND review_id = ? AND kind = ?';
const DUE =
  'SELECT hour, due_at, review_id, kind, partner_id, proof_id, expires_at FROM due_notice WHERE hour = ? AND shard IN ? AND due_at <= ? PER PARTITION LIMIT ?';
const FORGET =
  'DELETE FROM due_notice USING TIMESTAMP ? WHERE hour = ? AND shard = ? AND due_at = ? AND review_id = ? AND kind = ?';
const POSITION = "SELECT minute FROM intent_position WHERE name = 'notices'";
const SET_POSITION = "INSERT INTO intent_position (name, minute) VALUES ('notices', ?)";

const HOUR_SECONDS = 3600;
/** Beyond its time: longer than any outage after which a notice is still of use. */
const SPARE_SECONDS = 60 * 86_400;
/** A case lives half as long; what Cassandra takes ends in 2038 on some clusters. */
const LONGEST_TTL_SECONDS = 366 * 86_400;
/**
 * Hours that are looked at again although nothing was left in them: processes whose clocks are behind write
 * into them.
 */
const LOOK_BACK_HOURS = 2;
const HOURS_AT_ONCE = 12;
const ALL_SHARDS = Array.from({ length: SHARDS }, (_, shard) => shard);

/**
 * Notices lie in the hour in which they are due; one that comes late, in the hour in which it comes. So
 * nothing is ever written behind the position, which is the first hour that is not done.
 */
export function noticeStore(session: Session, outbox: Outbox): RetentionStore {
  /** Hours of late ones among those that were given out last: a notice does not say when it came. */
  let lateOnes = new Map<string, number>();
  const readPosition = async () => (await session.first(POSITION))?.['minute'] as number | undefined;

  return {
    async scheduleReminders(notices, now) {
      if (notices.length === 0) return;
      let position = await readPosition();
      if (position === undefined) {
        position = hourOf(now) - LOOK_BACK_HOURS;
        await session.write(SET_POSITION, [position]);
      }
      const earliest = Math.max(position, hourOf(now));
      await Promise.all(
        notices.map(({ kind, dueAt, reviewId, partnerId, proofId, expiresAt }) =>
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
      const position = await readPosition();
      if (position === undefined) return [];
      const found: Row[] = [];
      let done = position;
      for (
        let first = position;
        first <= Math.max(position, hourOf(now)) && found.length < limit;
        first += HOURS_AT_ONCE
      ) {
        const hours = Array.from(
          { length: Math.min(HOURS_AT_ONCE, Math.max(position, hourOf(now)) - first + 1) },
          (_, i) => first + i,
        );
        const rows = await Promise.all(
          hours.map((hour) => session.rows(DUE, [hour, ALL_SHARDS, now, limit])),
        );
        found.push(...rows.flat());
        // All that lies in an hour is due when it is over.
        for (const [i, hour] of hours.entries())
          if (hour === done && hour < hourOf(now) - LOOK_BACK_HOURS && rows[i]!.length === 0) done += 1;
      }
      if (done > position) await session.write(SET_POSITION, [done]);
      const due = found
        .sort(
          (a, b) =>
            numberIn(a, 'due_at')! - numberIn(b, 'due_at')! ||
            (nameOf(noticeOf(a)) < nameOf(noticeOf(b)) ? -1 : 1),
        )
        .slice(0, limit);
      lateOnes = new Map(
        due
          .filter((row) => row['hour'] !== hourOf(numberIn(row, 'due_at')!))
          .map((row) => [nameOf(noticeOf(row)), row['hour'] as number]),
      );
      return due.map(noticeOf);
    },

    async completeReminder(notice, event) {
      const { kind, dueAt, reviewId } = notice;
      // Told first: one that is settled twice is told twice, under the same id.
      if (event !== undefined) await outbox.withRoom(() => outbox.add(event));
      await session.write(DELETE, [
        lateOnes.get(nameOf(notice)) ?? hourOf(dueAt),
        shardOf(reviewId),
        dueAt,
        reviewId,
        kind,
      ]);
    },
  };
}

/**
 * Takes the notices of a case off that goes with its proof. Ahead of every clock, since no case has this id
 * again. One that came late lies elsewhere: it is due, and settled with the next look.
 */
export async function forgetNotices(session: Session, review: ReviewCase): Promise<void> {
  const at = aheadOfClocks();
  await Promise.all(
    remindersOf(reviewCreated(review)).map(({ kind, dueAt, reviewId }) =>
      session.write(FORGET, [at, hourOf(dueAt), shardOf(reviewId), dueAt, reviewId, kind]),
    ),
  );
}

function hourOf(at: number): number {
  return Math.floor(at / HOUR_SECONDS);
}

function nameOf({ kind, reviewId }: Pick<ReviewReminder, 'kind' | 'reviewId'>): string {
  return `${reviewId}/${kind}`;
}

function noticeOf(row: Row): ReviewReminder {
  return {
    kind: textIn(row, 'kind') as ReviewReminderKind,
    dueAt: numberIn(row, 'due_at')!,
    reviewId: textIn(row, 'review_id')!,
    partnerId: textIn(row, 'partner_id')!,
    proofId: textIn(row, 'proof_id')!,
    expiresAt: numberIn(row, 'expires_at')!,
  };
}
