import { randomUUID } from 'node:crypto';
import { defined } from '../../../core/domain/defined.js';
import { DomainError } from '../../../core/domain/errors.js';
import { remindersOf, reviewCreated } from '../../domain/events.js';
import type { Partner } from '../../domain/partner.js';
import type { AuditedStore } from '../../ports/audited-store.js';
import type { AuditHeads } from '../../ports/journals.js';
import type { MovedRow, MoveTarget } from '../../ports/moved-rows.js';
import type { EvidenceBody, Stores } from '../../ports/stores.js';
import { KeyRows } from './accounts/key-rows.js';
import { insertFacts, insertSlot } from './accounts/uploads.js';
import type { AuditLog } from './commit/audit-log.js';
import { Watermark } from './commit/watermark.js';
import type { Blobs } from './driver/blobs.js';
import type { RowCodes } from './driver/row-codes.js';
import type { Session } from './driver/session.js';
import { IdempotencyRecords } from './proofs/idempotency-records.js';
import { issuingStatements } from './proofs/issuing.js';
import { ProofIndex } from './proofs/proof-index.js';
import type { ProofRows } from './proofs/proof-rows.js';
import { isScheduled } from './reviews/reminders.js';
import { ReviewCounts } from './reviews/review-counts.js';
import { ReviewRows, ttlOf } from './reviews/review-rows.js';
import { insertBilled, insertMonth, unitsOfMonth } from './usage/charging.js';
import type { Consumption } from './usage/consumption.js';

export interface MoveTargetParts {
  readonly session: Session;
  readonly blobs: Blobs;
  readonly codes: RowCodes;
  readonly proofs: ProofRows;
  readonly log: AuditLog;
  readonly consumption: Consumption;
  readonly stores: Stores & { readonly heads: AuditHeads; readonly audited: AuditedStore };
  readonly insertPartner: (partner: Partner) => Promise<void>;
}

/** Tables in which a used store has rows. */
const TABLES = ['partner', 'api_key', 'upload', 'record', 'charge', 'audit_entry'] as const;

type RowOf<Kind extends MovedRow['kind']> = Extract<MovedRow, { readonly kind: Kind }>;

