import type { CounterName } from './session-evidence.js';

/**
 * The summary of a session that a client supplies. The replay is compared with its numbers, but only the
 * replay counts.
 */
export interface SessionSummary {
  readonly durationSeconds?: number;
  readonly counters?: Partial<Readonly<Record<CounterName, number>>>;
}

/** The result of a detector about one file, as supplied by the issuing side. */
export interface SuppliedDetection {
  /** The SHA-256 of an import: of the whole original file, or of the samples as stored in the session. */
  readonly sha256: string;
  readonly detector: string;
  readonly detectorVersion: string;
  /** The probability from 0 to 1 that the file was generated. */
  readonly likelihood?: number;
  readonly generator?: string;
}

/** The maximum size of the summary and the detections in bytes, and the most detections. */
export const SUPPLIED_LIMITS = { summaryBytes: 16_384, detectionsBytes: 262_144, detections: 256 } as const;
