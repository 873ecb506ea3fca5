import type { EvidenceFact, EvidenceReport } from '../domain/evidence-report.js';
import { moreThan } from './arrangement.js';
import { LISTED_FACTS } from './claims-view.js';
import { html, type Markup } from './markup.js';
import type { NoteText, ReportSubject } from './page-input.js';

/** The most note lines that the page shows. */
const NOTE_LINES = 48;

/** Renders the slugs of the decision and of every fact, in a fold: the page above says the same in words. */
export function renderMachineWords(
  { decision }: ReportSubject,
  { facts = [], conflicts = [], unverifiable = [] }: Partial<EvidenceReport>,
): Markup | undefined {
  const lists = [conflicts, facts, unverifiable];
  if (decision === undefined && lists.every((list) => list.length === 0)) return undefined;
  return html`<details><summary>Codes for programs</summary>${
    decision === undefined
      ? undefined
      : html`<p class="code">Decision <code>${decision.status}</code>, recommended action <code>${decision.recommendedAction}</code>${decision.reasons.slice(0, 8).map((reason) => html`, reason <code>${reason}</code>`)}${decision.sourceDetailCoverage === undefined ? undefined : html`, source detail <code>${decision.sourceDetailCoverage}</code>`}</p>`
  }<ul class="codes">${lists.flatMap((list) => list.slice(0, LISTED_FACTS).map(renderFact))}</ul>${moreThan(
    lists.reduce((sum, list) => sum + Math.max(0, list.length - LISTED_FACTS), 0),
    'Further facts in the report data',
  )}</details>`;
}

function renderFact(fact: EvidenceFact): Markup {
  const { code, contentClass, status, ruleVersion, dimension, answer, submissionId, values = {} } = fact;
  const members = Object.entries({ dimension, answer, submissionId, ruleVersion, ...values })
    .filter(([, value]) => value !== undefined)
    .slice(0, 12);
  return html`<li><code>${code}</code> ${contentClass}, ${status}${members.map(([name, value]) => html`, ${name} ${value}`)}</li>`;
}

/** Renders the process note in a fold, because it repeats the page in sentences that can be quoted. */
export function renderNote(note: NoteText | undefined): Markup | undefined {
  if (note === undefined || note.lines.length === 0) return undefined;
  return html`<details><summary>Process note, to quote${note.policyVersion === undefined ? undefined : ` (policy ${note.policyVersion})`}</summary><ul class="note">${note.lines.slice(0, NOTE_LINES).map((line) => html`<li>${line}</li>`)}</ul></details>`;
}
