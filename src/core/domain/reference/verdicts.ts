/**
 * The meanings of verdicts, decision statuses and recommended actions. The page at `/docs` and the command
 * line use this registry (rules 8.6, 9.2 and 9.4).
 */
import type { DecisionStatus, RecommendedAction, Verdict } from '../verdicts.js';
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
    meaning: 'The registry of the service has no such proof or credential.',
    caller: 'Reject.',
    artist: 'The service has no record of this credential: please send the file that was issued to you.',
  },
  unreadable: {
    meaning: 'No readable proof was found, or the audio does not match the credential in the file.',
    caller: 'Reject. Ask the sender to confirm that this is the right file.',
    artist: 'No matching credential could be read from this file: please check that it is the issued file.',
  },
  local_seal: DECISION_REASONS.local_seal.sealed_by_device,
} as const satisfies Record<Verdict, ReferenceEntry>;

export const STATUS_REFERENCE = {
  verified_binding: {
    meaning: 'The credential is valid and bound to exactly this audio.',
    caller: 'Accept the credential.',
    artist: 'The credential of this recording was verified.',
  },
  needs_review: {
    meaning: 'The credential is valid, and the evidence report needs a human decision.',
    caller:
      'Have a person read the report before you accept the file. This is not a failure of the credential.',
    artist: 'The credential was verified, and a person will look at the production record.',
  },
  invalid_proof: {
    meaning: 'The credential is not valid. The verdict and the first reason state why.',
    caller: 'Follow the recommended action.',
    artist: 'The credential of this file could not be verified.',
  },
} as const satisfies Record<DecisionStatus, ReferenceEntry>;

export const ACTION_REFERENCE = {
  accept_credential: {
    meaning: 'The credential gives no reason to reject the file.',
    caller: 'Accept the credential. Your own policy decides everything else.',
    artist: 'You do not need to do anything.',
  },
  review: {
    meaning: 'A person should read the evidence report.',
    caller: 'Have a person check the file, and open a review if you need more evidence.',
    artist: 'A person is looking at the production record and may ask you for more information.',
  },
  reject: {
    meaning: 'The credential does not support accepting the file.',
    caller: 'Reject the file, and give the sender the reason.',
    artist: 'Please send the file exactly as it was issued to you.',
  },
  request_matching_pair: {
    meaning: 'The audio and the sidecar do not belong together.',
    caller: 'Ask for the audio and the sidecar that were issued together.',
    artist: 'Please send the audio together with the sidecar that was issued for it.',
  },
  confirm_file: {
    meaning: 'The sender may have sent the wrong file.',
    caller: 'Ask the sender to confirm the file. If it is the intended file, reject it.',
    artist: 'Please check that you sent the issued file, and its sidecar if it has one.',
  },
} as const satisfies Record<RecommendedAction, ReferenceEntry>;

/**
 * The reasons by verdict, indexed by string because a response may have unknown words. Each verdict has its
 * own.
 */
const REASONS: Readonly<Record<Verdict, Readonly<Record<string, ReferenceEntry>>>> = DECISION_REASONS;

/**
 * Returns the texts of the first reason, or of the verdict if the reason is unknown. Returns undefined for an
 * unknown verdict, which is a failed verification (rule 8.6).
 */
export function findVerdict(verdict: string, firstReason?: string): ReferenceEntry | undefined {
  if (!Object.hasOwn(VERDICT_REFERENCE, verdict)) return undefined;
  const reasons = REASONS[verdict as Verdict];
  return firstReason !== undefined && Object.hasOwn(reasons, firstReason)
    ? reasons[firstReason]
    : VERDICT_REFERENCE[verdict as Verdict];
}
