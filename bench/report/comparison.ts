import { spread } from '../statistics.js';
import type { Judged, Verdict } from '../verdict.js';
import { number } from './numbers.js';
import { tableLines } from './table.js';

const COLOURS = { faster: 32, slower: 31 } as const;

/**
 * Returns a table for a terminal. It has both values, their ratio, the range of the rounds as a share of the
 * median for both sides, and the verdict. Under it are the numbers of faster and slower values.
 * @param names of the two sides
 */
export function comparisonTable(
  values: readonly Judged[],
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
    number(value.before.value),
    number(value.now.value),
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

/** Returns the range of the rounds in percent of their median. It is empty for a single round, which has none. */
function share(rounds: readonly number[]): string {
  return rounds.length < 2 ? '' : `${(spread(rounds) * 100).toFixed(1)} %`;
}
