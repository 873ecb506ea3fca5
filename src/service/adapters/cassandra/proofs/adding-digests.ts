import type { ProofStore } from '../../../ports/stores.js';
import type { Decisions } from '../commit/decisions.js';
import type { ProofIndex } from './proof-index.js';
import type { ProofRows } from './proof-rows.js';

// The generation rises, so that an erasure that read the record without the digests is refused, and reads it again.
const ADD =
  "UPDATE record SET body = ?, gen = ?, mac = ? WHERE proof_id = ? AND part = '' IF state = 'issued' AND gen = ? AND body = ?";

/** Adds digests to records of versions that stored none: the record (the decision), then the index entries. */
export function addingDigests(
  decisions: Decisions,
  rows: ProofRows,
  index: ProofIndex,
): Pick<ProofStore, 'addDigests'> {
  const adding = decisions.operations<undefined>({
    kind: 'digests_added',
    table: rows.table,
    async follow(proofId) {
      const head = await rows.head(proofId);
      // An erasure that came right behind removes what is added here, under a later timestamp.
      if (head?.state === 'issued') await index.add(rows.issuedOf(head));
    },
  });
  return {
    async addDigests(proofId, digests) {
      for (;;) {
        const head = await rows.head(proofId);
        if (head?.state !== 'issued') return 'proof_gone';
        const body = rows.encode({ ...digests, ...rows.issuedOf(head) });
        const { gen } = head;
        const { applied } = await adding.commit({
          key: proofId,
          data: undefined,
          statements: () => [
            {
              query: ADD,
              params: [body, gen + 1, rows.codeOf({ ...head, body }), proofId, gen, head.body],
            },
          ],
        });
        if (applied) return 'added';
        // Another process changed the proof meanwhile.
      }
    },
  };
}
