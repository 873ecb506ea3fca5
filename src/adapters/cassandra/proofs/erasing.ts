import { randomUUID } from 'node:crypto';
import type { AuditDraft } from '../../../domain/audit.js';
import { defined } from '../../../domain/defined.js';
import { proofErased } from '../../../domain/events.js';
import type { ProofStore } from '../../../ports/stores.js';
import type { Decisions } from '../commit/decisions.js';
import type { Outbox } from '../commit/outbox.js';
import type { Session } from '../driver/session.js';
import type { IdempotencyRecords } from './idempotency-records.js';
import type { Indexed, ProofIndex } from './proof-index.js';
import type { Head, ProofRows } from './proof-rows.js';

const ERASE =
  "UPDATE record SET state = 'erased', erased_at = ?, erase_op = ?, body = null, replay_key = null, mac = ? WHERE proof_id = ? AND part = '' IF state = 'issued' AND gen = ? AND erase_op = null";
// All but the head and the acts. A range, because a list would miss what is created meanwhile.
const REMOVE_PARTS = "DELETE FROM record WHERE proof_id = ? AND part >= 'b'";
const CONFIRM =
  "UPDATE record SET confirmed_at = ?, confirm_op = ?, mac = ? WHERE proof_id = ? AND part = '' IF state = 'erased' AND confirmed_at = null AND confirm_op = null";

/** Where the proof is pointed at from; nothing of it is in the record any more. */
interface Erasure extends Indexed {
  readonly erasedAt: number;
  readonly replayKey?: string;
}

export interface ErasingParts {
  readonly rows: ProofRows;
  readonly index: ProofIndex;
  readonly records: IdempotencyRecords;
  readonly outbox: Outbox;
  /** Removes what counts a partner's reviews on a proof. */
  readonly forgetReviews: (partnerId: string, proofId: string) => Promise<void>;
}

/**
 * Erasing: one batch that writes the tombstone and removes reviews and evidence beside it, however many. What
 * pointed at the proof is removed afterwards; from the tombstone on no reader follows it.
 */
export function proofErasing(
  session: Session,
  decisions: Decisions,
  { rows, index, records, outbox, forgetReviews }: ErasingParts,
): Pick<ProofStore, 'eraseProof' | 'confirmErasure'> {
  const erasing = decisions.operations<Erasure>({
    kind: 'proof_erased',
    table: rows.table,
    async follow(proofId, { data }) {
      await index.remove(data, data.erasedAt);
      if (data.replayKey !== undefined) await records.removeOfProof(data.replayKey, proofId);
      const reviewers = (await rows.head(proofId))?.reviewers ?? [];
      await Promise.all(reviewers.map((partnerId) => forgetReviews(partnerId, proofId)));
    },
    event: {
      topic: 'erasure',
      of: (proofId, { data: { partnerId, erasedAt } }) => proofErased({ proofId, partnerId, erasedAt }),
    },
  });

  const alreadyErased = async (head: Head): ReturnType<ProofStore['eraseProof']> => {
    // The erasure's own call may have been interrupted.
    if (head.eraseOp !== undefined && head.confirmedAt === undefined)
      await erasing.complete(head.proofId, head.eraseOp);
    return { outcome: 'already_erased', proof: rows.erasedOf(head) };
  };

  const erase = async (head: Head, at: number, audit: AuditDraft): ReturnType<ProofStore['eraseProof']> => {
    const { proofId, gen, replayKey } = head;
    const { partnerId, createdAt, boundAudioSha256, originalSha256 } = rows.issuedOf(head);
    const code = rows.codeOf({ proofId, partnerId, state: 'erased', erasedAt: at });
    const { applied } = await erasing.commit({
      key: proofId,
      audit,
      data: defined({
        proofId,
        partnerId,
        createdAt,
        boundAudioSha256,
        originalSha256,
        erasedAt: at,
        replayKey,
      }),
      statements: (op) => [
        { query: ERASE, params: [at, op, code, proofId, gen] },
        { query: REMOVE_PARTS, params: [proofId] },
      ],
    });
    return applied
      ? { outcome: 'erased', proof: { state: 'erased', proofId, partnerId, erasedAt: at } }
      : 'not_found';
  };

  return {
    async eraseProof(proofId, partnerId, at, audit, capacity) {
      for (;;) {
        const head = await rows.head(proofId);
        if (head === undefined || head.state === 'void' || head.partnerId !== partnerId) return 'not_found';
        if (head.state === 'erased') return alreadyErased(head);
        const outcome =
          capacity === 'bypass'
            ? await erase(head, at, audit)
            : await outbox.withCapacity('erasure', () => erase(head, at, audit));
        if (outcome !== 'not_found') return outcome;
        // The proof was changed, erased or fenced meanwhile.
      }
    },

    async confirmErasure(proofId, at) {
      const head = await rows.head(proofId);
      if (head?.state !== 'erased') return 'not_erased';
      if (head.confirmedAt !== undefined) return 'already_confirmed';
      if (head.eraseOp !== undefined) await erasing.complete(proofId, head.eraseOp);
      const op = randomUUID();
      const { applied } = await session.lightweightTransaction({
        query: CONFIRM,
        params: [at, op, rows.codeOf({ ...head, confirmedAt: at }), proofId],
        operation: { column: 'confirm_op', id: op },
      });
      return applied ? 'confirmed' : 'already_confirmed';
    },
  };
}
