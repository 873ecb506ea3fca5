import type { Comparison } from '../measure.js';
import { disturbed, type Results } from '../results.js';
import { barText, disturbance, outcome, withUnit } from './numbers.js';

const HEAD = ['', 'figure', 'baseline', 'ratio', 'bar', ''];

/** The comparisons as a table for a terminal. */
export function terminalReport(results: Results, colours: boolean): string {
  const paint = (code: number, text: string): string => (colours ? `\u001b[${code}m${text}\u001b[0m` : text);
  const lines: string[] = [];
  const rows = results.sections.flatMap(({ title, comparisons }) => [[title], ...comparisons.map(rowOf)]);
  const widths = HEAD.map((head, column) =>
    Math.max(head.length, ...rows.filter((row) => row.length > 1).map((row) => row[column]!.length)),
  );
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, column) =>
        column === 0 || column === 5 ? cell.padEnd(widths[column]!) : cell.padStart(widths[column]!),
      )
      .join('  ');
  lines.push(paint(2, line(HEAD)));
  for (const row of rows) {
    if (row.length === 1) lines.push(paint(1, row[0]!));
    else if (row[5] === '') lines.push(line(row).trimEnd());
    else lines.push(line(row.slice(0, 5).concat('')) + paint(row[5] === 'met' ? 32 : 31, row[5]!));
  }
  const { met, of } = results.bars;
  lines.push(
    '',
    paint(met === of ? 32 : 33, `${met} of ${of} bars met`) +
      `, ${results.seconds} s, ${results.machine.processor}, ${results.machine.cores} cores, Node ${results.machine.node}`,
  );
  const busy = disturbed(results);
  if (busy.length > 0) lines.push(paint(33, disturbance(busy)));
  for (const wrong of results.wrong.slice(0, 20)) lines.push(paint(31, `WRONG: ${wrong}`));
  return lines.join('\n');
}

function rowOf(comparison: Comparison): string[] {
  const { label, baseline, sides, value, unit, bar } = comparison;
  return [
    `  ${label} : ${baseline}`,
    sides === undefined ? '' : withUnit(sides.ours, sides.unit),
    sides === undefined ? '' : withUnit(sides.baseline, sides.unit),
    withUnit(value, unit),
    bar === undefined ? '' : `${barText(bar, unit)}${bar.was === undefined ? '' : ` (was ${bar.was})`}`,
    outcome(comparison),
  ];
}
