/**
 * Meanings of the values that members of answers have today (rule 2.9), a sentence each, where a value is neither a
 * verdict nor a reason. The OpenAPI document and the page at `/docs` are made of them.
 */
import type { Container } from '../audio.js';
import type { ContentClass, EvidenceSummary, FactStatus } from '../evidence-report.js';
import type { KeyStatus } from '../partner.js';
import type { EvidenceKind, EvidenceStatus, ReviewOutcome } from '../review.js';

export const CONTAINER_MEANINGS = {
  unknown: 'No container that is known here.',
  riff: 'WAV or Broadcast WAV: a RIFF file of form WAVE.',
  rf64: 'RF64, the form of WAV for more than 4 GiB (EBU Tech 3306).',
  bw64: 'BW64, the form of Broadcast WAV for more than 4 GiB (ITU-R BS.2088).',
  rifx: 'RIFX, a RIFF file whose numbers are big-endian.',
  w64: 'Sony Wave64.',
  aiff: 'AIFF.',
  aifc: 'AIFF-C.',
  caf: 'Core Audio Format.',
  mp3: 'MP3, with or without an ID3 tag before it.',
  mp4: 'MP4 and its like, such as M4A.',
  flac: 'FLAC.',
  ogg: 'Ogg, such as Vorbis or Opus.',
} as const satisfies Record<Container, string>;

export const CARRIER_MEANINGS = {
  embedded: 'The credential lies in the audio file.',
  sidecar: 'The credential lies in a file of its own beside the audio.',
} as const;

export const CREDENTIAL_CARRIER_MEANINGS = {
  ...CARRIER_MEANINGS,
  none: 'No credential came with the file.',
} as const;

export const COVERAGE_MEANINGS = {
  full: 'Source detail is delivered, and every channel of the workstation was supported.',
  partial: 'Source detail is delivered, with gaps.',
  none: 'Source detail is not delivered.',
} as const;

export const INTEGRITY_MEANINGS = {
  verified: 'Signature and hashes hold.',
  failed: 'A signature or a hash does not hold; the reasons say which.',
  not_checked: 'The credential has parts that are not looked into here.',
} as const;

export const TRUST_MEANINGS = {
  service: 'This service signed it.',
  device: 'A device of the artist signed it; nobody vouches for the name that the device gives itself.',
  unknown: 'The signer is not known here.',
} as const;

export const MATCH_MEANINGS = {
  exact_file: 'The bytes are those of the file that was delivered.',
  bound_audio: 'The bytes are those of the audio that the proof is bound to.',
  original_file: 'The bytes are those of the file as it came to be issued.',
} as const;

export const KEY_STATUS_MEANINGS = {
  active: 'The key opens what its scopes allow.',
  expiring: 'The key was rotated and still works, for 72 hours from then.',
  expired: 'The 72 hours after its rotation are over: the key opens nothing.',
  revoked: 'The key was revoked: it opens nothing.',
} as const satisfies Record<KeyStatus, string>;

export const REVIEW_STATUS_MEANINGS = {
  open: 'The case has no outcome yet.',
  resolved: 'The case has an outcome.',
} as const;

export const REVIEW_OUTCOME_MEANINGS = {
  accepted: 'You have accepted the work; final.',
  held: 'You wait; it may become `accepted` or `rejected`.',
  rejected: 'You have rejected the work; final.',
} as const satisfies Record<ReviewOutcome, string>;

export const EVIDENCE_KIND_MEANINGS = {
  source_evidence: 'Evidence of where a source comes from.',
  source_licence: 'The licence under which a source may be used.',
  creator_clarification: 'An explanation by the creator.',
} as const satisfies Record<EvidenceKind, string>;

export const EVIDENCE_STATUS_MEANINGS = {
  requested: 'It was asked for, and nothing has come yet.',
  supplied: 'The issuing side has referred to something; it is on you to accept or decline it.',
  accepted: 'You have accepted what was supplied; final.',
  declined: 'You have declined it; final.',
} as const satisfies Record<EvidenceStatus, string>;

export const FACT_STATUS_MEANINGS = {
  observed: 'It was witnessed.',
  inferred: 'It follows from what was witnessed, by a published rule.',
  reported: 'The issuing side supplied it.',
  declared: 'A creator declared it.',
  none_recorded: 'Nothing of the kind was recorded, which is no proof that there was none.',
  unverifiable: 'Nothing can verify it.',
  needs_review: 'It asks for the decision of a person.',
} as const satisfies Record<FactStatus, string>;

export const CONTENT_CLASS_MEANINGS = {
  direct_observation: 'Something that was witnessed.',
  rule_inference: 'A conclusion by a published rule.',
  creator_declaration: 'A declaration of the creator.',
  explicit_conflict: 'Two statements that do not agree.',
  unverifiable_coverage_gap: 'A gap that nothing can verify.',
} as const satisfies Record<ContentClass, string>;

export const SUMMARY_STATUS_MEANINGS = {
  needs_review: 'The report asks for the decision of a person.',
  recorded: 'Something was witnessed or declared.',
  none_recorded: 'Nothing was witnessed or declared.',
} as const satisfies Record<EvidenceSummary['status'], string>;
