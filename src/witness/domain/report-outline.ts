import { type EvidenceReport, type EvidenceSummary, summariseEvidence } from './evidence-report.js';

/** How much of the source detail of a session is delivered. */
export type SourceDetailCoverage = 'full' | 'partial' | 'none';

/** The part of a report that a decision depends on. */
export interface ReportOutline {
  readonly summary: EvidenceSummary;
  readonly sourceDetailCoverage: SourceDetailCoverage;
}

export function outlineReport(report: EvidenceReport): ReportOutline {
  return { summary: summariseEvidence(report), sourceDetailCoverage: sourceDetailCoverage(report) };
}

/**
 * Returns the coverage of the source detail (rule 9.26). `full`: it is delivered completely and every channel
 * was supported without gaps. `partial`: it is delivered otherwise.
 */
function sourceDetailCoverage({ sourceDetail, session, unverifiable }: EvidenceReport): SourceDetailCoverage {
  if (sourceDetail === undefined) return 'none';
  const { tracks, trackCount, placements, placementCount } = sourceDetail;
  const isWhole = tracks.length === trackCount && placements.length === placementCount;
  const channels = Object.values(session?.evidence.coverage ?? {});
  const isCovered =
    channels.length > 0 &&
    channels.every(({ support, gapCount }) => support === 'supported' && gapCount === 0);
  const hadBegun = unverifiable.some(({ code }) => code === 'session_begun_before_agent');
  return isWhole && isCovered && !hadBegun ? 'full' : 'partial';
}
