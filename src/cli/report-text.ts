import type { EvidenceFact, EvidenceReport } from '../witness/domain/evidence-report.js';
import {
  COUNTER_WORDS,
  COUNTERS,
  type ImportedSource,
  type SessionEvidence,
} from '../witness/domain/session-evidence.js';
import { CHANNEL_WORDS } from '../witness/domain/trace.js';
import { needsReview } from '../witness/page/claims-view.js';
import type { ReportPageInput, ReportSubject } from '../witness/page/page-input.js';
import {
  answerText,
  COUNTER_NAMES,
  clockText,
  counterText,
  countText,
  memberText,
  noDeclarationText,
  questionText,
  sentenceOf,
  valueText,
  wordText,
} from '../witness/page/words.js';
import { simulatedText } from '../witness/report/process-note.js';
import { formatTime, printable, type Terminal, table } from './terminal.js';
import { verdictText } from './verdict-texts.js';

/** The most entries printed per list. The page and the JSON have all entries. */
const LISTED = 20;

/**
 * Prints a report for a person: first the points that need a decision, then declarations and recorded
 * activity.
 */
export function printReport({ proof, report, note }: ReportPageInput, terminal: Terminal): void {
  printSubject(proof, terminal);
  if (report === undefined) {
    terminal.print('\nNo evidence about the source is available: this proof has no report.');
    printLegacy(proof, terminal);
    return;
  }
  const session = report.session?.evidence;
  if (session?.simulated === true)
    terminal.print(`\n${terminal.style(simulatedText(session), 'bold', 'yellow')}`);
  const heading = (title: string): void => terminal.print(`\n${terminal.style(title, 'bold')}`);
  heading('Conflicts and open questions');
  const asking = needsReview(report);
  if (asking.length === 0) terminal.print('  none');
  else printFacts(asking, terminal, '!');
  if (note !== undefined && note.lines.length > 0) {
    heading('In short');
    for (const line of note.lines.slice(0, LISTED)) terminal.print(`  ${printable(line)}`);
  }
  heading('Declared');
  printDeclarations(report, terminal);
  heading('Imported files');
  printImports(report, terminal);
  if (session === undefined) {
    heading('Session');
    terminal.print('  no capture trace: no session agent observed how the recording was made');
  } else {
    heading('Observed by the session agent');
    printSession(session, terminal);
  }
  const others = [...report.facts, ...report.unverifiable].filter(
    (fact) => !asking.includes(fact) && fact.contentClass !== 'creator_declaration',
  );
  if (others.length > 0) {
    heading('Also in the report');
    printFacts(others, terminal, '-');
  }
  printLegacy(proof, terminal);
}

function printSubject(
  { proofId, title, issuedAt, verdict, decision, declared = {}, issuer, service, fileSha256 }: ReportSubject,
  terminal: Terminal,
): void {
  terminal.print(terminal.style(printable(title ?? proofId ?? 'Evidence report'), 'bold'));
  const review = decision?.status === 'needs_review';
  const subject = proofId === undefined ? 'report that names no proof' : 'registered proof';
  if (verdict === undefined) terminal.print(`  ${subject}; no audio file was compared with it`);
  else {
    const { title: name, meaning } = verdictText(verdict);
    const colour = verdict !== 'valid' ? 'red' : review ? 'yellow' : 'green';
    terminal.print(`  ${terminal.style(printable(name), 'bold', colour)}  ${printable(meaning)}`);
  }
  const lines: readonly (readonly [string, string | undefined])[] = [
    ['decision', decision && `${decision.status}, ${decision.recommendedAction}`],
    ['reasons', decision?.reasons.join(', ')],
    ['proof', proofId],
    ['issued', issuedAt === undefined ? undefined : formatTime(issuedAt)],
    ['issuer', issuer],
    ['service', service],
    ['file', fileSha256 === undefined ? undefined : `sha256 ${fileSha256}`],
    ...Object.entries(declared).map(
      ([name, value]) => [name, `${value} (declared by the issuer, not checked)`] as const,
    ),
  ];
  for (const [name, value] of lines)
    if (value !== undefined && value !== '')
      terminal.print(`  ${terminal.style(name.padEnd(9), 'dim')} ${printable(value)}`);
}

