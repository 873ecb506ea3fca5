import { createHash } from 'node:crypto';
import type { EvidenceFact, EvidenceReport } from '../../domain/evidence-report.js';
import type { SessionEvidence } from '../../domain/session-evidence.js';
import { renderArrangement } from './arrangement.js';
import {
  needsReview,
  renderConflicts,
  renderDeclarations,
  renderFacts,
  renderImports,
} from './claims-view.js';
import { PATTERNS } from './lanes.js';
import { html, Markup } from './markup.js';
import { renderActivity, renderChannels, renderRecordings } from './session-view.js';
import { PAGE_STYLE } from './style.js';
import { clockText, countText, dateText, groupDigits, wordText } from './words.js';

/** Proof whose report a page shows. Every member may be absent. */
export interface ReportSubject {
  readonly proofId?: string;
  readonly title?: string;
  /** Unix seconds. */
  readonly issuedAt?: number;
  readonly carrier?: string;
  readonly boundAudioSha256?: string;
  /** Verification: the file that was compared, and the verdict. */
  readonly verdict?: string;
  readonly verifiedAt?: number;
  readonly decision?: {
    readonly status: string;
    readonly reasons: readonly string[];
    readonly recommendedAction: string;
    readonly sourceDetailCoverage?: string;
  };
  /** Compatibility data of a legacy proof, as they were kept. */
  readonly legacy?: Readonly<Record<string, string>>;
}

/** Process note: sentences that a fixed policy wrote. */
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

/** Lines of a note that the page shows. */
const NOTE_LINES = 48;

/**
 * One page that holds everything it needs: no script, nothing loaded, every text of the report escaped. Its own policy
 * forbids whatever it does not need, wherever it is opened.
 */
