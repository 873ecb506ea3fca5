import type { ProofStore } from '../../../ports/stores.js';
import type { Intent, Intents } from '../commit/intents.js';
import { columnsOf, isInState, type ProofRows } from './proof-rows.js';

/**
 * The column `revised` maps each revision to the id of the operation that made it. The body cannot serve for
 * this, because the next change replaces the overlay.
 */
const REVISE =
  "UPDATE proof SET body = ?, revised = revised + ?, mac = ? WHERE proof_id = ? IF state = 'issued' AND body = ?";

interface Revising {
  readonly proofId: string;
  readonly revision: number;
}

export function proofOverlaying(intents: Intents, rows: ProofRows): ProofStore['changeOverlay'] {
  const serialRows = rows.serialReads();
  const isRevisedBy = async (
    reader: ProofRows,
    { op, target }: Pick<Intent<Revising>, 'op' | 'target'>,
  ): Promise<boolean> => {
    const revised = (await reader.row(target.proofId))?.['revised'] as
      | Readonly<Record<string, string>>
      | null
      | undefined;
    return revised?.[target.revision] === op;
  };
  const revising = intents.operations<Revising>({
    kind: 'overlay_changed',
    isDecided: (intent) => isRevisedBy(serialRows, intent),
  });

  return async (proofId, change, audit) => {
    for (;;) {
      const row = await rows.row(proofId);
      if (row === undefined || !isInState(row, 'issued')) return 'proof_gone';
      const proof = rows.issuedOf(row);
      const { result, overlay } = change(proof);
      if (overlay === undefined) return result;
      const body = rows.encode({ ...proof, overlay });
      const code = rows.codeOf({ ...columnsOf(row), body });
      const target: Revising = { proofId, revision: overlay.revision };
      const { applied } = await revising.commit(target, audit, async (transact, intent) => {
        const outcome = await transact({
          query: REVISE,
          params: [body, { [String(target.revision)]: intent.op }, code, proofId, row['body']],
        });
        // The condition does not name `revised`, so a refusal is looked into by a read.
        return { applied: outcome.applied || (await isRevisedBy(rows, intent)) };
      });
      if (applied) return result;
      // Another process changed the proof meanwhile: the rule is asked again of what it left.
    }
  };
}
