import { createHash } from 'node:crypto';
import { IDENTIFIER_PATTERN } from '../../core/domain/identifiers.js';
import { VERDICT_REFERENCE } from '../../core/domain/reference/verdicts.js';
import type { EvidenceFact, EvidenceReport } from '../domain/evidence-report.js';
import type { SessionEvidence } from '../domain/session-evidence.js';
import { simulatedText } from '../report/process-note.js';
import { renderArrangement } from './arrangement.js';
import {
  needsReview,
  renderConflicts,
  renderDeclarations,
  renderFacts,
  renderImports,
} from './claims-view.js';
import { PATTERNS } from './lanes.js';
import { renderMachineWords, renderNote } from './machine-view.js';
import { html, type Markup } from './markup.js';
import type { ReportPageInput, ReportSubject } from './page-input.js';
import { renderCheck, renderGlossary } from './reading-help.js';
import { renderActivity, renderChannels, renderRecordings } from './session-view.js';
import { PAGE_STYLE, sheetStyle } from './style.js';
import { countText, dateText, groupDigits, wordText } from './words.js';

/**
 * Returns a self-contained page without scripts or external resources. Every text of the report is escaped.
 * The page's own content security policy forbids everything that the page does not need.
 */
export function renderReportPage({ proof, report, note }: ReportPageInput): string {
  const style = PAGE_STYLE + sheetStyle(sheetName(proof));
  const digest = createHash('sha256').update(style).digest('base64');
  const title = proof.title ?? proof.proofId ?? 'Evidence report';
  const session = report?.session?.evidence;
  const body = html`<main>
<header><p class="kind">Evidence report</p><h1>${title}</h1>${renderDeclaredSong(proof)}${renderIdentity(proof)}<div class="statements">${renderCredential(proof)}${renderRecord(proof, report)}</div>${
    session?.simulated === true ? html`<p class="banner">${simulatedText(session)}</p>` : undefined
  }</header>
${report === undefined ? undefined : renderSections(report)}
${renderLegacy(proof)}
${section('check', 'Whose record this is, and how to check it', renderCheck(proof))}
${renderTechnical(report)}
${section('glossary', 'Six words', renderGlossary())}
${renderNote(note)}
${renderMachineWords(proof, report ?? {})}
<footer>For information only: this report does not change the verdict and makes no claim about rights or authorship. “Not watched” does not mean “none”.</footer>
</main>`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'sha256-${digest}'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<meta name="referrer" content="no-referrer">
${html`<title>${title}: evidence report</title>`.text}
<style>${style}</style>
</head>
<body>
${PATTERNS.text}
${body.text}
</body>
</html>
`;
}

/** Returns the text for each printed sheet. A malformed id is omitted, because it would enter the style sheet. */
function sheetName({ proofId }: ReportSubject): string {
  return proofId !== undefined && IDENTIFIER_PATTERN.test(proofId) ? `Proof ${proofId}` : 'Evidence report';
}

function renderDeclaredSong({ declared = {} }: ReportSubject): Markup | undefined {
  const { artist, release, isrc } = declared;
  const parts = [
    ...(artist === undefined ? [] : [html`<span>Artist <b>${artist}</b></span>`]),
    ...(release === undefined ? [] : [html`<span>Release <b>${release}</b></span>`]),
    ...(isrc === undefined ? [] : [html`<span>ISRC <b>${isrc}</b></span>`]),
  ];
  return parts.length === 0
    ? undefined
    : html`<p class="identity">${parts}<span>(declared by the issuer, not checked)</span></p>`;
}

const CARRIERS: Readonly<Record<string, string>> = {
  embedded: 'Credential inside the audio file',
  sidecar: 'Credential in a separate file',
};

function renderIdentity({ proofId, issuedAt, verifiedAt, carrier }: ReportSubject): Markup {
  return html`<p class="identity">${proofId === undefined ? undefined : html`<span>Proof <code>${proofId}</code></span>`}${
    issuedAt === undefined ? undefined : html`<span>Issued ${dateText(issuedAt)}</span>`
  }${verifiedAt === undefined ? undefined : html`<span>Verified ${dateText(verifiedAt)}</span>`}${
    carrier === undefined || !Object.hasOwn(CARRIERS, carrier)
      ? undefined
      : html`<span>${CARRIERS[carrier]}</span>`
  }</p>`;
}

const VERDICT_WORDS: Readonly<Record<string, string>> = {
  audioChanged: 'the audio was changed',
  tampered: 'altered',
  unregistered: 'not registered',
  unreadable: 'not readable',
  local_seal: 'sealed by a device only',
};

/** States the result for the credential alone. The production record does not change it. */
function renderCredential({ verdict, proofId }: ReportSubject): Markup {
  if (verdict === undefined && proofId === undefined)
    return statement(
      'neutral',
      'Credential: not known',
      'This report names no proof, and no audio file was compared with it.',
    );
  if (verdict === undefined)
    return statement(
      'neutral',
      'Credential: registered',
      'No audio file was compared with this proof, so there is no verdict.',
    );
  if (verdict === 'valid')
    return statement(
      'good',
      'Credential: valid',
      'The service signed and registered it, and it belongs to exactly this audio.',
    );
  const isKnown = Object.hasOwn(VERDICT_WORDS, verdict);
  return statement(
    'bad',
    `Credential: not valid (${isKnown ? VERDICT_WORDS[verdict] : verdict})`,
    isKnown ? VERDICT_REFERENCE[verdict as keyof typeof VERDICT_REFERENCE].meaning : undefined,
  );
}

/** States whether the production record needs a decision. A needed decision is not a failure of the credential. */
function renderRecord({ verdict, decision }: ReportSubject, report: EvidenceReport | undefined): Markup {
  if (report === undefined)
    return statement(
      'neutral',
      'Production record: not available',
      verdict === undefined || verdict === 'valid'
        ? 'This proof has no report. Its absence says nothing for or against the recording.'
        : 'A report is only available with a valid credential.',
    );
  const facts = needsReview(report);
  if (facts.length > 0 || decision?.status === 'needs_review')
    return statement(
      'review',
      'Production record: needs review',
      facts.length === 0 ? 'A person should read it.' : askingText(facts),
    );
  return report.session === undefined && report.declarations.length === 0
    ? statement('neutral', 'Production record: empty', 'Nothing was observed and nothing was declared.')
    : statement(
        'neutral',
        'Production record: no review needed',
        'It contains no conflict and no open question.',
      );
}

function statement(
  kind: 'good' | 'bad' | 'review' | 'neutral',
  head: string,
  text: string | undefined,
): Markup {
  return html`<div class="decision ${kind}"><b>${head}</b>${text === undefined ? undefined : html`<p>${text}</p>`}</div>`;
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
  return `${parts.join(' and ')} ${facts.length === 1 ? 'needs' : 'need'} a decision by a person.`;
}

function renderSections(report: EvidenceReport): Markup {
  const session = report.session?.evidence;
  return html`${section('conflicts', 'Conflicts and open questions', renderConflicts(report))}
${section('arrangement', 'Arrangement', renderArrangement(report))}
${session === undefined ? section('session', 'Session', html`<p class="quiet">No session was observed: no session agent watched how the recording was made.</p>`) : section('activity', 'Activity over time', renderActivity(session))}
${section('declarations', 'What the creator declared', renderDeclarations(report))}
${section('imports', 'Imported files', renderImports(report))}
${session === undefined ? undefined : renderSession(session)}
${renderOtherFacts(report)}`;
}

function renderOtherFacts(report: EvidenceReport): Markup | undefined {
  const facts = renderFacts(report);
  return facts && section('facts', 'Also in the report', facts);
}

function renderSession(session: SessionEvidence): Markup {
  const recordings = renderRecordings(session);
  return html`${recordings === undefined ? undefined : section('recordings', 'Recordings', recordings)}
${section('channels', 'Kinds of activity that the agent watched', renderChannels(session))}`;
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

function renderTechnical(report: EvidenceReport | undefined): Markup | undefined {
  if (report === undefined) return undefined;
  const { sourceDetail, engine } = report;
  const session = report.session?.evidence;
  const exported = session?.export;
  const rows: readonly (readonly [string, string | Markup | undefined])[] = [
    ['Trace, SHA-256', code(session?.traceSha256)],
    [
      'Trace',
      session &&
        `version ${session.traceVersion}, ${groupDigits(session.traceBytes)} bytes, ${groupDigits(session.events)} signed events, ${session.sealed ? 'sealed' : 'not sealed: the trace ends early'}`,
    ],
    ['Session', session && `started ${dateText(session.startedAt)} (device clock)`],
    [
      'Session agent',
      session &&
        `${session.adapter.name} ${session.adapter.version}${session.adapter.dawVersion === undefined ? '' : `, DAW ${session.adapter.dawVersion}`}`,
    ],
    [
      'Device',
      session && html`<code>${session.device.deviceId}</code>, ${wordText(session.device.standing)}`,
    ],
    ['Exported file, SHA-256', code(exported?.fileSha256)],
    [
      'Export and issued audio',
      exported &&
        `${exported.issuedAudio === 'matches' ? 'identical' : exported.issuedAudio === 'differs' ? 'different' : wordText(exported.issuedAudio)}; repeated render: ${wordText(exported.rerender)}`,
    ],
    [
      'Source detail',
      sourceDetail && `version ${sourceDetail.version}, consent ${sourceDetail.consentVersion}`,
    ],
    [
      'Report',
      `layout ${report.version}${engine === undefined ? '' : `; engine: ${engine.facts === undefined ? '' : `facts ${engine.facts}, `}overlay ${engine.overlay}, revision ${engine.revision}`}`,
    ],
  ];
  const shown = rows.filter(([, value]) => value !== undefined);
  return section(
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
