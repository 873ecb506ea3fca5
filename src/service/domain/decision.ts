import { defined } from '../../core/domain/defined.js';
import type { Judgement } from '../../core/domain/verdict.js';
import type { RecommendedAction, Verdict } from '../../core/domain/verdicts.js';
import type { ReportOutline } from '../../witness/domain/report-outline.js';
import type { UploadFacts } from './upload.js';
import type { AudioSummary, DecisionEnvelope } from './verification.js';

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
 * @param outline of the report, present only with `valid`
 */
export function decide(judgement: Judgement, outline?: ReportOutline): DecisionEnvelope {
  const valid = judgement.verdict === 'valid';
  // `needs_review` is not a failure of the credential (rule 9.2).
  const review = valid && outline?.summary.status === 'needs_review';
  return {
    status: review ? 'needs_review' : valid ? 'verified_binding' : 'invalid_proof',
    reasons: review ? [...judgement.reasons, 'source_evidence_needs_review'] : judgement.reasons,
    recommendedAction: review ? 'review' : ACTIONS[judgement.verdict],
    credentialCarrier: judgement.carrier,
    sourceDetailCoverage: valid && outline !== undefined ? outline.sourceDetailCoverage : 'none',
    counts: outline?.summary.counts ?? { declarations: 0, conflicts: 0, unverifiable: 0 },
  };
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
