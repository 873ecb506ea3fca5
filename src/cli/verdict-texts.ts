import { findVerdict } from '../domain/reference/verdicts.js';
import type { Verdict } from '../domain/verification.js';

const TITLES: Readonly<Record<Verdict, string>> = {
  valid: 'VALID',
  audioChanged: 'AUDIO CHANGED',
  tampered: 'TAMPERED',
  unregistered: 'UNREGISTERED',
  unreadable: 'UNREADABLE',
  local_seal: 'LOCAL SEAL',
};

interface VerdictText {
  readonly title: string;
  readonly meaning: string;
  readonly advice: string;
}

/**
 * Texts of a verdict, as its decision makes them more exact; a verdict that this version does not know is a failed
 * verification (rule 8.6).
 */
export function verdictText(
  verdict: string,
  decision?: { readonly status: string; readonly reasons: readonly string[] },
): VerdictText {
  const text = findVerdict(verdict, decision?.reasons[0]);
  if (text === undefined)
    return {
      title: `UNKNOWN VERDICT ${verdict}`,
      meaning: 'This version does not know the verdict, so it counts as failed.',
      advice: 'Reject, and update takemark.',
    };
  // The evidence never changes a verdict, but it may ask for a decision (rules 9.2 and 9.6).
  if (verdict === 'valid' && decision?.status === 'needs_review')
    return {
      title: 'VALID, NEEDS REVIEW',
      meaning: text.meaning,
      advice:
        'The evidence asks for the decision of a person: look at `takemark report` before you accept it.',
    };
  return { title: TITLES[verdict as Verdict], meaning: text.meaning, advice: text.caller };
}
