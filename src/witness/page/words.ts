import type { Dimension } from '../domain/declaration.js';
import { findEvidenceCode } from '../domain/evidence-codes.js';
import type { EvidenceFact, EvidenceReport } from '../domain/evidence-report.js';
import { COUNTER_WORDS, COUNTERS, type Counter, type CounterName } from '../domain/session-evidence.js';
import { CHANNEL_WORDS, type Channel } from '../domain/trace.js';

/** The names of the counters, in the order of their channels. */
export const COUNTER_NAMES = Object.keys(COUNTERS) as readonly CounterName[];

/** The survey questions, each with the channels to compare its answers with. */
export const DIMENSION_WORDS: Readonly<
  Record<Dimension, { readonly title: string; readonly channels: readonly Channel[] }>
> = {
  declaredOrigin: {
    title: 'Origin of the material',
    channels: ['imports', 'sourceMap', 'recording'],
  },
  aiShareBand: { title: 'Share of generated audio', channels: [] },
  aiRoles: { title: 'Parts with generated material', channels: [] },
  manualWork: {
    title: 'Manual work',
    channels: ['midi', 'recording', 'clips', 'automation'],
  },
  contributionBand: {
    title: 'Own contribution',
    channels: ['recording', 'midi', 'imports'],
  },
  disputedAssessment: { title: 'Disputed assessment', channels: [] },
};

/** Returns the title of a survey question. An unknown question is returned unchanged. */
export function questionText(dimension: string): string {
  return Object.hasOwn(DIMENSION_WORDS, dimension)
    ? DIMENSION_WORDS[dimension as keyof typeof DIMENSION_WORDS].title
    : dimension;
}

/** Returns the sentence of a fact for a person, or undefined for an unknown code. */
export function sentenceOf({ code, dimension, answer }: EvidenceFact): string | undefined {
  if (code !== 'creator_declaration' || dimension === undefined) return findEvidenceCode(code)?.sentence;
  return `${questionText(dimension)}: the creator answered “${answerText(answer)}”.`;
}

/** Returns the words of an answer. Several answers are a comma-separated text or a list. */
export function answerText(answer: unknown): string {
  const words = typeof answer === 'string' ? answer.split(',') : [answer ?? ''].flat().map(String);
  return words.slice(0, 16).map(wordText).join(', ');
}

/**
 * Returns the sentence for an empty list of declarations. An altered declaration does not count as absent.
 */
export function noDeclarationText({ unverifiable }: EvidenceReport): string {
  return unverifiable.some(({ code }) => code === 'creator_declaration_altered')
    ? 'Declarations were recorded, but they are omitted because they were altered after the service stored them.'
    : 'None recorded: no creator has answered the survey about this recording.';
}

/** Returns a value of a fact as text for a person. */
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
 * Returns the text of a counter: its number if acts were observed, otherwise its status. "Not watched" must
 * never appear as 0 (rule 9.19). An unknown status is returned unchanged.
 */
export function counterText({ status, value }: Counter): string {
  if (status === 'observed') return value === undefined ? 'observed' : groupDigits(value);
  return status === 'not_observed' ? 'none observed' : status;
}

/** Groups digits in threes with no-break spaces: `12 345 678`. */
export function groupDigits(value: number): string {
  return Number.isInteger(value) ? String(value).replace(/\B(?=(\d{3})+$)/g, '\u00a0') : String(value);
}

/** Returns a count with its noun: `1 gap`, `12 gaps`. */
export function countText(count: number, one: string, many: string): string {
  return `${groupDigits(count)} ${count === 1 ? one : many}`;
}

/** Returns a count with its noun. A count is undefined if the agent did not watch it. */
export function watchedCountText(count: number | undefined, noun: string): string {
  return count === undefined ? `unknown ${noun}s` : countText(count, noun, `${noun}s`);
}

/** Returns the name of a track or clip for a person. A report has only ids: `trk3` is `Track 3`. */
export function nameText(id: string): string {
  return id.replace(/^trk(?=\d+$)/, 'Track ').replace(/^plc(?=\d+$)/, 'Clip ');
}

/** Formats seconds as `0:07`, `12:34` or `3:00:00`. */
export function clockText(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  const rest = String(whole % 60).padStart(2, '0');
  const minutes = Math.floor(whole / 60) % 60;
  const hours = Math.floor(whole / 3600);
  return hours > 0 ? `${hours}:${String(minutes).padStart(2, '0')}:${rest}` : `${minutes}:${rest}`;
}

/** Formats unix seconds as `2026-01-31 12:00 UTC`. */
export function dateText(seconds: number): string {
  const date = new Date(seconds * 1000);
  return Number.isNaN(date.getTime())
    ? String(seconds)
    : `${date.toISOString().slice(0, 16).replace('T', ' ')} UTC`;
}

/** Returns a word of a closed set as text: `under_quarter` becomes `under quarter`. */
export function wordText(word: string): string {
  return word.replaceAll('_', ' ');
}

/** Names of values that a person would not understand as they are. */
const MEMBER_WORDS: Readonly<Record<string, string>> = {
  seconds: 'length',
  compared: 'parts compared',
  equal: 'parts that are equal',
};

/**
 * Returns a member name as text: `placementId` becomes `placement id`, `import_placements` becomes `import
 * placements`. A name loses `Seconds`, because `valueText` formats lengths of time without a unit.
 */
export function memberText(name: string): string {
  if (Object.hasOwn(MEMBER_WORDS, name)) return MEMBER_WORDS[name]!;
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
