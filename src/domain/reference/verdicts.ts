/**
 * Meaning of verdicts, decision statuses and recommended actions: the one registry, of which the page at `/docs` and
 * the command line are made (rules 8.6, 9.2 and 9.4).
 */
import type { DecisionStatus, RecommendedAction, Verdict } from '../verification.js';
import type { ReferenceEntry } from './entry.js';
import { DECISION_REASONS } from './reasons.js';

export const VERDICT_REFERENCE = {
  valid: DECISION_REASONS.valid.credential_verified,
  audioChanged: DECISION_REASONS.audioChanged.audio_digest_mismatch,
  tampered: {
    meaning: 'The proof, the identity in it or its signature was altered.',
    caller: 'Reject.',
    artist: 'The credential is no longer as it was issued: please send the file again as you received it.',
  },
  unregistered: {
    meaning: 'This is not a proof or credential that the service has issued and kept.',
    caller: 'Reject.',
    artist: 'The service has no record of this credential: please send the file that was issued to you.',
  },
  unreadable: {
    meaning: 'No readable proof was found, or the audio no longer fits the credential in it.',
    caller: 'Reject, and confirm that this is the file that was meant.',
    artist: 'No credential that fits could be read from this file: please check that it is the issued one.',
  },
  local_seal: DECISION_REASONS.local_seal.sealed_by_device,
} as const satisfies Record<Verdict, ReferenceEntry>;

export const STATUS_REFERENCE = {
  verified_binding: {
    meaning: 'The credential holds, and it is bound to exactly this audio.',
    caller: 'Accept the credential.',
    artist: 'The credential of this recording was verified.',
  },
  needs_review: {
    meaning: 'The credential holds, and the evidence report asks for the decision of a person.',
    caller: 'Have a person read the report before you accept the file; it is no failure of the credential.',
    artist: 'The credential was verified, and a person will look at the production record.',
  },
  invalid_proof: {
    meaning: 'The credential does not hold; the verdict and the first reason say why.',
    caller: 'Do what the recommended action says.',
    artist: 'The credential of this file could not be verified.',
  },
} as const satisfies Record<DecisionStatus, ReferenceEntry>;

export const ACTION_REFERENCE = {
  accept_credential: {
    meaning: 'Nothing about the credential stands against the file.',
    caller: 'Accept the credential; your own policy decides on the rest.',
    artist: 'Nothing is left for you to do.',
  },
  review: {
    meaning: 'A person should read the evidence report.',
    caller: 'Put the file before a person, and open a review where you need more evidence.',
    artist: 'A person looks at the production record; you may be asked for more about it.',
  },
  reject: {
    meaning: 'The file cannot be accepted on this credential.',
    caller: 'Reject the file, and tell its sender the reason.',
    artist: 'Please send the file exactly as it was issued to you.',
  },
  request_matching_pair: {
    meaning: 'Audio and sidecar belong to different files.',
    caller: 'Ask for the audio and the sidecar that were issued together.',
    artist: 'Please send the audio together with the sidecar that was issued for it.',
  },
  confirm_file: {
    meaning: 'The file may not be the one that was meant.',
    caller: 'Ask the sender whether this is the right file, and reject it if it is.',
    artist: 'Please check that you sent the file that was issued, or its sidecar with it.',
  },
} as const satisfies Record<RecommendedAction, ReferenceEntry>;

/** Reasons by verdict, as whoever reads an answer has them: every verdict has its own. */
const REASONS: Readonly<Record<Verdict, Readonly<Record<string, ReferenceEntry>>>> = DECISION_REASONS;

/**
 * Texts of a verdict, as its first reason makes them more exact; undefined for a verdict that this version does not
 * know, which is a failed verification (rule 8.6).
 */
export function findVerdict(verdict: string, firstReason?: string): ReferenceEntry | undefined {
  if (!Object.hasOwn(VERDICT_REFERENCE, verdict)) return undefined;
  const reasons = REASONS[verdict as Verdict];
  return firstReason !== undefined && Object.hasOwn(reasons, firstReason)
    ? reasons[firstReason]
    : VERDICT_REFERENCE[verdict as Verdict];
}
