import { addDeclaration } from '../../../domain/declaration.js';
import type { ProofStore } from '../../../ports/stores.js';
import type { Intent, Intents } from '../commit/intents.js';
import { columnsOf, isInState, type ProofRows } from './proof-rows.js';

/**
 * The column `declared` maps each submission to the id of the operation that recorded it. The body cannot
 * serve for this, because the next declaration changes it.
 */
const DECLARE =
  "UPDATE proof SET body = ?, declared = declared + ?, mac = ? WHERE proof_id = ? IF state = 'issued' AND body = ?";

interface Declaring {
  readonly proofId: string;
  readonly submissionId: string;
}

export function proofDeclaring(intents: Intents, rows: ProofRows): ProofStore['recordDeclaration'] {
  const serialRows = rows.serialReads();
  const isDeclaredBy = async (
    reader: ProofRows,
    { op, target }: Pick<Intent<Declaring>, 'op' | 'target'>,
  ): Promise<boolean> => {
    const declared = (await reader.row(target.proofId))?.['declared'] as
      | Readonly<Record<string, string>>
      | null
      | undefined;
    return declared?.[target.submissionId] === op;
  };
  const declaring = intents.operations<Declaring>({
    kind: 'declaration_recorded',
    isDecided: (intent) => isDeclaredBy(serialRows, intent),
  });

  return async (proofId, declaration, audit) => {
    for (;;) {
      const row = await rows.row(proofId);
      if (row === undefined || !isInState(row, 'issued')) return { outcome: 'proof_gone' };
      const proof = rows.issuedOf(row);
      const step = addDeclaration(proof.declarations ?? [], declaration);
      if (step.outcome !== 'recorded') return step;
      const body = rows.encode({ ...proof, declarations: step.declarations });
      const code = rows.codeOf({ ...columnsOf(row), body });
      const target: Declaring = { proofId, submissionId: declaration.submissionId };
      const { applied } = await declaring.commit(target, audit, async (transact, intent) => {
        const outcome = await transact({
          query: DECLARE,
          params: [body, { [target.submissionId]: intent.op }, code, proofId, row['body']],
        });
        // The condition does not name `declared`, so a refusal is looked into by a read.
        return { applied: outcome.applied || (await isDeclaredBy(rows, intent)) };
      });
      if (applied) return step;
      // Another process changed the proof meanwhile: the rule is asked again of what it left.
    }
  };
}