export function renderReportPage({ proof, report, note }: ReportPageInput): string {
  const style = createHash('sha256').update(PAGE_STYLE).digest('base64');
  const title = proof.title ?? proof.proofId ?? 'Evidence report';
  const body = html`<main>
<header><p class="kind">Evidence report</p><h1>${title}</h1>${renderIdentity(proof)}${renderDecision(proof, report)}${
    report?.session?.evidence.simulated === true
      ? html`<p class="banner">Simulated: a generator made this trace. Nothing below was witnessed.</p>`
      : undefined
  }</header>
${report === undefined ? renderWithoutReport(proof) : renderSections(report)}
${renderLegacy(proof)}
${renderNote(note)}
${renderTechnical(proof, report, note)}
<footer>The report only reports. It changes no verdict, says nothing about rights or authorship, and what was not watched is no zero.</footer>
</main>`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'sha256-${style}'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<meta name="referrer" content="no-referrer">
${html`<title>${title}: evidence report</title>`.text}
<style>${PAGE_STYLE}</style>
</head>
<body>
${PATTERNS.text}
${body.text}
</body>
</html>
`;
}

function renderIdentity({ proofId, issuedAt, verifiedAt, carrier }: ReportSubject): Markup {
  return html`<p class="identity">${proofId === undefined ? undefined : html`<span>Proof <code>${proofId}</code></span>`}${
    issuedAt === undefined ? undefined : html`<span>Issued ${dateText(issuedAt)}</span>`
  }${verifiedAt === undefined ? undefined : html`<span>Verified ${dateText(verifiedAt)}</span>`}${
    carrier === undefined ? undefined : html`<span>Credential ${wordText(carrier)}</span>`
  }</p>`;
}

function renderDecision({ verdict, decision }: ReportSubject, report: EvidenceReport | undefined): Markup {
  const facts = report === undefined ? [] : needsReview(report);
  const asking = facts.length;
  const count = askingText(facts);
  if (verdict === undefined)
    return html`<div class="decision ${asking > 0 ? 'review' : 'neutral'}"><b>${asking > 0 ? 'Registered proof, for review' : 'Registered proof'}</b><p>No audio was compared with it here. ${report === undefined ? 'It has no evidence report.' : count}</p></div>`;
  if (verdict !== 'valid')
    return html`<div class="decision bad"><b>Not valid: ${wordText(verdict)}</b><p>The file is not accepted as what its credential says.</p>${renderReasons(decision)}</div>`;
  const review = decision?.status === 'needs_review' || asking > 0;
  return html`<div class="decision ${review ? 'review' : 'good'}"><b>${review ? 'Valid, for review' : 'Valid'}</b><p>Signature, registry record and the exact audio match. ${report === undefined ? 'There is no evidence report.' : count}</p>${renderReasons(decision)}</div>`;
}

/** Sentence on how many conflicts there are, and how much else asks for a person. */
function askingText(facts: readonly EvidenceFact[]): string {
  const conflicts = facts.filter(({ contentClass }) => contentClass === 'explicit_conflict').length;
  const parts = [
    ...(conflicts > 0 ? [countText(conflicts, 'conflict', 'conflicts')] : []),
    ...(facts.length > conflicts
      ? [countText(facts.length - conflicts, 'open question', 'open questions')]
      : []),
  ];
  return parts.length === 0
    ? 'Nothing in the report asks for a decision.'
    : `${parts.join(' and ')} ${facts.length === 1 ? 'asks' : 'ask'} for a person’s decision.`;
}

function renderReasons(decision: ReportSubject['decision']): Markup | undefined {
  if (decision === undefined) return undefined;
  const { status, recommendedAction, reasons } = decision;
  return html`<p class="reasons">Status <code>${status}</code>, recommended <code>${recommendedAction}</code>${
    reasons.length === 0
      ? undefined
      : html`, because of ${reasons.slice(0, 8).map((reason, at) => html`${at > 0 ? ', ' : ''}<code>${reason}</code>`)}`
  }</p>`;
}

function renderSections(report: EvidenceReport): Markup {
  const session = report.session?.evidence;
  return html`${section('conflicts', 'Conflicts and open questions', renderConflicts(report))}
${section('arrangement', 'Arrangement', renderArrangement(report))}
${session === undefined ? section('session', 'Session', html`<p class="quiet">No capture trace: nothing was witnessed while the recording was made.</p>`) : section('activity', 'Activity over time', renderActivity(session))}
${section('declarations', 'Declared beside witnessed', renderDeclarations(report))}
${section('imports', 'Imported files', renderImports(report))}
${session === undefined ? undefined : renderSession(session)}
${section('facts', 'Everything the report states', renderFacts(report))}`;
}

function renderSession(session: SessionEvidence): Markup {
  const recordings = renderRecordings(session);
  return html`${recordings === undefined ? undefined : section('recordings', 'Recordings', recordings)}
${section('channels', 'What was watched, and what was seen', renderChannels(session))}`;
}

function renderWithoutReport(proof: ReportSubject): Markup {
  return section(
    'evidence',
    'Evidence',
    html`<p class="quiet">Evidence of the source is not available${proof.verdict === undefined || proof.verdict === 'valid' ? ': this proof has no report. That says nothing for or against the recording.' : ': a report is given with a valid verdict alone.'}</p>`,
  );
}

/** The note repeats in sentences what stands above it, for those who pass words on. */
function renderNote(note: NoteText | undefined): Markup | undefined {
  if (note === undefined || note.lines.length === 0) return undefined;
  return section(
    'note',
    'Process note',
    html`<ul class="note">${note.lines.slice(0, NOTE_LINES).map((line) => html`<li>${line}</li>`)}</ul>`,
  );
}

function renderLegacy({ legacy = {} }: ReportSubject): Markup | undefined {
  const entries = Object.entries(legacy).slice(0, 8);
  if (entries.length === 0) return undefined;
  return section(
    'legacy',
    'Kept from an earlier edition',
    html`<dl class="technical">${entries.map(([name, value]) => html`<div><dt>${wordText(name)}</dt><dd>${value}</dd></div>`)}</dl><p class="soft">Compatibility data. They are no measure of authorship or of work, and are not to be shown as one.</p>`,
  );
}

function renderTechnical(
  proof: ReportSubject,
  report: EvidenceReport | undefined,
  note: NoteText | undefined,
): Markup {
  const session = report?.session?.evidence;
  const rows: readonly (readonly [string, string | Markup | undefined])[] = [
    ['Proof', proof.proofId],
    ['Bound audio, SHA-256', code(proof.boundAudioSha256)],
    ['Capture trace, SHA-256', code(session?.traceSha256)],
    [
      'Trace',
      session &&
        `version ${session.traceVersion}, ${groupDigits(session.traceBytes)} bytes, ${groupDigits(session.events)} signed events, ${session.sealed ? 'sealed' : 'not sealed: it ends early'}`,
    ],
    [
      'Session',
      session &&
        `${dateText(session.startedAt)} by the device’s clock, ${clockText(session.durationSeconds)} long`,
    ],
    [
      'Agent',
      session &&
        `${session.adapter.name} ${session.adapter.version}${session.adapter.dawVersion === undefined ? '' : `, DAW ${session.adapter.dawVersion}`}`,
    ],
    [
      'Device',
      session && html`<code>${session.device.deviceId}</code>, ${wordText(session.device.standing)}`,
    ],
    ['Export, SHA-256', code(session?.export?.fileSha256)],
    [
      'Export and issued audio',
      session?.export &&
        `${session.export.issuedAudio === 'matches' ? 'the same' : session.export.issuedAudio === 'differs' ? 'differ' : wordText(session.export.issuedAudio)}; rendered again: ${wordText(session.export.rerender)}`,
    ],
    [
      'Source detail',
      report?.sourceDetail &&
        `version ${report.sourceDetail.version}, consent ${report.sourceDetail.consentVersion}`,
    ],
    ['Source detail coverage', proof.decision?.sourceDetailCoverage],
    [
      'Report',
      report &&
        `layout ${report.version}${report.engine === undefined ? '' : `; engine: ${report.engine.facts === undefined ? '' : `facts ${report.engine.facts}, `}overlay ${report.engine.overlay}, revision ${report.engine.revision}`}`,
    ],
    ['Policy of the note', note?.policyVersion],
  ];
  const shown = rows.filter(([, value]) => value !== undefined);
  return shown.length === 0
    ? new Markup('')
    : section(
        'technical',
        'Technical details',
        html`<dl class="technical">${shown.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`,
      );
}

function code(value: string | undefined): Markup | undefined {
  return value === undefined ? undefined : html`<code>${value}</code>`;
}

function section(id: string, title: string, content: Markup): Markup {
  return html`<section aria-labelledby="${id}"><h2 id="${id}">${title}</h2>
${content}</section>`;
}
