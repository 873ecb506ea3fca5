import type { IssuedProof } from '../../../domain/proof.js';
import type { ProofStore } from '../../../ports/stores.js';
import type { Decisions } from '../commit/decisions.js';
import type { Session, Statement } from '../driver/session.js';
import type { Head, ProofRows } from './proof-rows.js';

// The body has the overlay's revision, and it is encrypted with a new nonce at each change. So no body comes again.
const REVISE =
  "UPDATE record SET body = ?, mac = ? WHERE proof_id = ? AND part = '' IF state = 'issued' AND gen = ? AND body = ?";

/** Changes what the record of an issued proof has beside its immutable content: overlay and summary. */
export function proofOverlaying(
  session: Session,
  decisions: Decisions,
  rows: ProofRows,
): Pick<ProofStore, 'changeOverlay' | 'changeSummary'> {
  const revising = decisions.operations<undefined>({ kind: 'overlay_changed', table: rows.table });

  /** Returns the statement that replaces the record as it was read. */
  const revise = (head: Head, proof: IssuedProof): Statement => {
    const body = rows.encode(proof);
    return {
      query: REVISE,
      params: [body, rows.codeOf({ ...head, body }), head.proofId, head.gen, head.body],
    };
  };

  return {
    async changeOverlay(proofId, change, audit) {
      for (;;) {
        const head = await rows.head(proofId);
        if (head?.state !== 'issued') return 'proof_gone';
        const proof = rows.issuedOf(head);
        const { result, ...changed } = change(proof);
        if (changed.overlay === undefined) return result;
        const statement = revise(head, { ...proof, ...changed });
        const { applied } = await revising.commit({
          key: proofId,
          audit,
          data: undefined,
          statements: () => [statement],
        });
        if (applied) return result;
        // Another process changed the proof meanwhile, so the rule is applied to the changed proof.
      }
    },

    async changeSummary(proofId, settle) {
      for (;;) {
        const head = await rows.head(proofId);
        if (head?.state !== 'issued') return 'proof_gone';
        const proof = rows.issuedOf(head);
        const changed = settle(proof);
        if (changed === undefined) return 'settled';
        const { applied } = await session.lightweightTransaction(revise(head, { ...proof, ...changed }));
        if (applied) return 'settled';
      }
    },
  };
}
