/** The six verdicts in plain words, and what to do about them. */
const TEXTS: Readonly<
  Record<string, { readonly title: string; readonly meaning: string; readonly advice: string }>
> = {
  valid: {
    title: 'VALID',
    meaning: 'Signature, registry record and the exact audio bytes all match.',
    advice: 'Accept the credential; your own policy decides on the rest.',
  },
  audioChanged: {
    title: 'AUDIO CHANGED',
    meaning: 'The sidecar is intact, but it was made for other audio bytes.',
    advice: 'Reject, and ask for the matching pair.',
  },
  tampered: {
    title: 'TAMPERED',
    meaning: 'The proof, the identity in it or its signature was altered.',
    advice: 'Reject.',
  },
  unregistered: {
    title: 'UNREGISTERED',
    meaning: 'This is not a proof or credential that the service has issued and kept.',
    advice: 'Reject.',
  },
  unreadable: {
    title: 'UNREADABLE',
    meaning: 'No readable proof was found, or the audio no longer fits the credential in it.',
    advice: 'Reject, and confirm that this is the file that was meant.',
  },
  local_seal: {
    title: 'LOCAL SEAL',
    meaning: "An intact seal of an artist's device, never registered with the service.",
    advice: 'Do not accept it as issued by the service.',
  },
};

/** Texts for a verdict with a certain first reason, in the place of the verdict's own. */
const REASONS: Readonly<Record<string, { readonly meaning: string; readonly advice: string }>> = {
  'unreadable credential_missing': {
    meaning: 'The file has no credential in it.',
    advice: 'Ask for the file as it was issued; if it has a sidecar, verify both together.',
  },
  'unreadable container_unsupported': {
    meaning: 'A file of this format holds no credential itself: it needs its sidecar.',
    advice: 'Ask for the sidecar, and verify both together.',
  },
  'unreadable binding_mismatch': {
    meaning: 'The file is not, byte for byte, the one that its credential was put into.',
    advice: 'Reject, and ask for the file as it was issued.',
  },
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
  const text = Object.hasOwn(TEXTS, verdict) ? TEXTS[verdict] : undefined;
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
  const exact = REASONS[`${verdict} ${decision?.reasons[0]}`];
  return exact === undefined ? text : { ...text, ...exact };
}
