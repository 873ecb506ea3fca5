import type { EvidenceFact, EvidenceReport } from '../../domain/evidence-report.js';
import { COUNTER_WORDS, type CounterName, type ImportedSource } from '../../domain/session-evidence.js';
import { moreThan } from './arrangement.js';
import { number } from './lanes.js';
import { html, type Markup } from './markup.js';
import {
  answerText,
  clockText,
  counterText,
  countText,
  DIMENSION_WORDS,
  groupDigits,
  memberText,
  noDeclarationText,
  sentenceOf,
  valueText,
  wordText,
} from './words.js';

/** Entries of each list; what is beyond them is counted beneath. */
const LISTED_FACTS = 100;
const SHOWN_SOURCES = 8;
const LISTED_SOURCES = 256;
const LISTED_SUBMISSIONS = 32;

/** Contradictions, and all else that asks for a person: first of all. */
export function renderConflicts(report: EvidenceReport): Markup {
  const asking = needsReview(report);
  if (asking.length === 0)
    return html`<p class="quiet">No conflict is recorded, and nothing in the report asks for a decision.</p>`;
  return html`${asking.slice(0, LISTED_FACTS).map((fact) => renderAlert(fact))}${moreThan(asking.length - LISTED_FACTS, 'further entries are in the data of the report')}`;
}

/** Conflicts, then the other facts that ask for a person's decision. */
export function needsReview({ conflicts, facts, unverifiable }: EvidenceReport): readonly EvidenceFact[] {
  const conflicting = (fact: EvidenceFact): boolean => fact.contentClass === 'explicit_conflict';
  const others = [...facts, ...unverifiable].filter(
    (fact) => fact.status === 'needs_review' || conflicting(fact),
  );
  return [...conflicts, ...others.filter(conflicting), ...others.filter((fact) => !conflicting(fact))];
}

const ALERTS: Readonly<Record<EvidenceFact['contentClass'], string>> = {
  direct_observation: 'Witnessed',
  rule_inference: 'Inferred by a rule',
  creator_declaration: 'Declared',
  explicit_conflict: 'Conflict',
  unverifiable_coverage_gap: 'Not verifiable',
};

function renderAlert(fact: EvidenceFact): Markup {
  return html`<article class="alert"><p class="class-name">${Object.hasOwn(ALERTS, fact.contentClass) ? ALERTS[fact.contentClass] : wordText(fact.contentClass)}</p><h3>${headOf(fact)}</h3>${renderValues(fact)}<p class="code">${codeOf(fact)}<span>${wordText(fact.status)}${fact.ruleVersion === undefined ? undefined : html`, rule version ${fact.ruleVersion}`}</span></p></article>`;
}

/** Sentence of a fact; a code that is not known stands as it is (rule 9.8). */
function headOf(fact: EvidenceFact): Markup | string {
  return sentenceOf(fact) ?? html`<code>${fact.code}</code>`;
}

/** The code beneath a sentence that stands for it. */
function codeOf(fact: EvidenceFact): Markup | undefined {
  return sentenceOf(fact) === undefined ? undefined : html`<code>${fact.code}</code> `;
}

function renderValues({ values = {} }: EvidenceFact): Markup | undefined {
  const entries = Object.entries(values).slice(0, 8);
  if (entries.length === 0) return undefined;
  return html`<dl class="values">${entries.map(([name, value]) => html`<div><dt>${memberText(name)}</dt><dd>${valueText(name, value)}</dd></div>`)}</dl>`;
}

