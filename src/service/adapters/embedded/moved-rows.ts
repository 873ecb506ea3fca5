import { defined } from '../../../core/domain/defined.js';
import { EVIDENCE_PARTS } from '../../../witness/domain/evidence.js';
import type { AuditEntry, AuditHead } from '../../domain/audit.js';
import { remindersOf, reviewCreated } from '../../domain/events.js';
import type { Partner, PartnerKey } from '../../domain/partner.js';
import type { Proof } from '../../domain/proof.js';
import { AUDIT_ROW_ENTRIES, type MovedRow, type MoveSource } from '../../ports/moved-rows.js';
import type { IssuingReplay } from '../../ports/stores.js';
import {
  type BilledRow,
  type DayRow,
  evidenceKey,
  following,
  type KeyRange,
  keyKey,
  keyUseKey,
  lastPart,
  proofKey,
  type ReviewRow,
  type RowKey,
  reminderKey,
  reviewOpenKey,
  reviewReplayKey,
  rotationKey,
  type SourceRow,
  type UploadRow,
  under,
} from './keys.js';
import type { Rows } from './rows.js';

/** Rows that are read at once. */
const PAGE = 250;

/** Reads the store of one machine for a move to a cluster. Nothing may write to the store meanwhile. */
export function moveSource(rows: Rows): MoveSource {
  async function* all<Row>(range: KeyRange): AsyncGenerator<readonly [key: RowKey<Row>, row: Row]> {
    for (let rest = range; ; ) {
      const page = await rows.entries<Row>(rest, PAGE);
      yield* page;
      if (page.length < PAGE) return;
      rest = following(rest, page.at(-1)![0]);
    }
  }

  async function* tombstones(): AsyncGenerator<MovedRow> {
    for await (const [, proof] of all<Proof>(under('proof')))
      if (proof.state === 'erased') yield { kind: 'tombstone', proof };
  }

  async function* keys(): AsyncGenerator<MovedRow> {
    for await (const [, key] of all<PartnerKey>(under('key'))) {
      const rotation = rows.get(rotationKey(key.keyId));
      yield {
        kind: 'key',
        key,
        ...defined({
          rotated: rotation && { rotation, successor: rows.get(keyKey(rotation.newKeyId))! },
          usedAt: rows.get(keyUseKey(key.partnerId, key.keyId))?.at,
        }),
      };
    }
  }

  async function* audit(): AsyncGenerator<MovedRow> {
    let entries: AuditEntry[] = [];
    for await (const [, entry] of all<AuditEntry>(under('audit'))) {
      const last = entries.at(-1);
      if (
        last !== undefined &&
        (last.partnerId !== entry.partnerId || last.sequence % AUDIT_ROW_ENTRIES === 0)
      ) {
        yield { kind: 'audit', entries };
        entries = [];
      }
      entries.push(entry);
    }
    if (entries.length > 0) yield { kind: 'audit', entries };
    for await (const [, head] of all<AuditHead>(under('audit-head'))) yield { kind: 'head', head };
  }

  async function* proofs(now: number): AsyncGenerator<MovedRow> {
    for await (const [, proof] of all<Proof>(under('proof'))) {
      if (proof.state !== 'issued') continue;
      const evidence = EVIDENCE_PARTS.flatMap((part) => {
        const body = rows.get(evidenceKey(proof.proofId, part));
        return body === undefined ? [] : [{ part, body }];
      });
      yield { kind: 'proof', proof, evidence };
    }
    for await (const [, replay] of all<IssuingReplay>(under('replay')))
      if (replay.expiresAt > now && rows.get(proofKey(replay.proofId))?.state === 'issued')
        yield { kind: 'replay', replay };
  }

  async function* reviews(now: number): AsyncGenerator<MovedRow> {
    for await (const [, { review, replayKey }] of all<ReviewRow>(under('review'))) {
      const { reviewId, proofId, partnerId, bindings, expiresAt } = review;
      if (expiresAt <= now || rows.get(proofKey(proofId))?.state !== 'issued') continue;
      const record = replayKey === undefined ? undefined : rows.get(reviewReplayKey(replayKey));
      const isReplayed = record !== undefined && record.reviewId === reviewId && record.expiresAt > now;
      yield {
        kind: 'review',
        review,
        isOpen: rows.get(reviewOpenKey(proofId, partnerId, bindings))?.reviewId === reviewId,
        reminders: remindersOf(reviewCreated(review))
          .filter((reminder) => rows.get(reminderKey(reminder)) !== undefined)
          .map(({ kind }) => kind),
        ...(isReplayed && {
          replay: { key: record.key, requestSha256: record.requestSha256, expiresAt: record.expiresAt },
        }),
      };
    }
  }

  async function* uploads(now: number): AsyncGenerator<MovedRow> {
    for await (const [, { slot, facts }] of all<UploadRow>(under('upload')))
      if ((facts ?? slot).expiresAt > now) yield { kind: 'upload', slot, ...defined({ facts }) };
  }

  async function* usage(now: number): AsyncGenerator<MovedRow> {
    for await (const [, { partnerId }] of all<Partner>(under('partner'))) {
      const months = new Map<string, SourceRow>();
      for await (const [key, row] of all<SourceRow>(under('usage-month', partnerId)))
        months.set(lastPart(key), row);
      const days = new Map<string, { day: string; operations: DayRow['operations'] }[]>();
      for await (const [key, { operations, unfolded = {} }] of all<DayRow>(under('usage-day', partnerId))) {
        if (Object.keys(unfolded).length > 0)
          throw new Error(
            'usage events were not handled: repeat the dead letters of the topic usage, or discard them, before the export',
          );
        if (Object.keys(operations).length === 0) continue;
        const day = lastPart(key);
        const month = day.slice(0, 7);
        days.set(month, [...(days.get(month) ?? []), { day, operations }]);
      }
      for (const month of [...new Set([...months.keys(), ...days.keys()])].sort()) {
        const { used = 0, folded = [] } = months.get(month) ?? {};
        yield {
          kind: 'month',
          partnerId,
          month,
          used,
          folded: folded.flat(),
          days: days.get(month) ?? [],
        };
      }
      for await (const [key, row] of all<BilledRow>(under('billed', partnerId)))
        if (row.until > now) yield { kind: 'charge', partnerId, dedupeKey: lastPart(key), ...row };
    }
  }

  return {
    async *moved(now) {
      yield* tombstones();
      for await (const [, partner] of all<Partner>(under('partner'))) yield { kind: 'partner', partner };
      yield* keys();
      yield* audit();
      yield* proofs(now);
      yield* reviews(now);
      yield* uploads(now);
      yield* usage(now);
    },
  };
}
