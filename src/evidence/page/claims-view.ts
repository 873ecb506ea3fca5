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

/** The most entries of each list. The page states how many more there are. */
const LISTED_FACTS = 100;
const SHOWN_SOURCES = 8;
const LISTED_SOURCES = 256;
const LISTED_SUBMISSIONS = 32;

/** Renders conflicts and everything else that needs a person's decision. */
export function renderConflicts(report: EvidenceReport): Markup {
  const asking = needsReview(report);
  if (asking.length === 0) return html`<p class="quiet">No conflicts. The report needs no decision.</p>`;
  return html`${asking.slice(0, LISTED_FACTS).map((fact) => renderAlert(fact))}${moreThan(asking.length - LISTED_FACTS, 'further entries are in the report data')}`;
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

function renderAlert(fact: EvidenceFact): Markup {
  return html`<article class="alert"><p class="class-name">${Object.hasOwn(ALERTS, fact.contentClass) ? ALERTS[fact.contentClass] : wordText(fact.contentClass)}</p><h3>${headOf(fact)}</h3>${renderValues(fact)}<p class="code">${codeOf(fact)}<span>${wordText(fact.status)}${fact.ruleVersion === undefined ? undefined : html`, rule version ${fact.ruleVersion}`}</span></p></article>`;
}

/** Returns the sentence of a fact. An unknown code is shown unchanged (rule 9.8). */
function headOf(fact: EvidenceFact): Markup | string {
  return sentenceOf(fact) ?? html`<code>${fact.code}</code>`;
}

/** Returns the code to show below the sentence of a fact. */
function codeOf(fact: EvidenceFact): Markup | undefined {
  return sentenceOf(fact) === undefined ? undefined : html`<code>${fact.code}</code> `;
}

function renderValues({ values = {} }: EvidenceFact): Markup | undefined {
  const entries = Object.entries(values).slice(0, 8);
  if (entries.length === 0) return undefined;
  return html`<dl class="values">${entries.map(([name, value]) => html`<div><dt>${memberText(name)}</dt><dd>${valueText(name, value)}</dd></div>`)}</dl>`;
}

/** Renders each survey question with its answers and the observations of the trace. */
export function renderDeclarations(report: EvidenceReport): Markup {
  const { declarations, session, importedSources = [] } = report;
  if (declarations.length === 0) return html`<p class="quiet">${noDeclarationText(report)}</p>`;
  const listed = declarations.slice(0, LISTED_SUBMISSIONS);
  const known = Object.keys(DIMENSION_WORDS);
  const asked = [...new Set(listed.flatMap(({ answers }) => Object.keys(answers)))].slice(0, 16);
  const order = (dimension: string): number =>
    known.includes(dimension) ? known.indexOf(dimension) : known.length;
  return html`<div class="pairs"><div class="pair pair-head" aria-hidden="true"><span></span><b>Declared</b><b>Observed</b></div>${asked
    .toSorted((one, other) => order(one) - order(other))
    .map((dimension) => {
      const words = Object.hasOwn(DIMENSION_WORDS, dimension)
        ? DIMENSION_WORDS[dimension as keyof typeof DIMENSION_WORDS]
        : undefined;
      const given = listed.flatMap(({ submissionId, answers }) => {
        const answer: unknown = (answers as Readonly<Record<string, unknown>>)[dimension];
        return answer === undefined ? [] : [{ submissionId, answer: answerText(answer) }];
      });
      return html`<div class="pair"><h3>${words?.title ?? html`<code>${dimension}</code>`}</h3><div class="declared"><span class="side">Declared</span>${given.map(({ submissionId, answer }) => html`<p><strong>${answer}</strong> <small>${submissionId}</small></p>`)}</div><div class="witnessed"><span class="side">Observed</span>${renderWitnessed(dimension, words?.counters ?? [], session, importedSources)}</div></div>`;
    })}</div>${moreThan(declarations.length - listed.length, 'further submissions are in the report data')}
<p class="soft">Answers were recorded after the proof was issued, so its signature does not cover them.</p>`;
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
    return html`<p class="soft">A capture trace cannot show this.</p>`;
  return detected.length === 0
    ? html`<p class="soft">A capture trace cannot show this.</p>`
    : html`<p class="soft">A capture trace cannot show this. Detectors analysed ${detected.slice(0, 8).map(({ sourceId }, at) => html`${at > 0 ? ', ' : ''}${sourceId}`)}: see the imported files.</p>`;
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
        ? 'No capture trace, so imports are unknown.'
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
  return html`${rest.length === 0 ? undefined : html`<p class="lead">${countText(importedSourceCount, 'file', 'files')} imported. Shown first: ${isDetected ? 'files with detector results, then ' : ''}the files that fill most of the arrangement.</p>`}<ul class="sources">${ordered.slice(0, SHOWN_SOURCES).map(renderSource)}</ul>${rest.length === 0 ? undefined : renderSourceTable(rest)}${moreThan(importedSourceCount - Math.min(importedSources.length, LISTED_SOURCES), 'further imports are not listed here')}${
    isDetected
      ? html`
<p class="soft">A likelihood is a detector's estimate from 0 to 1 for the whole file. It is not a share of the timeline.</p>`
      : undefined
  }`;
}

function renderSourceTable(sources: readonly ImportedSource[]): Markup {
  return html`<details><summary>${countText(sources.length, 'further import', 'further imports')} as a table</summary><div class="wide" tabindex="0" role="region" aria-label="Further imports"><table><thead><tr><th scope="col">Import</th><th scope="col">Manner</th><th scope="col">Length</th><th scope="col">Placements</th><th scope="col">Approximate length</th><th scope="col">File or samples, SHA-256</th></tr></thead><tbody>${sources.map(
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
<p>${placements === undefined ? 'placements not watched' : `${countText(placements.count, 'placement', 'placements')}, about ${clockText(placements.approximateSeconds)} of the arrangement`}</p>${detections
    .slice(0, 8)
    .map(
      ({ detector, detectorVersion, likelihood, generator }) =>
        html`<p class="detection">${likelihood === undefined ? undefined : html`Likelihood <b>${number(likelihood.value)}</b> of 1`}${likelihood !== undefined && generator !== undefined ? ', ' : ''}${generator === undefined ? undefined : html`attributed to <b>${generator}</b>`} <small>by ${detector} ${detectorVersion}</small></p>`,
    )}
${originalSha256 === undefined ? undefined : html`<p class="digest"><span>File</span> <code>${originalSha256}</code></p>`}${samplesSha256 === undefined ? undefined : html`<p class="digest"><span>Samples</span> <code>${samplesSha256}</code></p>`}</li>`;
}

const CLASSES = {
  direct_observation: 'Observed',
  rule_inference: 'Inferred by a rule',
  creator_declaration: 'Declared',
  explicit_conflict: 'Conflicts',
  unverifiable_coverage_gap: 'Not verifiable',
} as const;

/** Renders all statements of the report, grouped by class. */
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
    return html`<section class="class"><h3>${Object.hasOwn(CLASSES, name) ? CLASSES[name as keyof typeof CLASSES] : html`<code>${name}</code>`} <span>${members.length === 0 ? 'no entries' : groupDigits(members.length)}</span></h3>${
      members.length === 0
        ? undefined
        : html`<ul>${members.slice(0, LISTED_FACTS).map((fact) => html`<li><p>${headOf(fact)}${fact.status === 'needs_review' ? html` <b class="asks">needs review</b>` : fact.status === 'none_recorded' ? html` <b>none recorded</b>` : undefined}</p>${renderValues(fact)}<p class="code">${codeOf(fact)}${fact.submissionId}</p></li>`)}</ul>${moreThan(members.length - LISTED_FACTS, 'further entries are in the report data')}`
    }</section>`;
  })}`;
}
