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

/** The proof that a page shows. Every member is optional. */
export interface ReportSubject {
  readonly proofId?: string;
  readonly title?: string;
  /** Unix seconds. */
  readonly issuedAt?: number;
  readonly carrier?: string;
  readonly boundAudioSha256?: string;
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

/** The most note lines that the page shows. */
const NOTE_LINES = 48;

/**
 * Returns a self-contained page without scripts or external resources. Every text of the report is escaped.
 * The page's own content security policy forbids everything that the page does not need.
 */
export function renderReportPage({ proof, report, note }: ReportPageInput): string {
  const style = createHash('sha256').update(PAGE_STYLE).digest('base64');
  const title = proof.title ?? proof.proofId ?? 'Evidence report';
  const body = html`<main>
<header><p class="kind">Evidence report</p><h1>${title}</h1>${renderIdentity(proof)}${renderDecision(proof, report)}${
    report?.session?.evidence.simulated === true
      ? html`<p class="banner">Simulated: a generator created this trace. Nothing below was observed in a real session.</p>`
      : undefined
  }</header>
${report === undefined ? renderWithoutReport(proof) : renderSections(report)}
${renderLegacy(proof)}
${renderNote(note)}
${renderTechnical(proof, report, note)}
<footer>For information only: this report does not change the verdict and makes no claim about rights or authorship. “Not watched” does not mean “none”.</footer>
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
    return html`<div class="decision ${asking > 0 ? 'review' : 'neutral'}"><b>${asking > 0 ? 'Registered proof, needs review' : 'Registered proof'}</b><p>No audio file was compared with this proof. ${report === undefined ? 'The proof has no evidence report.' : count}</p></div>`;
  if (verdict !== 'valid')
    return html`<div class="decision bad"><b>Not valid: ${wordText(verdict)}</b><p>The file could not be verified against a registered proof.</p>${renderReasons(decision)}</div>`;
  const review = decision?.status === 'needs_review' || asking > 0;
  return html`<div class="decision ${review ? 'review' : 'good'}"><b>${review ? 'Valid, needs review' : 'Valid'}</b><p>Signature, registry record and the exact audio match. ${report === undefined ? 'The proof has no evidence report.' : count}</p>${renderReasons(decision)}</div>`;
}

/** Returns a sentence with the numbers of conflicts and of open questions. */
function askingText(facts: readonly EvidenceFact[]): string {
  const conflicts = facts.filter(({ contentClass }) => contentClass === 'explicit_conflict').length;
  const parts = [
    ...(conflicts > 0 ? [countText(conflicts, 'conflict', 'conflicts')] : []),
    ...(facts.length > conflicts
      ? [countText(facts.length - conflicts, 'open question', 'open questions')]
      : []),
  ];
  return parts.length === 0
    ? 'The report needs no decision.'
    : `${parts.join(' and ')} ${facts.length === 1 ? 'needs' : 'need'} a decision by a person.`;
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
${session === undefined ? section('session', 'Session', html`<p class="quiet">No capture trace: no session agent observed how the recording was made.</p>`) : section('activity', 'Activity over time', renderActivity(session))}
${section('declarations', 'Declared and observed', renderDeclarations(report))}
${section('imports', 'Imported files', renderImports(report))}
${session === undefined ? undefined : renderSession(session)}
${section('facts', 'Everything the report states', renderFacts(report))}`;
}

function renderSession(session: SessionEvidence): Markup {
  const recordings = renderRecordings(session);
  return html`${recordings === undefined ? undefined : section('recordings', 'Recordings', recordings)}
${section('channels', 'Kinds of activity that the agent watched', renderChannels(session))}`;
}

function renderWithoutReport(proof: ReportSubject): Markup {
  return section(
    'evidence',
    'Evidence',
    html`<p class="quiet">No evidence about the source is available${proof.verdict === undefined || proof.verdict === 'valid' ? ': this proof has no report. That is no argument for or against the recording.' : ': a report is only available with a valid verdict.'}</p>`,
  );
}

/** Renders the process note, which repeats the report in sentences that can be quoted. */
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
    'From an earlier registry',
    html`<dl class="technical">${entries.map(([name, value]) => html`<div><dt>${wordText(name)}</dt><dd>${value}</dd></div>`)}</dl><p class="soft">Compatibility data. These values do not measure authorship or work and must not be presented as such.</p>`,
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
        `version ${session.traceVersion}, ${groupDigits(session.traceBytes)} bytes, ${groupDigits(session.events)} signed events, ${session.sealed ? 'sealed' : 'not sealed: the trace ends early'}`,
    ],
    [
      'Session',
      session &&
        `started ${dateText(session.startedAt)} (device clock), length ${clockText(session.durationSeconds)}`,
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
        `${session.export.issuedAudio === 'matches' ? 'identical' : session.export.issuedAudio === 'differs' ? 'different' : wordText(session.export.issuedAudio)}; repeated render: ${wordText(session.export.rerender)}`,
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
    ['Process note policy', note?.policyVersion],
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
