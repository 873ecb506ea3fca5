/** What a process with kept rows reports of its changes. */

/** A defect that is planted in a process. */
export type KeptRowsPlant = 'no-drop' | 'late-drop' | 'kept-plaintext';

/** The changes that were answered, which no later read may see undone. */
export interface Reported {
  readonly revoked: string[];
  readonly erased: { readonly apiKey: string; readonly proofId: string }[];
  /** The plans that the last answered change of each partner and its changes since then leave possible. */
  readonly plans: { readonly apiKey: string; possible: string[] }[];
}

/** Adds a line of a process to the changes. Other lines change nothing. */
export function addReport(reported: Reported, line: string): void {
  const [state, kind, apiKey, subject] = line.split(' ') as [string, string, string, string];
  if (kind === 'plan' && (state === 'begun' || state === 'answered')) {
    const known = reported.plans.find((plan) => plan.apiKey === apiKey);
    if (known === undefined) reported.plans.push({ apiKey, possible: ['volume', subject] });
    else if (state === 'begun') known.possible.push(subject);
    else known.possible = [subject];
  }
  if (state !== 'answered') return;
  if (kind === 'revoked') reported.revoked.push(apiKey);
  if (kind === 'erased') reported.erased.push({ apiKey, proofId: subject });
}
