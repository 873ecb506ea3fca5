import type { ProofStore } from '../../../ports/stores.js';
import type { Decisions } from '../commit/decisions.js';
import type { ProofRows } from './proof-rows.js';

// The body holds the overlay's revision, so no body comes again.
const REVISE =
  "UPDATE record SET body = ?, mac = ? WHERE proof_id = ? AND part = '' IF state = 'issued' AND gen = ? AND body = ?";

export function proofOverlaying(decisions: Decisions, rows: ProofRows): ProofStore['changeOverlay'] {
  const revising = decisions.operations<undefined>({ kind: 'overlay_changed', table: rows.table });

  return async (proofId, change, audit) => {
    for (;;) {
      const head = await rows.head(proofId);
      if (head?.state !== 'issued') return 'proof_gone';
      const proof = rows.issuedOf(head);
      const { result, overlay } = change(proof);
      if (overlay === undefined) return result;
      const body = rows.encode({ ...proof, overlay });
      const code = rows.codeOf({ ...head, body });
      const { applied } = await revising.commit({
        key: proofId,
        audit,
        data: undefined,
        statements: () => [{ query: REVISE, params: [body, code, proofId, head.gen, head.body] }],
      });
      if (applied) return result;
      // Another process changed the proof meanwhile: the rule is asked again of what it left.
    }
  };
}
