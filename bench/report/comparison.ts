import { spread } from '../statistics.js';
import type { Verdict } from '../verdict.js';
import { tableLines } from './table.js';

/** A value of two builds. */
export interface Compared {
  readonly label: string;
  readonly unit: string;
  /** Each side's value, and the rounds by which it wanders. */
  readonly before: Side;
  readonly now: Side;
  /** `now` to `before`. */
  readonly ratio: number;
  readonly verdict: Verdict;
}

interface Side {
  readonly value: number;
  readonly rounds: readonly number[];
}

const COLOURS = { faster: 32, slower: 31 } as const;

/**
 * A table for a terminal: both values, their ratio, the range of the rounds as a share of the median for both
 * sides, and the verdict; under it the number of verdicts.
 * @param names of the two sides
 */
export function comparisonTable(
  values: readonly Compared[],
  [before, now]: readonly [string, string],
  colours: boolean,
): string {
  const head = [
    '',
    'unit',
    before,
    now,
    `${now} : ${before}`,
    `spread ${before}`,
    `spread ${now}`,
    'verdict',
  ];
  const rows = values.map((value) => [
    value.label,
    value.unit,
    short(value.before.value),
    short(value.now.value),
    `${value.ratio.toFixed(3)}x`,
    share(value.before.rounds),
    share(value.now.rounds),
    value.verdict,
  ]);
  const [first, ...lines] = tableLines([head, ...rows], 2);
  const painted = lines.map((line, row) => {
    const { verdict } = values[row]!;
    return colours && verdict !== '-' ? `\u001b[${COLOURS[verdict]}m${line}\u001b[0m` : line;
  });
  const count = (verdict: Verdict): number => values.filter((value) => value.verdict === verdict).length;
  return [
    first,
    ...painted,
    '',
    `${count('faster')} faster and ${count('slower')} slower beyond the noise, of ${values.length}`,
  ].join('\n');
}

export function isSlower(values: readonly Compared[]): boolean {
  return values.some(({ verdict }) => verdict === 'slower');
}

/** A single round has no range. */
function share(rounds: readonly number[]): string {
  return rounds.length < 2 ? '' : `${(spread(rounds) * 100).toFixed(1)} %`;
}

function short(value: number): string {
  return Number.isInteger(value) ? String(value) : value.toPrecision(4);
}
