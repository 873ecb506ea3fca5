import { findVerdict } from '../core/domain/reference/verdicts.js';
import type { Verdict } from '../core/domain/verdicts.js';

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
 * Returns the texts of a verdict. The decision's first reason can make them more specific. A verdict that
 * this version does not know is a failed verification (rule 8.6).
 */
export function verdictText(
  verdict: string,
  decision?: { readonly status: string; readonly reasons: readonly string[] },
): VerdictText {
  const text = findVerdict(verdict, decision?.reasons[0]);
  if (text === undefined)
    return {
      title: `UNKNOWN VERDICT ${verdict}`,
      meaning: 'This version of takemark does not know the verdict, so the verdict counts as failed.',
      advice: 'Reject the file and update takemark.',
    };
  // The evidence never changes a verdict, but it may ask for a decision (rules 9.2 and 9.6).
  if (verdict === 'valid' && decision?.status === 'needs_review')
    return {
      title: 'VALID, NEEDS REVIEW',
      meaning: text.meaning,
      advice: 'The evidence needs a review by a person: read `takemark report` before you accept the file.',
    };
  return { title: TITLES[verdict as Verdict], meaning: text.meaning, advice: text.caller };
}
