import type { EvidenceFact, EvidenceReport } from '../domain/evidence-report.js';
import type { ImportedSource } from '../domain/session-evidence.js';
import { CHANNEL_WORDS, type Channel } from '../domain/trace.js';
import { moreThan } from './arrangement.js';
import { number } from './lanes.js';
import { html, type Markup } from './markup.js';
import {
  answerText,
  clockText,
  countText,
  DIMENSION_WORDS,
  groupDigits,
  memberText,
  noDeclarationText,
  sentenceOf,
  valueText,
  wordText,
} from './words.js';

/** The most entries of each list. The page states how many more there are. */
export const LISTED_FACTS = 100;
const SHOWN_SOURCES = 8;
const LISTED_SOURCES = 256;
const LISTED_SUBMISSIONS = 32;

/** Renders conflicts and everything else that needs a person's decision. */
export function renderConflicts(report: EvidenceReport): Markup {
  const asking = needsReview(report);
  if (asking.length === 0) return html`<p class="quiet">No conflicts. The report needs no decision.</p>`;
  return html`${groupsOf(asking.slice(0, LISTED_FACTS)).map(renderAlert)}${moreThan(asking.length - LISTED_FACTS, 'Further entries in the report data')}`;
}

/** Returns the conflicts, then the other facts that need a person's decision. */
export function needsReview({ conflicts, facts, unverifiable }: EvidenceReport): readonly EvidenceFact[] {
  const conflicting = (fact: EvidenceFact): boolean => fact.contentClass === 'explicit_conflict';
  const others = [...facts, ...unverifiable].filter(
    (fact) => fact.status === 'needs_review' || conflicting(fact),
  );
  return [...conflicts, ...others.filter(conflicting), ...others.filter((fact) => !conflicting(fact))];
}

const ALERTS: Readonly<Record<EvidenceFact['contentClass'], string>> = {
  direct_observation: 'Observed',
  rule_inference: 'Inferred by a rule',
  creator_declaration: 'Declared',
  explicit_conflict: 'Conflict',
  unverifiable_coverage_gap: 'Not verifiable',
};

/** Renders the facts of one code, so that its sentence appears once. */
function renderAlert(facts: readonly EvidenceFact[]): Markup {
  const [fact] = facts;
  const { contentClass } = fact!;
  return html`<article class="alert"><p class="class-name">${Object.hasOwn(ALERTS, contentClass) ? ALERTS[contentClass] : wordText(contentClass)}</p><h3>${headOf(fact!)}</h3>${facts.map((each) => renderValues(each))}</article>`;
}

/** Returns the facts in groups with the same sentence, in the order of each group's first fact. */
function groupsOf(facts: readonly EvidenceFact[]): readonly (readonly EvidenceFact[])[] {
  const groups = new Map<string, EvidenceFact[]>();
  for (const fact of facts) {
    const { code, contentClass, dimension = '', answer = '' } = fact;
    const key = `${code} ${contentClass} ${dimension} ${answer}`;
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [fact]);
    else group.push(fact);
  }
  return [...groups.values()];
}

/** Returns the sentence of a fact. An unknown code is shown unchanged (rule 9.8). */
function headOf(fact: EvidenceFact): Markup | string {
  return sentenceOf(fact) ?? html`<code>${fact.code}</code>`;
}

/** The names of values that another part of the page shows as a counter or a length. */
const SHOWN_ELSEWHERE: readonly string[] = [
  'clipEdits',
  'durationSeconds',
  'events',
  'exportSeconds',
  'importPlacements',
  'imports',
  'placements',
];

/** The names of values of one code that another part of the page shows. */
const SHOWN_ELSEWHERE_OF: Readonly<Record<string, readonly string[]>> = {
  takes_recorded_in_real_time: ['takes'],
};

/** Renders the values that no other part of the page shows. Ids are for machines. */
function renderValues({ code, values = {} }: EvidenceFact): Markup | undefined {
  const { dimension, answer, otherDimension, otherAnswer } = values;
  if (dimension !== undefined && answer !== undefined && otherAnswer !== undefined)
    return html`<p class="opposites"><b>${valueText('answer', answer)}</b> (${valueText('dimension', dimension)}) and <b>${valueText('answer', otherAnswer)}</b> (${valueText('dimension', otherDimension ?? dimension)})</p>`;
  if (dimension !== undefined && answer !== undefined)
    return html`<p class="opposites">${valueText('dimension', dimension)}: <b>${valueText('answer', answer)}</b></p>`;
  const own = Object.hasOwn(SHOWN_ELSEWHERE_OF, code) ? SHOWN_ELSEWHERE_OF[code]! : [];
  const isShown = (name: string): boolean => SHOWN_ELSEWHERE.includes(name) || own.includes(name);
  const entries = Object.entries(values)
    .filter(([name]) => !isShown(name) && !name.endsWith('SubmissionId') && name !== 'submissionId')
    .slice(0, 8);
  if (entries.length === 0) return undefined;
  return html`<dl class="values">${entries.map(([name, value]) => html`<div><dt>${memberText(name)}</dt><dd>${valueText(name, value)}</dd></div>`)}</dl>`;
}

