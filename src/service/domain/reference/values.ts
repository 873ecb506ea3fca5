/**
 * The meanings of the known values of response members (rule 2.9), one sentence each, except verdicts and
 * reasons. The OpenAPI document and the page at `/docs` are built from them.
 */
import type { Container } from '../../../core/domain/audio.js';
import type { LimitName } from '../../../core/domain/errors.js';
import type { ContentClass, EvidenceSummary, FactStatus } from '../../../witness/domain/evidence-report.js';
import type { KeyStatus } from '../partner.js';
import type { EvidenceKind, EvidenceStatus, ReviewOutcome } from '../review.js';

export const CONTAINER_MEANINGS = {
  unknown: 'The service does not know this container format.',
  riff: 'WAV or Broadcast WAV: a RIFF file of form WAVE.',
  rf64: 'RF64, the form of WAV for more than 4 GiB (EBU Tech 3306).',
  bw64: 'BW64, the form of Broadcast WAV for more than 4 GiB (ITU-R BS.2088).',
  rifx: 'RIFX, a RIFF file whose numbers are big-endian.',
  w64: 'Sony Wave64.',
  aiff: 'AIFF.',
  aifc: 'AIFF-C.',
  caf: 'Core Audio Format.',
  mp3: 'MP3, with or without an ID3 tag before it.',
  mp4: 'MP4 and related formats, such as M4A.',
  flac: 'FLAC.',
  ogg: 'Ogg, such as Vorbis or Opus.',
  aac: 'AAC in ADTS frames, with or without an ID3 tag before it.',
  wavpack: 'WavPack.',
} as const satisfies Record<Container, string>;

export const CARRIER_MEANINGS = {
  embedded: 'The credential is inside the audio file.',
  sidecar: 'The credential is in a separate file, the sidecar.',
} as const;

export const CREDENTIAL_CARRIER_MEANINGS = {
  ...CARRIER_MEANINGS,
  none: 'No credential was found.',
} as const;

export const COVERAGE_MEANINGS = {
  full: 'Source detail is delivered completely, and every channel of the workstation was monitored without gaps.',
  partial: 'Source detail is delivered, but it is shortened or some channels were not fully monitored.',
  none: 'Source detail is not delivered.',
} as const;

export const INTEGRITY_MEANINGS = {
  verified: 'The signature and the hashes are valid.',
  failed: 'A signature or a hash is not valid. The reasons state which.',
  not_checked: 'The credential has parts that this service does not check.',
} as const;

export const TRUST_MEANINGS = {
  service: 'This service signed the credential.',
  device: 'A device of the artist signed the credential. The name of the device is not verified.',
  unknown: 'This service does not know the signer.',
} as const;

export const MATCH_MEANINGS = {
  exact_file: 'The file is identical to the delivered file.',
  bound_audio: 'The file is identical to the audio that the proof is bound to.',
  original_file: 'The file is identical to the file before its credential was added.',
  same_samples: 'The file has the same samples as the audio of the proof, and is another file.',
} as const;

export const KEY_STATUS_MEANINGS = {
  active: 'The key works for everything that its scopes allow.',
  expiring: 'The key was rotated and works until 72 hours after the rotation.',
  expired: 'The key was rotated more than 72 hours ago and no longer works.',
  revoked: 'The key was revoked and no longer works.',
} as const satisfies Record<KeyStatus, string>;

export const REVIEW_STATUS_MEANINGS = {
  open: 'The case has no outcome yet.',
  resolved: 'The case has an outcome.',
} as const;

export const REVIEW_OUTCOME_MEANINGS = {
  accepted: 'You accepted the work. This outcome is final.',
  held: 'You put the decision on hold. It may become `accepted` or `rejected`.',
  rejected: 'You rejected the work. This outcome is final.',
} as const satisfies Record<ReviewOutcome, string>;

export const EVIDENCE_KIND_MEANINGS = {
  source_evidence: 'Evidence for the origin of a source.',
  source_licence: 'The licence under which a source may be used.',
  creator_clarification: 'An explanation by the creator.',
} as const satisfies Record<EvidenceKind, string>;

export const EVIDENCE_STATUS_MEANINGS = {
  requested: 'You requested the evidence, but it has not been supplied yet.',
  supplied: 'The issuing side has supplied the evidence. You decide to accept or decline it.',
  accepted: 'You accepted the evidence. This decision is final.',
  declined: 'You declined the evidence. This decision is final.',
} as const satisfies Record<EvidenceStatus, string>;

export const FACT_STATUS_MEANINGS = {
  observed: 'The fact was observed.',
  inferred: 'A published rule inferred the fact from observations.',
  reported: 'The issuing side supplied the fact.',
  declared: 'A creator declared the fact.',
  none_recorded: 'No such fact was recorded. This does not prove that there was none.',
  unverifiable: 'The fact cannot be verified.',
  needs_review: 'The fact needs a human decision.',
} as const satisfies Record<FactStatus, string>;

export const CONTENT_CLASS_MEANINGS = {
  direct_observation: 'An observation.',
  rule_inference: 'An inference by a published rule, or by a detector of the issuing side.',
  creator_declaration: 'A declaration of the creator.',
  explicit_conflict: 'Two statements that contradict each other.',
  unverifiable_coverage_gap: 'A gap in the evidence. What happened in the gap cannot be verified.',
} as const satisfies Record<ContentClass, string>;

export const SUMMARY_STATUS_MEANINGS = {
  needs_review: 'The report needs a human decision.',
  recorded: 'Something was observed or declared, and no human decision is needed.',
  none_recorded: 'Nothing was observed or declared.',
} as const satisfies Record<EvidenceSummary['status'], string>;

export const LIMIT_MEANINGS = {
  monthly_quota: 'Units of the quota per month.',
  request_rate: 'Requests per second, with a burst.',
  rotation_rate: 'Key rotations per day.',
  concurrent_uploads: 'Uploads that run at the same time.',
  uploads_of_address:
    'Uploads of one network address that have stalled, or have not sent their signed fields yet.',
  large_reads: 'Lists of proofs, identifies of digests and large reports that run or wait at the same time.',
  concurrent_downloads: 'Downloads that run at the same time.',
  wrong_signatures: 'Calls with one key that have a wrong signature.',
  product_events: 'Product events that a partner reports, at once and per day.',
  reviews: 'Review cases on one proof, or in total.',
} as const satisfies Record<LimitName, string>;