/** Receives the rows of a store of one machine. No other process may write to the keyspace meanwhile. */
export function moveTarget({
  session,
  blobs,
  codes,
  proofs,
  log,
  consumption,
  stores,
  insertPartner,
}: MoveTargetParts): MoveTarget {
  const keys = new KeyRows(session, codes);
  const index = new ProofIndex(session, proofs);
  const records = new IdempotencyRecords(session);
  const reviews = new ReviewRows(session, blobs, proofs);
  const counts = new ReviewCounts(session);
  const progress = (exportId: string) => new Watermark(session, `move/${exportId}`);

  const putReview = async (row: RowOf<'review'>, now: number): Promise<void> => {
    const { review, isOpen, replay, reminders } = row;
    const { reviewId, proofId } = review;
    const { head, stored } = await reviews.get(proofId, reviewId);
    if (head?.state !== 'issued') throw new DomainError('not_found', 'The proof of a review is missing.');
    const ttl = ttlOf(review, now);
    await reviews.point(review, ttl);
    if (replay !== undefined)
      await session.lightweightTransaction(records.taking({ ...replay, proofId }, undefined, reviewId, now));
    if (stored === undefined)
      await session.lightweightTransaction(
        ...reviews.moving(review, head, { isOpen, replay, op: randomUUID(), now }),
      );
    await counts.add(review, ttl);
    const due = remindersOf(reviewCreated(review)).filter(({ kind }) => reminders.includes(kind));
    await stores.scheduleReminders(due, now);
  };

  const findReview = async (row: RowOf<'review'>, now: number): Promise<MovedRow | undefined> => {
    const { review, replay } = row;
    const { stored, place, keyRow } = await reviews.getWithPlace(review, review.reviewId, replay?.key);
    if (
      stored === undefined ||
      (await stores.getReview(review.partnerId, review.reviewId, now)) === undefined
    )
      return undefined;
    const waits = await Promise.all(
      remindersOf(reviewCreated(review)).map(async (reminder) => ({
        kind: reminder.kind,
        // A reminder that is due has a place that depends on the time of its writing.
        isThere:
          reminder.dueAt <= now
            ? row.reminders.includes(reminder.kind)
            : await isScheduled(session, reminder),
      })),
    );
    return {
      kind: 'review',
      review: stored.review,
      isOpen: place?.reviewId === review.reviewId,
      reminders: waits.filter(({ isThere }) => isThere).map(({ kind }) => kind),
      ...(replay !== undefined &&
        keyRow?.reviewId === review.reviewId && {
          replay: { key: replay.key, requestSha256: keyRow.requestSha256, expiresAt: keyRow.expiresAt },
        }),
    };
  };

  const findMonth = async ({ partnerId, month }: RowOf<'month'>): Promise<MovedRow> => {
    const { used } = await unitsOfMonth(session, partnerId, month);
    const { billed, days } = await consumption.read(partnerId, month);
    const byDay = new Map<string, Record<string, number>>();
    for (const { day, operation, units } of days) byDay.set(day, { ...byDay.get(day), [operation]: units });
    return {
      kind: 'month',
      partnerId,
      month,
      used,
      folded: billed.get(0) ?? [],
      days: [...byDay].map(([day, operations]) => ({ day, operations })),
    };
  };

  return {
    async isEmpty() {
      for (const table of TABLES)
        if ((await session.first(`SELECT * FROM ${table} LIMIT 1`)) !== undefined) return false;
      return true;
    },
    progress: (exportId) => progress(exportId).read(),
    setProgress: (exportId, blocks) => progress(exportId).write(blocks),

    async put(row, now) {
      switch (row.kind) {
        case 'tombstone':
          return proofs.insertTombstone(row.proof);
        case 'partner':
          return insertPartner(row.partner);
        case 'key': {
          const { key, rotated, usedAt } = row;
          await keys.insert(key, blobs, rotated);
          if (usedAt !== undefined)
            await stores.touchKeys([{ partnerId: key.partnerId, keyId: key.keyId, at: usedAt }]);
          return;
        }
        case 'audit':
          return log.insert(row.entries);
        case 'head':
          return stores.heads.record(row.head);
        case 'proof':
          await session.lightweightTransaction(...issuingStatements(proofs, blobs, row.proof, row.evidence));
          return index.add(row.proof);
        case 'replay':
          await session.lightweightTransaction(records.taking(row.replay, undefined, randomUUID(), now));
          return;
        case 'review':
          return putReview(row, now);
        case 'upload': {
          const { slot, facts } = row;
          await insertSlot(session, slot, now - slot.createdAt);
          if (facts !== undefined) await insertFacts(session, blobs, facts, now - facts.uploadedAt);
          return;
        }
        case 'month': {
          const { partnerId, month, used, folded, days } = row;
          if (used > 0) await insertMonth(session, partnerId, month, used);
          return consumption.insert(partnerId, month, {
            folded,
            days: days.flatMap(({ day, operations }) =>
              Object.entries(operations).map(([operation, units]) => ({ day, operation, units })),
            ),
          });
        }
        case 'charge':
          return insertBilled(session, row, now);
      }
    },

    async find(row, now) {
      switch (row.kind) {
        case 'tombstone': {
          const proof = await stores.getProof(row.proof.proofId);
          return proof?.state === 'erased' ? { kind: 'tombstone', proof } : undefined;
        }
        case 'partner': {
          const partner = await stores.getPartner(row.partner.partnerId);
          return partner && { kind: 'partner', partner };
        }
        case 'key': {
          const { partnerId, keyId } = row.key;
          const key = await stores.getKey(keyId);
          if (key === undefined) return undefined;
          const rotation = await stores.getRotation(keyId);
          const successor = rotation && (await stores.getKey(rotation.newKeyId));
          return {
            kind: 'key',
            key,
            ...defined({
              rotated: rotation && successor && { rotation, successor },
              usedAt: (await stores.getKeyUses(partnerId, [keyId])).get(keyId),
            }),
          };
        }
        case 'audit': {
          const { partnerId, sequence } = row.entries[0]!;
          return { kind: 'audit', entries: await stores.readAudit(partnerId, sequence, row.entries.length) };
        }
        case 'head': {
          const head = await stores.heads.get(row.head.partnerId);
          return head && { kind: 'head', head };
        }
        case 'proof': {
          const { proofId } = row.proof;
          const proof = await stores.getProof(proofId);
          if (proof?.state !== 'issued') return undefined;
          const evidence: EvidenceBody[] = [];
          for (const { part } of row.evidence) {
            const body = await stores.readEvidence(proofId, part);
            if (body !== undefined) evidence.push({ part, body });
          }
          return { kind: 'proof', proof, evidence };
        }
        case 'replay': {
          const replay = await stores.getIssuingReplay(row.replay.key, now);
          return replay && { kind: 'replay', replay };
        }
        case 'review':
          return findReview(row, now);
        case 'upload': {
          const upload = await stores.getUpload(row.slot.uploadId, now);
          return upload && { kind: 'upload', ...upload };
        }
        case 'month':
          return findMonth(row);
        case 'charge':
          return (await stores.findCharge({ ...row, at: now })) === 'already_charged' ? row : undefined;
      }
    },
  };
}