function printFacts(facts: readonly EvidenceFact[], terminal: Terminal, mark: string): void {
  for (const fact of facts.slice(0, LISTED)) {
    const { code, status, values = {} } = fact;
    const sentence = sentenceOf(fact);
    const detail = Object.entries(values)
      .slice(0, 8)
      .map(([name, value]) => `${memberText(name)} ${valueText(name, value)}`)
      .join(', ');
    terminal.print(`  ${mark} ${printable(sentence ?? code)}`);
    const small = [...(sentence === undefined ? [] : [code]), wordText(status), detail].filter(
      (part) => part !== '',
    );
    terminal.print(`    ${terminal.style(printable(small.join('; ')), 'dim')}`);
  }
  printRest(facts.length, terminal);
}

function printDeclarations(report: EvidenceReport, terminal: Terminal): void {
  const { declarations } = report;
  if (declarations.length === 0) terminal.print(`  ${noDeclarationText(report)}`);
  for (const { submissionId, answers } of declarations.slice(0, LISTED))
    for (const [dimension, answer] of Object.entries(answers))
      terminal.print(
        `  ${printable(`${questionText(dimension)}: ${answerText(answer)}`)}  ${terminal.style(printable(submissionId), 'dim')}`,
      );
  printRest(declarations.length, terminal);
}

function printImports(
  { importedSources = [], importedSourceCount = importedSources.length, session }: EvidenceReport,
  terminal: Terminal,
): void {
  if (importedSources.length === 0) {
    terminal.print(
      `  ${session === undefined ? 'unknown: no capture trace' : printable(counterText(session.evidence.counters.importsAdded))}`,
    );
    return;
  }
  for (const source of importedSources.slice(0, LISTED)) terminal.print(`  ${printable(importText(source))}`);
  printRest(importedSourceCount, terminal);
}

function importText({
  sourceId,
  manner,
  placements,
  detections = [],
  originalSha256,
  samplesSha256,
}: ImportedSource): string {
  const placed =
    placements === undefined
      ? 'placements not watched'
      : `${countText(placements.count, 'placement', 'placements')}, about ${clockText(placements.approximateSeconds)}`;
  const results = detections
    .slice(0, 4)
    .map(({ detector, detectorVersion, likelihood, generator }) =>
      [
        ...(likelihood === undefined ? [] : [`likelihood ${likelihood.value} of 1`]),
        ...(generator === undefined ? [] : [`attributed to ${generator}`]),
        `by ${detector} ${detectorVersion}`,
      ].join(' '),
    );
  const digest = originalSha256 ?? samplesSha256;
  return [
    `${sourceId} ${wordText(manner)}, ${placed}`,
    ...results,
    ...(digest === undefined ? [] : [`sha256 ${digest}`]),
  ].join('; ');
}

function printSession(session: SessionEvidence, terminal: Terminal): void {
  const { durationSeconds, sealed, adapter, device, traceSha256, counters, coverage } = session;
  terminal.print(
    `  ${printable(`session of ${clockText(durationSeconds)} by ${adapter.name} ${adapter.version}, ${sealed ? 'sealed' : 'not sealed: the trace ends early'}; device ${wordText(device.standing)}`)}`,
  );
  const rows = COUNTER_NAMES.map((name) => {
    const { support, gapCount = 0 } = coverage[COUNTERS[name]];
    const watched = support === 'supported' || support === 'partial';
    return [
      CHANNEL_WORDS[COUNTERS[name]],
      COUNTER_WORDS[name],
      counterText(counters[name]),
      `${wordText(support)}${watched && gapCount > 0 ? `, ${countText(gapCount, 'gap', 'gaps')}` : ''}`,
    ].map(printable);
  });
  for (const line of table(['channel', 'what', 'observed', 'support'], rows, (cell, row, column) =>
    row >= 0 && column === 2 && !/^\d/.test(cell) ? terminal.style(cell, 'dim') : cell,
  ))
    terminal.print(`  ${line}`);
  terminal.print(`  trace sha256 ${printable(traceSha256)}`);
}

function printLegacy({ legacy = {} }: ReportSubject, terminal: Terminal): void {
  for (const [name, value] of Object.entries(legacy))
    terminal.print(
      `  ${terminal.style(printable(`${name} ${value}: from an earlier registry; not a measure of authorship`), 'dim')}`,
    );
}

function printRest(count: number, terminal: Terminal): void {
  if (count > LISTED) terminal.print(`  ... and ${count - LISTED} more (--format json has all)`);
}