/** Renders each survey question with its answers, and names the observations to compare them with. */
export function renderDeclarations(report: EvidenceReport): Markup {
  const { declarations, session, importedSources = [] } = report;
  if (declarations.length === 0) return html`<p class="quiet">${noDeclarationText(report)}</p>`;
  const listed = declarations.slice(0, LISTED_SUBMISSIONS);
  const known = Object.keys(DIMENSION_WORDS);
  const asked = [...new Set(listed.flatMap(({ answers }) => Object.keys(answers)))].slice(0, 16);
  const order = (dimension: string): number =>
    known.includes(dimension) ? known.indexOf(dimension) : known.length;
  const isDetected = importedSources.some(({ detections = [] }) => detections.length > 0);
  return html`<div class="pairs"><div class="pair pair-head" aria-hidden="true"><span></span><b>Declared</b><b>Compare with</b></div>${asked
    .toSorted((one, other) => order(one) - order(other))
    .map((dimension) => {
      const words = Object.hasOwn(DIMENSION_WORDS, dimension)
        ? DIMENSION_WORDS[dimension as keyof typeof DIMENSION_WORDS]
        : undefined;
      const given = listed.flatMap(({ answers }, at) => {
        const answer: unknown = (answers as Readonly<Record<string, unknown>>)[dimension];
        return answer === undefined ? [] : [{ answer: answerText(answer), submission: at + 1 }];
      });
      return html`<div class="pair"><h3>${words?.title ?? html`<code>${dimension}</code>`}</h3><div class="declared"><span class="side">Declared</span>${given.map(({ answer, submission }) => html`<p><strong>${answer}</strong>${declarations.length === 1 ? undefined : html` <small>submission ${submission}</small>`}</p>`)}</div><div class="witnessed"><span class="side">Compare with</span>${renderComparison(words?.channels ?? [], isDetected && (dimension === 'aiShareBand' || dimension === 'aiRoles'), session)}</div></div>`;
    })}</div>${moreThan(declarations.length - listed.length, 'Further submissions in the report data')}
<p class="soft">Answers were recorded after the proof was issued, so its signature does not cover them.</p>`;
}

function renderComparison(
  channels: readonly Channel[],
  isDetected: boolean,
  session: EvidenceReport['session'],
): Markup {
  if (channels.length > 0)
    return session === undefined
      ? html`<p class="soft">No session was observed.</p>`
      : html`<p class="soft">${channels.map((channel, at) => html`${at > 0 ? ', ' : ''}<a href="#channel-${channel}">${CHANNEL_WORDS[channel]}</a>`)}</p>`;
  return html`<p class="soft">A session cannot show this.${isDetected ? html` Detector results: see the <a href="#imports">imported files</a>.` : undefined}</p>`;
}

