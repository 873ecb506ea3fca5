import { randomUUID } from 'node:crypto';
import { defined } from '../../../../core/domain/defined.js';
import type { AuditDraft } from '../../../domain/audit.js';
import type { IndexedProof } from '../../../domain/digests.js';
import { proofErased } from '../../../domain/events.js';
import type { ProofStore } from '../../../ports/stores.js';
import type { Decisions } from '../commit/decisions.js';
import type { Outbox } from '../commit/outbox.js';
import { type Session, textIn } from '../driver/session.js';
import type { ProofIndex } from './proof-index.js';
import type { Head, ProofRows } from './proof-rows.js';

const ERASE =
  "UPDATE record SET state = 'erased', erased_at = ?, erase_op = ?, body = null, mac = ? WHERE proof_id = ? AND part = '' IF state = 'issued' AND gen = ? AND erase_op = null";
// All but the head and the acts. A range, because a list would miss what is created meanwhile.
const REMOVE_PARTS = "DELETE FROM record WHERE proof_id = ? AND part >= 'b'";
const CONFIRM =
  "UPDATE record SET confirmed_at = ?, confirm_op = ?, mac = ? WHERE proof_id = ? AND part = '' IF state = 'erased' AND confirmed_at = null AND confirm_op = null";

/** Where the proof is pointed at from; nothing of it is in the record any more. */
interface Erasure extends IndexedProof {
  readonly erasedAt: number;
}

export interface ErasingParts {
  readonly rows: ProofRows;
  readonly index: ProofIndex;
  readonly outbox: Outbox;
  /** Removes what counts a partner's reviews on a proof. */
  readonly forgetReviews: (partnerId: string, proofId: string) => Promise<void>;
}

/**
 * Returns the calls that erase proofs and confirm erasures. One batch writes the tombstone and removes the reviews
 * and the evidence beside it, however many. What pointed at the proof is removed afterwards; from the tombstone on,
 * no reader follows it. An idempotency record expires by itself.
 */
export function proofErasing(
  session: Session,
  decisions: Decisions,
  { rows, index, outbox, forgetReviews }: ErasingParts,
): Pick<ProofStore, 'eraseProof' | 'confirmErasure'> {
  const erasing = decisions.operations<Erasure>({
    kind: 'proof_erased',
    table: rows.table,
    async follow(proofId, { data }) {
      await index.remove(data, data.erasedAt);
      const reviewers = (await rows.head(proofId))?.reviewers ?? [];
      await Promise.all(reviewers.map((partnerId) => forgetReviews(partnerId, proofId)));
    },
    event: {
      topic: 'erasure',
      of: (proofId, { data: { partnerId, erasedAt } }) => proofErased({ proofId, partnerId, erasedAt }),
    },
  });

  const alreadyErased = async (
    head: Head,
    sent: ReadonlySet<string>,
  ): ReturnType<ProofStore['eraseProof']> => {
    const { proofId, eraseOp, confirmedAt } = head;
    // The erasure's own call may have been interrupted.
    if (eraseOp !== undefined && confirmedAt === undefined) await erasing.complete(proofId, eraseOp);
    // One of the attempts of this call, whose reply was lost, may have erased the proof.
    const outcome = eraseOp !== undefined && sent.has(eraseOp) ? 'erased' : 'already_erased';
    return { outcome, proof: rows.erasedOf(head) };
  };

  /**
   * Returns undefined if the proof was changed, erased or fenced meanwhile, so that its head must be read again.
   * @param sent ids of the operations that are sent
   */
  const erase = async (
    head: Head,
    at: number,
    audit: AuditDraft,
    sent: Set<string>,
  ): Promise<Awaited<ReturnType<ProofStore['eraseProof']>> | undefined> => {
    const { proofId, gen } = head;
    const issued = rows.issuedOf(head);
    const { partnerId, createdAt, boundAudioSha256, originalSha256, fileSha256, samplesSha256 } = issued;
    const codeOf = (eraseOp: string) =>
      rows.codeOf({ proofId, partnerId, state: 'erased', erasedAt: at, eraseOp });
    const { applied } = await erasing.commit({
      key: proofId,
      audit,
      data: defined({
        proofId,
        partnerId,
        createdAt,
        boundAudioSha256,
        originalSha256,
        fileSha256,
        samplesSha256,
        erasedAt: at,
      }),
      statements: (op) => {
        sent.add(op);
        return [
          { query: ERASE, params: [at, op, codeOf(op), proofId, gen] },
          { query: REMOVE_PARTS, params: [proofId] },
        ];
      },
    });
    return applied
      ? { outcome: 'erased', proof: { state: 'erased', proofId, partnerId, erasedAt: at } }
      : undefined;
  };

  return {
    async eraseProof(proofId, partnerId, at, audit, capacity) {
      const sent = new Set<string>();
      for (;;) {
        const head = await rows.head(proofId);
        if (head === undefined || head.state === 'void' || head.partnerId !== partnerId) return 'not_found';
        if (head.state === 'erased') return alreadyErased(head, sent);
        const outcome =
          capacity === 'bypass'
            ? await erase(head, at, audit, sent)
            : await outbox.withCapacity('erasure', () => erase(head, at, audit, sent));
        if (outcome !== undefined) return outcome;
      }
    },

    async confirmErasure(proofId, at) {
      const head = await rows.head(proofId);
      if (head?.state !== 'erased') return 'not_erased';
      if (head.confirmedAt !== undefined) return 'already_confirmed';
      if (head.eraseOp !== undefined) await erasing.complete(proofId, head.eraseOp);
      const op = randomUUID();
      // Cassandra completes a change that was proposed before the tombstone when the partition is decided next, and that
      // write is newer than the removal of the erasure. The confirmation is that next decision, so it removes again.
      const { applied, current } = await session.lightweightTransaction(
        {
          query: CONFIRM,
          params: [at, op, rows.codeOf({ ...head, confirmedAt: at }), proofId],
          operation: { column: 'confirm_op', id: op },
        },
        { query: REMOVE_PARTS, params: [proofId] },
      );
      if (applied) return 'confirmed';
      // Another confirmation refused it, or a state that the read above did not show.
      return current !== undefined && textIn(current, 'confirm_op') !== undefined
        ? 'already_confirmed'
        : 'not_erased';
    },
  };
}
