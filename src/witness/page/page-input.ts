import type { EvidenceReport } from '../domain/evidence-report.js';

/** The proof that a page shows. Every member is optional. */
export interface ReportSubject {
  readonly proofId?: string;
  readonly title?: string;
  /** The time of issue in unix seconds. */
  readonly issuedAt?: number;
  readonly carrier?: string;
  readonly boundAudioSha256?: string;
  /** The SHA-256 of the verified file, or of the delivered file if no file was verified. */
  readonly fileSha256?: string;
  /** The name of the service that issued the proof. */
  readonly issuer?: string;
  /** The address of the service. */
  readonly service?: string;
  /** What the issuing side declared about the song. */
  readonly declared?: { readonly artist?: string; readonly release?: string; readonly isrc?: string };
  /** The verdict, if a file was verified. */
  readonly verdict?: string;
  readonly verifiedAt?: number;
  readonly decision?: {
    readonly status: string;
    readonly reasons: readonly string[];
    readonly recommendedAction: string;
    readonly sourceDetailCoverage?: string;
  };
  /** The compatibility data of a legacy proof, unchanged. */
  readonly legacy?: Readonly<Record<string, string>>;
}

/** The process note: sentences written by a fixed policy. */
export interface NoteText {
  readonly policyVersion?: string;
  readonly lines: readonly string[];
}

export interface ReportPageInput {
  readonly proof: ReportSubject;
  /** Absent for a proof without a report. */
  readonly report?: EvidenceReport;
  readonly note?: NoteText;
}