/** Each question of the survey with its answers, and beside them what a trace witnessed. */
export function renderDeclarations(report: EvidenceReport): Markup {
  const { declarations, session, importedSources = [] } = report;
  if (declarations.length === 0) return html`<p class="quiet">${noDeclarationText(report)}</p>`;
  const listed = declarations.slice(0, LISTED_SUBMISSIONS);
  const known = Object.keys(DIMENSION_WORDS);
  const asked = [...new Set(listed.flatMap(({ answers }) => Object.keys(answers)))].slice(0, 16);
  const order = (dimension: string): number =>
    known.includes(dimension) ? known.indexOf(dimension) : known.length;
  return html`<div class="pairs"><div class="pair pair-head" aria-hidden="true"><span></span><b>Declared</b><b>Witnessed</b></div>${asked
    .toSorted((one, other) => order(one) - order(other))
    .map((dimension) => {
      const words = Object.hasOwn(DIMENSION_WORDS, dimension)
        ? DIMENSION_WORDS[dimension as keyof typeof DIMENSION_WORDS]
        : undefined;
      const given = listed.flatMap(({ submissionId, answers }) => {
        const answer: unknown = (answers as Readonly<Record<string, unknown>>)[dimension];
        return answer === undefined ? [] : [{ submissionId, answer: answerText(answer) }];
      });
      return html`<div class="pair"><h3>${words?.title ?? html`<code>${dimension}</code>`}</h3><div class="declared"><span class="side">Declared</span>${given.map(({ submissionId, answer }) => html`<p><strong>${answer}</strong> <small>${submissionId}</small></p>`)}</div><div class="witnessed"><span class="side">Witnessed</span>${renderWitnessed(dimension, words?.counters ?? [], session, importedSources)}</div></div>`;
    })}</div>${moreThan(declarations.length - listed.length, 'further submissions are in the data of the report')}
<p class="soft">Answers were recorded after the proof was issued and are no part of what its signature covers.</p>`;
}

function renderWitnessed(
  dimension: string,
  names: readonly CounterName[],
  session: EvidenceReport['session'],
  sources: readonly ImportedSource[],
): Markup {
  if (names.length > 0)
    return session === undefined
      ? html`<p class="soft">No capture trace.</p>`
      : html`<dl class="counters">${names.map((name) => html`<div><dt>${COUNTER_WORDS[name]}</dt><dd class="${session.evidence.counters[name].status === 'observed' ? 'is-number' : 'is-word'}">${counterText(session.evidence.counters[name])}</dd></div>`)}</dl>`;
  const detected = sources.filter(({ detections = [] }) => detections.length > 0);
  if (!['aiShareBand', 'aiRoles'].includes(dimension))
    return html`<p class="soft">Nothing that a trace can witness.</p>`;
  return detected.length === 0
    ? html`<p class="soft">Nothing that a trace can witness.</p>`
    : html`<p class="soft">Nothing that a trace can witness. Detectors were asked about ${detected.slice(0, 8).map(({ sourceId }, at) => html`${at > 0 ? ', ' : ''}${sourceId}`)}: see the imported files.</p>`;
}

