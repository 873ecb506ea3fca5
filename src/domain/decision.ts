import { defined } from './defined.js';
import { asksForReview, countEvidence, type EvidenceReport } from './evidence-report.js';
import type { UploadFacts } from './upload.js';
import type { Judgement } from './verdict.js';
import type { AudioSummary, DecisionEnvelope, RecommendedAction, Verdict } from './verification.js';

/** The recommended action for each verdict (rule 9.4). */
const ACTIONS: Readonly<Record<Verdict, RecommendedAction>> = {
  valid: 'accept_credential',
  audioChanged: 'request_matching_pair',
  tampered: 'reject',
  unregistered: 'reject',
  unreadable: 'confirm_file',
  local_seal: 'reject',
};

/**
 * Returns the decision envelope of a verdict, and of the evidence report if there is one. A report can ask
 * for a human decision on a valid credential, but never changes the verdict (rule 9.6).
 * @param report present only with `valid`
 */
export function decide(judgement: Judgement, report?: EvidenceReport): DecisionEnvelope {
  const valid = judgement.verdict === 'valid';
  // `needs_review` is not a failure of the credential (rule 9.2).
  const review = valid && report !== undefined && asksForReview(report);
  return {
    status: review ? 'needs_review' : valid ? 'verified_binding' : 'invalid_proof',
    reasons: review ? [...judgement.reasons, 'source_evidence_needs_review'] : judgement.reasons,
    recommendedAction: review ? 'review' : ACTIONS[judgement.verdict],
    credentialCarrier: judgement.carrier,
    sourceDetailCoverage: sourceDetailCoverage(valid ? report : undefined),
    counts: report === undefined ? { declarations: 0, conflicts: 0, unverifiable: 0 } : countEvidence(report),
  };
}

/**
 * Returns the coverage of the source detail (rule 9.26). `full`: it is delivered completely and every channel
 * was supported without gaps. `partial`: it is delivered otherwise.
 */
function sourceDetailCoverage(report: EvidenceReport | undefined): DecisionEnvelope['sourceDetailCoverage'] {
  const { sourceDetail, session } = report ?? {};
  if (sourceDetail === undefined) return 'none';
  const { tracks, trackCount, placements, placementCount } = sourceDetail;
  const isWhole = tracks.length === trackCount && placements.length === placementCount;
  const channels = Object.values(session?.evidence.coverage ?? {});
  const isCovered =
    channels.length > 0 &&
    channels.every(({ support, gapCount }) => support === 'supported' && gapCount === 0);
  return isWhole && isCovered ? 'full' : 'partial';
}

export function summariseAudio(measurement: UploadFacts['measurement']): AudioSummary {
  const { format, frames } = measurement;
  return {
    container: measurement.container,
    ...(format === undefined
      ? {}
      : {
          sampleRate: format.sampleRate,
          channels: format.channels,
          bitsPerSample: format.validBitsPerSample ?? format.bitsPerSample,
        }),
    ...defined({ frames }),
    ...(frames === undefined || format === undefined || format.sampleRate === 0
      ? {}
      : { durationSeconds: frames / format.sampleRate }),
    bytes: measurement.bytes,
    sha256: measurement.sha256,
  };
}
