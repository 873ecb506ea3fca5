import type { AudioSummary, DecisionEnvelope, RecommendedAction, Verdict } from './verification.js';
import type { UploadFacts } from './upload.js';
import type { Judgement } from './verdict.js';

/** "Caller action" of the contract's verdict table. */
const ACTIONS: Readonly<Record<Verdict, RecommendedAction>> = {
  valid: 'accept_credential',
  audioChanged: 'request_matching_pair',
  tampered: 'reject',
  unregistered: 'reject',
  unreadable: 'confirm_file',
  local_seal: 'reject',
};

/** The decision envelope of a verdict. Without an evidence report nothing asks for a human decision. */
export function decide(judgement: Judgement): DecisionEnvelope {
  return {
    status: judgement.verdict === 'valid' ? 'verified_binding' : 'invalid_proof',
    reasons: judgement.reasons,
    recommendedAction: ACTIONS[judgement.verdict],
    credentialCarrier: judgement.carrier,
    sourceDetailCoverage: 'none',
    counts: { declarations: 0, conflicts: 0, unverifiable: 0 },
  };
}

export function summariseAudio(measurement: UploadFacts['measurement']): AudioSummary {
  const { format, frames } = measurement;
  return {
    container: measurement.container,
    ...(format === undefined ? {} : { sampleRate: format.sampleRate, channels: format.channels, bitsPerSample: format.validBitsPerSample ?? format.bitsPerSample }),
    ...(frames === undefined ? {} : { frames }),
    ...(frames === undefined || format === undefined || format.sampleRate === 0 ? {} : { durationSeconds: frames / format.sampleRate }),
    bytes: measurement.bytes,
    sha256: measurement.sha256,
  };
}