/** Imported sources with their digests, places and detection results. */
export function renderImports({
  importedSources = [],
  importedSourceCount = importedSources.length,
  session,
}: EvidenceReport): Markup {
  if (importedSources.length === 0) {
    const status = session?.evidence.counters.importsAdded.status;
    return html`<p class="quiet">${
      status === undefined
        ? 'No capture trace, so that nothing is known of imports.'
        : status === 'not_observed'
          ? 'The import of files was watched throughout, and none was seen.'
          : status === 'unsupported'
            ? 'Imports: unsupported. The agent does not look for them, so that none is listed and none is ruled out.'
            : 'Imports: unknown. None is listed, and none is ruled out.'
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
  return html`${rest.length === 0 ? undefined : html`<p class="lead">${countText(importedSourceCount, 'file', 'files')} imported. Here are ${isDetected ? 'those with results of a detector, then ' : ''}those that fill most of the arrangement.</p>`}<ul class="sources">${ordered.slice(0, SHOWN_SOURCES).map(renderSource)}</ul>${rest.length === 0 ? undefined : renderSourceTable(rest)}${moreThan(importedSourceCount - Math.min(importedSources.length, LISTED_SOURCES), 'further imports are not listed here')}${
    isDetected
      ? html`
<p class="soft">A likelihood is a detector's estimate from 0 to 1 about the file. It is no share of the timeline.</p>`
      : undefined
  }`;
}

function renderSourceTable(sources: readonly ImportedSource[]): Markup {
  return html`<details><summary>${countText(sources.length, 'further import', 'further imports')} as a table</summary><div class="wide" tabindex="0" role="region" aria-label="Further imports"><table><thead><tr><th scope="col">Import</th><th scope="col">Manner</th><th scope="col">Length</th><th scope="col">Placements</th><th scope="col">About</th><th scope="col">File or samples, SHA-256</th></tr></thead><tbody>${sources.map(
    ({ sourceId, manner, durationSeconds, placements, originalSha256, samplesSha256 }) =>
      html`<tr><th scope="row">${sourceId}</th><td>${wordText(manner)}</td><td>${durationSeconds === undefined ? 'unknown' : clockText(durationSeconds)}</td><td>${placements === undefined ? 'not watched' : groupDigits(placements.count)}</td><td>${placements === undefined ? 'not watched' : clockText(placements.approximateSeconds)}</td><td><code>${originalSha256 ?? samplesSha256 ?? 'unknown'}</code></td></tr>`,
  )}</tbody></table></div></details><p class="more on-paper">${countText(sources.length, 'further import is', 'further imports are')} in the data of the report.</p>`;
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
<p>${placements === undefined ? 'its placements were not watched' : `${countText(placements.count, 'placement', 'placements')}, about ${clockText(placements.approximateSeconds)} of the arrangement`}</p>${detections
    .slice(0, 8)
    .map(
      ({ detector, detectorVersion, likelihood, generator }) =>
        html`<p class="detection">${likelihood === undefined ? undefined : html`Likelihood <b>${number(likelihood.value)}</b> of 1`}${likelihood !== undefined && generator !== undefined ? ', ' : ''}${generator === undefined ? undefined : html`attributed to <b>${generator}</b>`} <small>by ${detector} ${detectorVersion}</small></p>`,
    )}
${originalSha256 === undefined ? undefined : html`<p class="digest"><span>File</span> <code>${originalSha256}</code></p>`}${samplesSha256 === undefined ? undefined : html`<p class="digest"><span>Samples</span> <code>${samplesSha256}</code></p>`}</li>`;
}

const CLASSES = {
  direct_observation: 'Witnessed',
  rule_inference: 'Inferred by a rule',
  creator_declaration: 'Declared',
  explicit_conflict: 'Conflicts',
  unverifiable_coverage_gap: 'Not verifiable',
} as const;

/** Everything the report states, each class by itself. */
export function renderFacts({ facts, conflicts, unverifiable }: EvidenceReport): Markup {
  const all = [...facts, ...conflicts, ...unverifiable];
  const classes = [
    ...new Set([
      ...Object.keys(CLASSES),
      ...all.slice(0, LISTED_FACTS).map(({ contentClass }) => contentClass),
    ]),
  ];
  return html`${classes.map((name) => {
    const members = all.filter(({ contentClass }) => contentClass === name);
    return html`<section class="class"><h3>${Object.hasOwn(CLASSES, name) ? CLASSES[name as keyof typeof CLASSES] : html`<code>${name}</code>`} <span>${members.length === 0 ? 'nothing' : groupDigits(members.length)}</span></h3>${
      members.length === 0
        ? undefined
        : html`<ul>${members.slice(0, LISTED_FACTS).map((fact) => html`<li><p>${headOf(fact)}${fact.status === 'needs_review' ? html` <b class="asks">needs review</b>` : fact.status === 'none_recorded' ? html` <b>none recorded</b>` : undefined}</p>${renderValues(fact)}<p class="code">${codeOf(fact)}${fact.submissionId}</p></li>`)}</ul>${moreThan(members.length - LISTED_FACTS, 'further entries are in the data of the report')}`
    }</section>`;
  })}`;
}