/** Renders the imported sources with their digests, placements and detection results. */
export function renderImports({
  importedSources = [],
  importedSourceCount = importedSources.length,
  session,
}: EvidenceReport): Markup {
  if (importedSources.length === 0) {
    const status = session?.evidence.counters.importsAdded.status;
    return html`<p class="quiet">${
      status === undefined
        ? 'No session was observed, so imports are unknown.'
        : status === 'not_observed'
          ? 'Imports were watched for the whole session, and none was observed.'
          : status === 'unsupported'
            ? 'Imports: unsupported. The agent does not watch imports, so files may have been imported.'
            : 'Imports: unknown. No import is listed, but files may have been imported.'
    }</p>`;
  }
  const secondsOf = ({ placements }: ImportedSource): number => placements?.approximateSeconds ?? 0;
  const ordered = importedSources.toSorted(
    (one, other) =>
      Number((other.detections ?? []).length > 0) - Number((one.detections ?? []).length > 0) ||
      secondsOf(other) - secondsOf(one),
  );
  const isDetected = ordered.some(({ detections = [] }) => detections.length > 0);
  const rest = ordered.slice(SHOWN_SOURCES, LISTED_SOURCES);
  return html`${rest.length === 0 ? undefined : html`<p class="lead">Shown first: ${isDetected ? 'files with detector results, then ' : ''}the files that fill most of the arrangement.</p>`}<ul class="sources">${ordered.slice(0, SHOWN_SOURCES).map(renderSource)}</ul>${rest.length === 0 ? undefined : renderSourceTable(rest)}${moreThan(importedSourceCount - Math.min(importedSources.length, LISTED_SOURCES), 'Further imports that are not listed here')}
<p class="soft">The clips are those of the last observation.</p>${
    isDetected
      ? html`
<p class="soft">A likelihood is a detector's estimate from 0 to 1 for the whole file. It is not a share of the timeline.</p>`
      : undefined
  }`;
}

function renderSourceTable(sources: readonly ImportedSource[]): Markup {
  return html`<details><summary>${countText(sources.length, 'further import', 'further imports')} as a table</summary><div class="wide" tabindex="0" role="region" aria-label="Further imports"><table><thead><tr><th scope="col">Import</th><th scope="col">Manner</th><th scope="col">Length</th><th scope="col">Clips</th><th scope="col">Approximate length</th><th scope="col">File or samples, SHA-256</th></tr></thead><tbody>${sources.map(
    ({ sourceId, manner, durationSeconds, placements, originalSha256, samplesSha256 }) =>
      html`<tr><th scope="row">${sourceId}</th><td>${wordText(manner)}</td><td>${durationSeconds === undefined ? 'unknown' : clockText(durationSeconds)}</td><td>${placements === undefined ? 'not watched' : groupDigits(placements.count)}</td><td>${placements === undefined ? 'not watched' : clockText(placements.approximateSeconds)}</td><td><code>${originalSha256 ?? samplesSha256 ?? 'unknown'}</code></td></tr>`,
  )}</tbody></table></div></details><p class="more on-paper">${countText(sources.length, 'further import is', 'further imports are')} in the report data.</p>`;
}

function renderSource({
  sourceId,
  manner,
  durationSeconds,
  placements,
  detections = [],
  originalSha256,
  samplesSha256,
}: ImportedSource): Markup {
  return html`<li><h3>${sourceId} <span>${wordText(manner)}${durationSeconds === undefined ? undefined : html`, ${clockText(durationSeconds)}`}</span></h3>
<p>${placements === undefined ? 'Its clips were not watched.' : placements.count === 0 ? 'Not in the arrangement' : `${countText(placements.count, 'clip', 'clips')}, about ${clockText(placements.approximateSeconds)} of the arrangement`}</p>${detections
    .slice(0, 8)
    .map(
      ({ detector, detectorVersion, likelihood, generator }) =>
        html`<p class="detection">${likelihood === undefined ? undefined : html`Likelihood <b>${number(likelihood.value)}</b> of 1`}${likelihood !== undefined && generator !== undefined ? ', ' : ''}${generator === undefined ? undefined : html`attributed to <b>${generator}</b>`} <small>by ${detector} ${detectorVersion}</small></p>`,
    )}
${originalSha256 === undefined ? undefined : html`<p class="digest"><span>File</span> <code>${originalSha256}</code></p>`}${samplesSha256 === undefined ? undefined : html`<p class="digest"><span>Samples</span> <code>${samplesSha256}</code></p>`}</li>`;
}

/** The codes that other sections show in their own way. */
const SECTION_CODES: readonly string[] = [
  'AiLikelySource',
  'imported_audio_ai_likelihood',
  'channel_gaps',
  'channel_partial',
  'channel_unknown',
  'channel_unsupported',
  'trace_simulated',
];
/** The same, for a report without a session. */
const NO_SESSION_CODES: readonly string[] = ['rule_inference_unavailable', 'session_evidence_unavailable'];

/** Renders the facts that no other section shows, each as a sentence. */
export function renderFacts(report: EvidenceReport): Markup | undefined {
  const asking = needsReview(report);
  const shown = report.session === undefined ? NO_SESSION_CODES : SECTION_CODES;
  const others = [...report.facts, ...report.unverifiable].filter(
    (fact) => !asking.includes(fact) && fact.code !== 'creator_declaration' && !shown.includes(fact.code),
  );
  if (others.length === 0) return undefined;
  const listed = groupsOf(others.slice(0, LISTED_FACTS));
  return html`<ul class="facts">${listed.map((facts) => html`<li><p>${headOf(facts[0]!)}</p>${facts.map((fact) => renderValues(fact))}</li>`)}</ul>${moreThan(others.length - LISTED_FACTS, 'Further entries in the report data')}`;
}
