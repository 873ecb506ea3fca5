import { createHash } from 'node:crypto';
import { defined } from '../../core/domain/defined.js';
import type { EncodedJson } from '../../core/domain/encoded-json.js';
import type { EvidenceFacts } from '../domain/evidence.js';
import type { EvidenceFact, EvidenceReport } from '../domain/evidence-report.js';
import type { ProcessNote } from '../domain/process-note.js';
import { outlineReport, type ReportOutline } from '../domain/report-outline.js';
import { composeReport, type ReportContent } from './compose-report.js';
import { decodeEvidence, type EvidenceBodies } from './evidence-body.js';
import { writeProcessNote } from './process-note.js';

/** A body of a proof's evidence as it was read, with the digest that the proof's record has. */
export interface StoredBody {
  readonly sha256: string;
  /** Absent for a body that is missing. */
  readonly bytes?: Uint8Array;
}

/** All from which the report of a proof is composed. It contains only values that a thread can receive. */
export interface StoredEvidence extends Pick<ReportContent, 'overlay' | 'declarations' | 'altered'> {
  /** The facts of the trace. Absent without a trace. */
  readonly facts?: StoredBody;
  /** The source detail, with the version of the consent. Absent if it is not delivered. */
  readonly detail?: StoredBody & { readonly consentVersion: string };
  /** Findings that were made after issuing. They follow the gaps of the report. */
  readonly found?: readonly EvidenceFact[];
}

/** A report with what the other members of a response need of it. */
export interface ComposedReport<Report = EvidenceReport> {
  readonly report: Report;
  readonly outline: ReportOutline;
  readonly processNote: ProcessNote;
  /** True when a body is missing, or its digest differs. */
  readonly isAltered: boolean;
  /** The capture device at issuing. Absent without sound facts. */
  readonly device?: EvidenceFacts['session']['device'];
}

/** A composed report. A large report was encoded outside the main thread. */
export type SentReport = ComposedReport<EvidenceReport | EncodedJson<EvidenceReport>>;

/** Composes the report of a proof from its bodies. Altered bodies are omitted, and reported (rule 9.29). */
export function composeStored({
  overlay,
  declarations,
  altered,
  facts: factsBody,
  detail: detailBody,
  found = [],
}: StoredEvidence): ComposedReport {
  const facts = factsBody && open('facts', factsBody);
  const detail = detailBody && open('detail', detailBody);
  const isAltered = facts === 'altered' || detail === 'altered';
  const sound = facts === 'altered' ? undefined : facts;
  const delivered =
    sound === undefined || detail === 'altered' || detailBody === undefined
      ? {}
      : { detail, consent: { consentVersion: detailBody.consentVersion } };
  const composed = composeReport(defined({ overlay, declarations, altered, facts: sound, ...delivered }));
  const findings = [...(isAltered ? [FACTS_ALTERED] : []), ...found];
  const report =
    findings.length === 0 ? composed : { ...composed, unverifiable: [...composed.unverifiable, ...findings] };
  return defined({
    report,
    outline: outlineReport(report),
    processNote: writeProcessNote(report),
    isAltered,
    device: sound?.session.device,
  });
}

/** Returns true when the evidence has a body whose composition would hold up other calls. */
export function isLarge({ facts, detail }: Pick<StoredEvidence, 'facts' | 'detail'>): boolean {
  return (facts?.bytes?.length ?? 0) + (detail?.bytes?.length ?? 0) > LARGE_BYTES;
}

/** The total size of the bodies, in bytes, above which a report is composed outside the main thread. */
const LARGE_BYTES = 16_384;

function open<Part extends keyof EvidenceBodies>(
  part: Part,
  { sha256, bytes }: StoredBody,
): EvidenceBodies[Part] | 'altered' {
  return bytes !== undefined && createHash('sha256').update(bytes).digest('hex') === sha256
    ? decodeEvidence(part, bytes)
    : 'altered';
}

const FACTS_ALTERED: EvidenceFact = {
  code: 'evidence_facts_altered',
  contentClass: 'unverifiable_coverage_gap',
  status: 'needs_review',
};
