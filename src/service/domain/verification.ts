import type { Container } from '../../core/domain/audio.js';
import type { EncodedJson } from '../../core/domain/encoded-json.js';
import type { CredentialReport } from '../../core/domain/parsed-credential.js';
import type { DecisionReason } from '../../core/domain/reference/reasons.js';
import type { DecisionStatus, RecommendedAction, Verdict } from '../../core/domain/verdicts.js';
import type { EvidenceReport } from '../../witness/domain/evidence-report.js';
import type { SourceDetailCoverage } from '../../witness/domain/report-outline.js';
import type { LegacyValues } from './legacy-proof.js';

/** The decision envelope. It is policy-neutral and never labels a track human or AI (rule 9.1). */
export interface DecisionEnvelope {
  readonly status: DecisionStatus;
  /** The reasons as stable slugs. The first slug decided the verdict. */
  readonly reasons: readonly DecisionReason[];
  readonly recommendedAction: RecommendedAction;
  readonly credentialCarrier: 'embedded' | 'sidecar' | 'none';
  readonly sourceDetailCoverage: SourceDetailCoverage;
  readonly counts: {
    readonly declarations: number;
    readonly conflicts: number;
    readonly unverifiable: number;
  };
}

/** The summary of the audio: the `audio` member of a verification result. */
export interface AudioSummary {
  readonly container: Container;
  readonly sampleRate?: number;
  readonly channels?: number;
  readonly bitsPerSample?: number;
  readonly frames?: number;
  readonly durationSeconds?: number;
  readonly bytes: number;
  readonly sha256: string;
}

export interface VerificationResult extends LegacyValues {
  readonly verdict: Verdict;
  /** Whether a caller may accept the file. True only with `valid` (rule 8.7). */
  readonly good: boolean;
  readonly decision: DecisionEnvelope;
  /** The time of issue in unix seconds. Present only with `valid`. */
  readonly issuedAt?: number;
  /** The proof named by the judged credential. Present if the credential is intact and was made by this service. */
  readonly proofId?: string;
  /** The time of the verification in unix seconds. */
  readonly verifiedAt: number;
  readonly audio: AudioSummary;
  /** The report. Present only with `valid`. If absent, source evidence is not available (rule 9.10). */
  readonly evidenceReport?: EvidenceReport | EncodedJson<EvidenceReport>;
  readonly embeddedCredential?: CredentialReport;
}
