import type { CounterName } from './session-evidence.js';

/** Summary of a session that a client supplies: numbers that the replay is held against, and that never count. */
export interface SessionSummary {
  readonly durationSeconds?: number;
  readonly counters?: Partial<Readonly<Record<CounterName, number>>>;
}

/** Result of a detector about one file, as the issuing side supplies it. */
export interface SuppliedDetection {
  /** Digest of an import: of the whole original file, or of the samples as the session held them. */
  readonly sha256: string;
  readonly detector: string;
  readonly detectorVersion: string;
  /** Probability from 0 to 1 that the file was generated. */
  readonly likelihood?: number;
  readonly generator?: string;
}

/** Bounds of what is supplied beside a trace. */
export const SUPPLIED_LIMITS = { summaryBytes: 16_384, detectionsBytes: 262_144, detections: 256 } as const;
