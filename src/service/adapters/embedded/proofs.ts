import { DomainError } from '../../../core/domain/errors.js';
import { assertInline, EVIDENCE_PARTS } from '../../../witness/domain/evidence.js';
import { proofErased } from '../../domain/events.js';
import type { ErasedProof, IssuedProof, Proof } from '../../domain/proof.js';
import { briefOf } from '../../domain/proof-brief.js';
import type { IssuingReplay, ProofStore } from '../../ports/stores.js';
import type { AuditLog } from './audit-log.js';
import type { Transaction } from './commit-queue.js';
import {
  before,
  digestKey,
  erasingKey,
  evidenceKey,
  expiryKey,
  following,
  lastPart,
  type PendingRow,
  pendingKey,
  preceding,
  proofKey,
  proofTimeKey,
  type RowKey,
  replayKey,
  replayLinkKey,
  under,
  within,
} from './keys.js';
import { listIssued } from './list-issued.js';
import type { Outbox } from './outbox.js';
import { findByDigests, indexDigests, unindexDigests } from './proof-digests.js';
import type { ReviewRows } from './review-rows.js';
import type { Rows } from './rows.js';

/** The most reserved ids that are taken back in one batch. */
const COLLECT_STEP = 256;
/** The seconds that a replay lives beyond its time, for an issuing that began in time and looks for it later. */
const SPARE_SECONDS = 3600;

export function proofStore(rows: Rows, log: AuditLog, outbox: Outbox, reviews: ReviewRows): ProofStore {
  const listProofs: ProofStore['listProofs'] = (
    partnerId,
    { issuedAfter, issuedBefore, before: pageKey, limit },
  ) => {
    const range = within({ from: issuedAfter, to: issuedBefore }, 'proof-time', partnerId);
    return listIssued(
      rows,
      pageKey === undefined
        ? range
        : preceding(range, proofTimeKey(partnerId, pageKey.createdAt, pageKey.proofId)),
      limit,
      true,
    );
  };
  return {
    reserveProof: (proofId, partnerId, now) =>
      rows.run((tx) => {
        const existing = tx.get(proofKey(proofId));
        if (existing !== undefined) {
          if (isReserved(existing) && existing.partnerId === partnerId) return;
          throw new DomainError('conflict', 'This id is taken.');
        }
        tx.put(proofKey(proofId), { state: 'pending', proofId, partnerId, reservedAt: now });
        tx.put(pendingKey(now, proofId), null);
      }),

    issueProof: async (proof, audit, replay, evidence = []) => {
      assertInline(evidence);
      return log.run((tx, append) => {
        const row = tx.get(proofKey(proof.proofId));
        if (
          row?.state === 'issued' &&
          row.partnerId === proof.partnerId &&
          row.credentialSha256 === proof.credentialSha256
        )
          return 'issued';
        const earlier = replay && tx.get(replayKey(replay.key));
        // A replay that has expired by the time of issuing is replaced.
        if (earlier !== undefined && earlier.expiresAt > proof.createdAt) return 'replay_exists';
        if (!isReserved(row) || row.partnerId !== proof.partnerId)
          throw new DomainError('conflict', 'This id is no longer reserved.');
        tx.delete(pendingKey(row.reservedAt, proof.proofId));
        tx.put(proofKey(proof.proofId), proof);
        for (const { part, body } of evidence) tx.put(evidenceKey(proof.proofId, part), body);
        for (const entry of indexEntries(proof)) tx.put(entry, null);
        indexDigests(tx, proof);
        if (earlier !== undefined) tx.delete(replayExpiry(earlier));
        if (replay !== undefined) {
          tx.put(replayKey(replay.key), replay);
          tx.put(replayExpiry(replay), null);
          tx.put(replayLinkKey(proof.proofId), { key: replay.key });
          tx.put(linkExpiry(replay), null);
        }
        append(audit);
        return 'issued';
      });
    },

    readEvidence: async (proofId, part) => rows.get(evidenceKey(proofId, part)),

    async getProof(proofId) {
      const row = rows.getKept(proofKey(proofId));
      return row?.state === 'pending' && !isReserved(row) ? undefined : row;
    },

    listProofs,

    listBriefs: async (...list) => (await listProofs(...list)).map(briefOf),

    findProofs: (kind, sha256, limit) => listIssued(rows, under(kind, sha256), limit, true),

    findByDigests: (...search) => findByDigests(rows, ...search),

    eraseProof: (proofId, partnerId, at, audit, capacity) =>
      log.run((tx, append) => {
        const proof = tx.get(proofKey(proofId));
        if (proof === undefined || proof.partnerId !== partnerId || proof.state === 'pending')
          return 'not_found';
        if (proof.state === 'erased') return { outcome: 'already_erased', proof };
        const tombstone: ErasedProof = { state: 'erased', proofId, partnerId, erasedAt: at };
        tx.put(proofKey(proofId), tombstone);
        removeEvidence(tx, proofId);
        for (const entry of indexEntries(proof)) tx.delete(entry);
        unindexDigests(tx, proof);
        removeReplay(tx, proofId);
        tx.put(erasingKey(proofId), null);
        append(audit);
        outbox.add(tx, proofErased({ proofId, partnerId, erasedAt: at }), capacity);
        return { outcome: 'erased', proof: tombstone };
      }),

    async confirmErasure(proofId, at) {
      const isErased = await rows.run((tx) => {
        if (tx.get(proofKey(proofId))?.state !== 'erased') return false;
        removeReplay(tx, proofId);
        removeEvidence(tx, proofId);
        return true;
      });
      if (!isErased) return 'not_erased';
      await reviews.removeAllOn(proofId);
      return rows.run((tx) => {
        const proof = tx.get(proofKey(proofId));
        if (proof?.state !== 'erased') return 'not_erased';
        if (proof.confirmedAt !== undefined) return 'already_confirmed';
        tx.put(proofKey(proofId), { ...proof, confirmedAt: at });
        return 'confirmed';
      });
    },

    changeOverlay: (proofId, change, audit) =>
      log.run((tx, append) => {
        const proof = tx.get(proofKey(proofId));
        if (proof?.state !== 'issued') return 'proof_gone';
        const { result, ...changed } = change(proof);
        if (changed.overlay === undefined) return result;
        tx.put(proofKey(proofId), { ...proof, ...changed });
        append(audit);
        return result;
      }),

    changeSummary: (proofId, settle) =>
      rows.run((tx) => {
        const proof = tx.get(proofKey(proofId));
        if (proof?.state !== 'issued') return 'proof_gone';
        const changed = settle(proof);
        if (changed !== undefined) tx.put(proofKey(proofId), { ...proof, ...changed });
        return 'settled';
      }),

    addDigests: (proofId, digests) =>
      rows.run((tx) => {
        const proof = tx.get(proofKey(proofId));
        if (proof?.state !== 'issued') return 'proof_gone';
        const changed = { ...digests, ...proof };
        tx.put(proofKey(proofId), changed);
        indexDigests(tx, changed, proof);
        return 'added';
      }),

    async getIssuingReplay(key, now) {
      const replay = rows.get(replayKey(key));
      return replay !== undefined && replay.expiresAt > now ? replay : undefined;
    },

    async collectReservations(end, remove) {
      let rest = before(end, 'pending');
      for (;;) {
        const entries = await rows.keys(rest, COLLECT_STEP);
        const last = entries.at(-1);
        if (last === undefined) return;
        rest = following(rest, last);
        const taken = await rows.run((tx) =>
          entries.filter((entry) => {
            const key = proofKey(lastPart(entry));
            const row = tx.getSound(key);
            // The id may have been issued since the entry was read.
            if (row?.state === 'pending') tx.put(key, { ...row, isTakenBack: true });
            else tx.delete(entry);
            return row?.state === 'pending';
          }),
        );
        const removed: RowKey<null>[] = [];
        for (const entry of taken) if (await remove(lastPart(entry))) removed.push(entry);
        await rows.run((tx) => {
          for (const entry of removed) {
            tx.delete(entry);
            tx.delete(proofKey(lastPart(entry)));
          }
        });
      }
    },
  };
}

