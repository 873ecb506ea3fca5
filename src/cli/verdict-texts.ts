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

/** Texts of a verdict; one that this version does not know is a failed verification (rule 8.6). */
export function verdictText(verdict: string): {
  readonly title: string;
  readonly meaning: string;
  readonly advice: string;
} {
  return (
    (Object.hasOwn(TEXTS, verdict) ? TEXTS[verdict] : undefined) ?? {
      title: `UNKNOWN VERDICT ${verdict}`,
      meaning: 'This version does not know the verdict, so it counts as failed.',
      advice: 'Reject, and update takemark.',
    }
  );
}
