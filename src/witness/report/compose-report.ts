import { defined } from '../../core/domain/defined.js';
import type { DeclarationEnvelope } from '../domain/declaration.js';
import type {
  EvidenceFacts,
  EvidenceOverlay,
  StoredConsent,
  StoredSourceDetail,
} from '../domain/evidence.js';
import {
  type ContentClass,
  declarationFacts,
  type EvidenceFact,
  type EvidenceReport,
  reportGaps,
} from '../domain/evidence-report.js';
import type { SourceDetail } from '../domain/session-evidence.js';

export interface ReportContent {
  /** The facts of the trace, as settled at issuing. Absent without a trace. */
  readonly facts?: EvidenceFacts;
  /** The overlay that passed its check. Absent when nothing was added after issuing. */
  readonly overlay?: Pick<EvidenceOverlay, 'revision' | 'engineVersion' | 'facts'>;
  /** The authentic declarations, oldest first. */
  readonly declarations: readonly DeclarationEnvelope[];
  /** The number of declarations that are omitted because the service did not write them. */
  readonly altered: number;
  /**
   * The source detail and the consent for its delivery. The report includes source detail only if both are
   * present.
   */
  readonly detail?: StoredSourceDetail;
  readonly consent?: Pick<StoredConsent, 'consentVersion'>;
}

/**
 * Composes the report of a proof from stored content, without drawing new conclusions. The same content gives
 * an identical report, in the same order of members.
 */
export function composeReport(content: ReportContent): EvidenceReport {
  const { facts, overlay, declarations, altered, detail, consent } = content;
  const settled = [...(facts?.facts ?? []), ...(overlay?.facts ?? [])];
  const ofClass = (contentClass: ContentClass): readonly EvidenceFact[] =>
    settled.filter((fact) => fact.contentClass === contentClass);
  return defined({
    version: 1 as const,
    facts: [
      ...ofClass('direct_observation'),
      ...ofClass('rule_inference'),
      ...declarationFacts(declarations, altered),
    ],
    conflicts: ofClass('explicit_conflict'),
    unverifiable: [...ofClass('unverifiable_coverage_gap'), ...reportGaps(facts !== undefined, altered)],
    declarations,
    engine: engineOf(facts, overlay),
    session: facts && { evidence: facts.session },
    importedSources: facts?.importedSources,
    importedSourceCount: facts?.importedSourceCount,
    sourceDetail: detail && consent && deliver(detail, consent.consentVersion),
  });
}

function engineOf(
  facts: ReportContent['facts'],
  overlay: ReportContent['overlay'],
): EvidenceReport['engine'] {
  if (facts === undefined && overlay === undefined) return undefined;
  return defined({
    facts: facts?.engineVersion,
    overlay: overlay?.engineVersion ?? facts!.engineVersion,
    revision: overlay?.revision ?? 0,
  });
}

function deliver(
  { version, observedAtSeconds, tracks, trackCount, placements, placementCount }: StoredSourceDetail,
  consentVersion: string,
): SourceDetail {
  const members = { observedAtSeconds, tracks, trackCount, placements, placementCount };
  return defined({ version, consentVersion, ...members });
}
