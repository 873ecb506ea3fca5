import type { Dimension } from '../../domain/declaration.js';
import { findEvidenceCode } from '../../domain/evidence-codes.js';
import type { EvidenceFact, EvidenceReport } from '../../domain/evidence-report.js';
import { COUNTER_WORDS, COUNTERS, type Counter, type CounterName } from '../../domain/session-evidence.js';
import { CHANNEL_WORDS, type Channel } from '../../domain/trace.js';

/** Names of counters in the order of their channels. */
export const COUNTER_NAMES = Object.keys(COUNTERS) as readonly CounterName[];

/** Questions of the survey, each with what a trace witnesses beside it. */
export const DIMENSION_WORDS: Readonly<
  Record<Dimension, { readonly title: string; readonly counters: readonly CounterName[] }>
> = {
  declaredOrigin: {
    title: 'Where the material comes from',
    counters: ['importsAdded', 'importPlacements', 'sourcesAppeared', 'takesRecorded'],
  },
  aiShareBand: { title: 'Share of generated audio', counters: [] },
  aiRoles: { title: 'Roles with generated material', counters: [] },
  manualWork: {
    title: 'Work by hand',
    counters: [
      'midiNotesEntered',
      'midiNotesRecorded',
      'takesRecorded',
      'clipsTrimmed',
      'clipsSplit',
      'automationEdits',
    ],
  },
  contributionBand: {
    title: 'Own contribution',
    counters: ['takesRecordedInRealTime', 'midiNotesRecorded', 'importPlacements'],
  },
  disputedAssessment: { title: 'Assessment that is disputed', counters: [] },
};

/** Title of a question of the survey; one that is not known stands as it is. */
export function questionText(dimension: string): string {
  return Object.hasOwn(DIMENSION_WORDS, dimension)
    ? DIMENSION_WORDS[dimension as keyof typeof DIMENSION_WORDS].title
    : dimension;
}

/** Sentence of a fact for a person, or undefined for a code that is not known. */
export function sentenceOf({ code, dimension, answer }: EvidenceFact): string | undefined {
  if (code !== 'creator_declaration' || dimension === undefined) return findEvidenceCode(code)?.sentence;
  return `${questionText(dimension)}: the creator answered “${answerText(answer)}”.`;
}

/** Words of an answer as they are read; several are one text, parted by commas, or a list. */
export function answerText(answer: unknown): string {
  const words = typeof answer === 'string' ? answer.split(',') : [answer ?? ''].flat().map(String);
  return words.slice(0, 16).map(wordText).join(', ');
}

/** Sentence where no declaration is listed: one that was altered is no absence. */
export function noDeclarationText({ unverifiable }: EvidenceReport): string {
  return unverifiable.some(({ code }) => code === 'creator_declaration_altered')
    ? 'Declarations were recorded, and are left out: they are not what the service stored.'
    : 'None recorded: no creator has answered the survey about this recording.';
}

/** Name and value of what a fact rests on, as they are read. */
export function valueText(name: string, value: number | string): string {
  if (typeof value === 'number')
    return name === 'seconds' || name.endsWith('Seconds')
      ? clockText(value)
      : groupDigits(Math.round(value * 1000) / 1000);
  if (name.endsWith('Id')) return value;
  if (name === 'channel' && Object.hasOwn(CHANNEL_WORDS, value)) return CHANNEL_WORDS[value as Channel];
  if (name === 'counter' && Object.hasOwn(COUNTER_WORDS, value)) return COUNTER_WORDS[value as CounterName];
  return name === 'dimension' || name === 'otherDimension' ? questionText(value) : wordText(value);
}

/**
 * Counter as it is shown: its number where acts were observed, and the word of its status in every other case. What
 * was not watched is no zero (rule 9.19). A status that is not known stands as it is.
 */
export function counterText({ status, value }: Counter): string {
  if (status === 'observed') return value === undefined ? 'observed' : groupDigits(value);
  return status === 'not_observed' ? 'none observed' : status;
}

/** `12 345 678`: digits in threes, by a space that does not break. */
export function groupDigits(value: number): string {
  return Number.isInteger(value) ? String(value).replace(/\B(?=(\d{3})+$)/g, '\u00a0') : String(value);
}

/** `1 gap`, `12 gaps`. */
export function countText(count: number, one: string, many: string): string {
  return `${groupDigits(count)} ${count === 1 ? one : many}`;
}

/** `0:07`, `12:34` or `3:00:00`. */
export function clockText(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  const rest = String(whole % 60).padStart(2, '0');
  const minutes = Math.floor(whole / 60) % 60;
  const hours = Math.floor(whole / 3600);
  return hours > 0 ? `${hours}:${String(minutes).padStart(2, '0')}:${rest}` : `${minutes}:${rest}`;
}

/** `2026-01-31 12:00 UTC` from unix seconds. */
export function dateText(seconds: number): string {
  const date = new Date(seconds * 1000);
  return Number.isNaN(date.getTime())
    ? String(seconds)
    : `${date.toISOString().slice(0, 16).replace('T', ' ')} UTC`;
}

/** A word of a closed set as it is read: `under_quarter` is `under quarter`. */
export function wordText(word: string): string {
  return word.replaceAll('_', ' ');
}

/**
 * `placementId` is `placement id`, `import_placements` is `import placements`. A length of time is written as a clock
 * shows it, and needs no unit.
 */
export function memberText(name: string): string {
  if (name === 'seconds') return 'length';
  return wordText(
    name
      .replace(/Seconds$/, '')
      .replace(/dimension$/i, (word) => (word === 'dimension' ? 'question' : 'Question'))
      .replace(
        /([a-z0-9])([A-Z])/g,
        (_, before: string, letter: string) => `${before} ${letter.toLowerCase()}`,
      ),
  );
}
