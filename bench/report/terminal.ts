import type { Comparison, Curve } from '../measure.js';
import { disturbed, type Results } from '../results.js';
import { withUnitOf, xsOf } from './curve-chart.js';
import { barText, disturbance, number, outcome, plainNumber, withUnit } from './numbers.js';
import { tableLines } from './table.js';

const HEAD = ['', 'figure', 'baseline', 'ratio', 'bar', ''];

/** Returns the comparisons as a table for a terminal, followed by the curves, the bars met and any wrong answer. */
export function terminalReport(results: Results, colours: boolean): string {
  const paint: Paint = (code, text) => (colours ? `\u001b[${code}m${text}\u001b[0m` : text);
  const lines: string[] = [];
  const rows = results.sections.flatMap(({ title, comparisons }) =>
    comparisons.length === 0 ? [] : [[title], ...comparisons.map(rowOf)],
  );
  const widths = HEAD.map((head, column) =>
    Math.max(head.length, ...rows.filter((row) => row.length > 1).map((row) => row[column]!.length)),
  );
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, column) =>
        column === 0 || column === 5 ? cell.padEnd(widths[column]!) : cell.padStart(widths[column]!),
      )
      .join('  ');
  if (rows.length > 0) lines.push(paint(2, line(HEAD)));
  for (const row of rows) {
    if (row.length === 1) lines.push(paint(1, row[0]!));
    else if (row[5] === '') lines.push(line(row).trimEnd());
    else lines.push(line(row.slice(0, 5).concat('')) + paint(row[5] === 'met' ? 32 : 31, row[5]!));
  }
  for (const curve of results.sections.flatMap(({ curves = [] }) => curves))
    lines.push('', ...curveLines(curve, paint));
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

type Paint = (code: number, text: string) => string;

/** Returns a table of the medians of a curve, with a row for each of its lines. */
function curveLines({ title, x, y, lines }: Curve, paint: Paint): readonly string[] {
  const xs = xsOf(lines);
  const rows = lines.map(({ label, points }) => [
    `  ${label}`,
    ...xs
      .map((at) => points.find((point) => point.x === at)?.median)
      .map((value) => (value === undefined ? '' : number(value))),
  ]);
  const [head, ...table] = tableLines([[`  ${withUnitOf(x)}`, ...xs.map(plainNumber)], ...rows], 1);
  return [paint(1, `${title}, ${y.unit}`), paint(2, head!), ...table];
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
