import { randomUUID } from 'node:crypto';
import type { AuditDraft } from '../../../domain/audit.js';
import { defined } from '../../../domain/defined.js';
import { proofErased } from '../../../domain/events.js';
import type { ProofStore } from '../../../ports/stores.js';
import type { Intents } from '../commit/intents.js';
import type { Outbox } from '../commit/outbox.js';
import { numberIn, type Row, type Session, textIn } from '../driver/session.js';
import type { EvidenceRows } from './evidence-rows.js';
import type { IdempotencyRecords } from './idempotency-records.js';
import type { Indexed, ProofIndex } from './proof-index.js';
import { columnsOf, isInState, type ProofRows } from './proof-rows.js';

// The operation id of the issuing stays: it is no content.
const ERASE =
  "UPDATE proof SET state = 'erased', erased_at = ?, erase_op = ?, body = null, revised = null, replay_key = null, mac = ? WHERE proof_id = ? IF state = 'issued' AND partner_id = ? AND erase_op = null AND erased_at = null";
const CONFIRM =
  "UPDATE proof SET confirmed_at = ?, confirm_op = ?, mac = ? WHERE proof_id = ? IF state = 'erased' AND confirmed_at = null AND confirm_op = null";

interface Erasure extends Indexed {
  readonly erasedAt: number;
  readonly reservedAt: number;
  readonly replayKey?: string;
}

export interface ErasingParts {
  readonly rows: ProofRows;
  readonly index: ProofIndex;
  readonly evidence: EvidenceRows;
  readonly records: IdempotencyRecords;
  readonly outbox: Outbox;
  /** Removes the reviews of all partners on a proof. */
  readonly removeReviews: (proofId: string) => Promise<void>;
}

/**
 * Erasing: intent with what leads to the derived rows, the tombstone (the decision), removals, the event,
 * audit. From the tombstone on no reader sees anything derived, whatever is still there. The reviews, however
 * many, are left to the consumer of the event.
 */
export function proofErasing(
  session: Session,
  intents: Intents,
  { rows, index, evidence, records, outbox, removeReviews }: ErasingParts,
): Pick<ProofStore, 'eraseProof' | 'confirmErasure'> {
  const serialRows = rows.serialReads();
  const erasing = intents.operations<Erasure>({
    kind: 'proof_erased',
    async isDecided({ op, target }) {
      const row = await serialRows.row(target.proofId);
      return row !== undefined && textIn(row, 'erase_op') === op;
    },
    async follow({ target }) {
      const { proofId, partnerId, erasedAt, replayKey } = target;
      await evidence.remove(target);
      await index.remove(target, erasedAt);
      if (replayKey !== undefined) await records.removeOfProof(replayKey, proofId);
      await outbox.add(proofErased({ proofId, partnerId, erasedAt }));
    },
  });

  const erase = async (row: Row, at: number, audit: AuditDraft): ReturnType<ProofStore['eraseProof']> => {
    const { proofId, partnerId, createdAt, boundAudioSha256, originalSha256 } = rows.issuedOf(row);
    const { reservedAt } = columnsOf(row);
    const target = defined({
      proofId,
      partnerId,
      createdAt,
      boundAudioSha256,
      originalSha256,
      erasedAt: at,
      reservedAt,
      replayKey: textIn(row, 'replay_key'),
    });
    const code = rows.codeOf({ proofId, partnerId, state: 'erased', reservedAt, erasedAt: at });
    const { applied } = await erasing.commit(target, audit, (transact, { op }) =>
      transact({
        query: ERASE,
        params: [at, op, code, proofId, partnerId],
        operation: { column: 'erase_op', id: op },
      }),
    );
    if (applied) return { outcome: 'erased', proof: { state: 'erased', proofId, partnerId, erasedAt: at } };
    const erased = await rows.row(proofId);
    return isInState(erased, 'erased')
      ? { outcome: 'already_erased', proof: rows.erasedOf(erased!) }
      : 'not_found';
  };

  return {
    async eraseProof(proofId, partnerId, at, audit, capacity) {
      const row = await rows.row(proofId);
      if (row === undefined || textIn(row, 'partner_id') !== partnerId || isInState(row, 'pending'))
        return 'not_found';
      if (isInState(row, 'erased')) return { outcome: 'already_erased', proof: rows.erasedOf(row) };
      return capacity === 'bypass' ? erase(row, at, audit) : outbox.withCapacity(() => erase(row, at, audit));
    },

    async confirmErasure(proofId, at) {
      const row = await rows.row(proofId);
      if (!isInState(row, 'erased')) return 'not_erased';
      await evidence.remove(columnsOf(row!));
      // At every call: a review may have come to be beside the tombstone since the one before.
      await removeReviews(proofId);
      if (numberIn(row!, 'confirmed_at') !== undefined) return 'already_confirmed';
      const op = randomUUID();
      const { applied } = await session.lightweightTransaction({
        query: CONFIRM,
        params: [at, op, rows.codeOf({ ...columnsOf(row!), confirmedAt: at }), proofId],
        operation: { column: 'confirm_op', id: op },
      });
      return applied ? 'confirmed' : 'already_confirmed';
    },
  };
}