function isReserved(row: Proof | PendingRow | undefined): row is PendingRow {
  return row?.state === 'pending' && !('isTakenBack' in row);
}

function indexEntries(proof: IssuedProof): readonly RowKey<null>[] {
  return [
    proofTimeKey(proof.partnerId, proof.createdAt, proof.proofId),
    digestKey('credential', proof.credentialSha256, proof.proofId),
  ];
}

function removeEvidence(tx: Transaction, proofId: string): void {
  for (const part of EVIDENCE_PARTS) tx.delete(evidenceKey(proofId, part));
}

function replayExpiry({ key, expiresAt }: IssuingReplay): RowKey<null> {
  return expiryKey(expiresAt + SPARE_SECONDS, replayKey(key));
}

function linkExpiry({ proofId, expiresAt }: IssuingReplay): RowKey<null> {
  return expiryKey(expiresAt + SPARE_SECONDS, replayLinkKey(proofId));
}

function removeReplay(tx: Transaction, proofId: string): void {
  const link = tx.get(replayLinkKey(proofId));
  if (link === undefined) return;
  const replay = tx.get(replayKey(link.key));
  tx.delete(replayLinkKey(proofId));
  // After an expiry another proof may have come under the same key; the link's own expiry entry is left to
  // the collection.
  if (replay?.proofId !== proofId) return;
  tx.delete(replayKey(link.key));
  tx.delete(replayExpiry(replay));
  tx.delete(linkExpiry(replay));
}
