import type { Declaration } from '../domain/declaration.js';
import type { EvidenceFacts } from '../domain/evidence.js';
import type { EvidenceFact } from '../domain/evidence-report.js';
import { concludeFromDeclarations } from './rules.js';

/**
 * Returns the conflicts and inferences that need declarations, for the overlay of a proof.
 * @param facts absent for a proof without a trace, or with altered facts
 * @param declarations authentic ones, oldest first
 */
export function evaluateOverlay(
  facts: Pick<EvidenceFacts, 'inputs'> | undefined,
  declarations: readonly Declaration[],
): EvidenceFact[] {
  return [...concludeFromDeclarations(facts?.inputs, declarations)];
}
