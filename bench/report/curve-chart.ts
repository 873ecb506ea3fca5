import type { Curve, CurveLine } from '../measure.js';
import { escapeText, niceTicks } from './chart.js';
import { number, plainNumber } from './numbers.js';

const WIDTH = 860;
const PLOT = { left: 62, top: 30, bottom: 262 };
const HEIGHT = PLOT.bottom + 46;
/** Widths of a character, of the labels at the ends of lines and of the ticks. */
const LABEL_CHARACTER = 7.2;
const TICK_CHARACTER = 6.4;
const LABEL_GAP = 20;
const LINE_HEIGHT = 16;
/** Strokes of the lines of one role, in turn. */
const STROKES = ['', '7 4', '2 3'];

/**
 * Draws lines over a logarithmic x axis with a tick at each x whose label has room, and a y axis that begins at
 * 0. A line goes through the medians, and small dots are single rounds.
 */
export function curveChart({ title, x, y, lines }: Curve): string {
  const labels = Math.max(...lines.map(({ label }) => label.length)) * LABEL_CHARACTER + LABEL_GAP + 6;
  const right = WIDTH - labels;
  const xs = xsOf(lines);
  const ticks = niceTicks(Math.max(...lines.flatMap(({ points }) => points.flatMap(({ rounds }) => rounds))));
  const [first, last] = [Math.log(xs[0]!), Math.log(xs.at(-1)!)];
  const inset = 16;
  const xAt = (value: number): number =>
    first === last
      ? (PLOT.left + right) / 2
      : PLOT.left + inset + ((Math.log(value) - first) / (last - first)) * (right - PLOT.left - 2 * inset);
  const yAt = (value: number): number => PLOT.bottom - (value / ticks.at(-1)!) * (PLOT.bottom - PLOT.top);

  const horizontal = ticks.map(
    (tick) =>
      segment(PLOT.left, yAt(tick), right, yAt(tick)) +
      textAt(PLOT.left - 8, yAt(tick) + 4, 'tick', plainNumber(tick), 'end'),
  );
  const vertical = apart(xs, xAt).map(
    (value) =>
      segment(xAt(value), PLOT.bottom, xAt(value), PLOT.bottom + 5) +
      textAt(xAt(value), PLOT.bottom + 19, 'tick', plainNumber(value), 'middle'),
  );
  const ends = spreadOut(lines.map(({ points }) => yAt(points.at(-1)!.median)));
  const drawn = lines.map((line, index) => {
    const { label, role, points } = line;
    const path = points.map((point) => `${fixed(xAt(point.x))},${fixed(yAt(point.median))}`).join(' ');
    const rounds = points.flatMap((point) =>
      point.rounds.map((value) => circle(xAt(point.x), yAt(value), 2.4, `${role} round`)),
    );
    const medians = points.map((point) => {
      const text = `${label}, ${plainNumber(point.x)} ${x.unit || x.label}: ${pointText(point, y.unit)}`;
      return circle(xAt(point.x), yAt(point.median), 3.8, role, `<title>${escapeText(text)}</title>`);
    });
    const end = points.at(-1)!;
    return [
      `<g><title>${escapeText(lineText(line, y.unit))}</title>`,
      `<polyline points="${path}" class="${role} line" stroke-dasharray="${strokeOf(lines, index)}"/>`,
      ...rounds,
      ...medians,
      segment(xAt(end.x) + 5, yAt(end.median), right + LABEL_GAP - 6, ends[index]!),
      textAt(right + LABEL_GAP, ends[index]! + 4, 'label', label),
      '</g>',
    ].join('');
  });
  const text = `${title}, in ${y.unit}: ${lines.map((line) => lineText(line, y.unit)).join('. ')}`;
  return [
    `<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${escapeText(text)}">`,
    textAt(4, 14, 'tick', withUnitOf(y)),
    textAt(right, HEIGHT - 6, 'tick', withUnitOf(x), 'end'),
    ...horizontal,
    ...vertical,
    ...drawn,
    '</svg>',
  ].join('');
}

function segment(x1: number, y1: number, x2: number, y2: number): string {
  return `<line x1="${fixed(x1)}" y1="${fixed(y1)}" x2="${fixed(x2)}" y2="${fixed(y2)}" class="grid"/>`;
}

function textAt(x: number, y: number, name: string, text: string, anchor = 'start'): string {
  return `<text x="${fixed(x)}" y="${fixed(y)}" text-anchor="${anchor}" class="${name}">${escapeText(text)}</text>`;
}

function circle(x: number, y: number, radius: number, name: string, content = ''): string {
  return `<circle cx="${fixed(x)}" cy="${fixed(y)}" r="${radius}" class="${name}">${content}</circle>`;
}

/** Returns every x that a line has, in ascending order. */
export function xsOf(lines: readonly CurveLine[]): readonly number[] {
  return [...new Set(lines.flatMap(({ points }) => points.map(({ x }) => x)))].sort((a, b) => a - b);
}

function lineText({ label, points }: CurveLine, unit: string): string {
  return `${label}: ${points.map((point) => `at ${plainNumber(point.x)} ${pointText(point, unit)}`).join('; ')}`;
}

function pointText({ median, rounds }: CurveLine['points'][number], unit: string): string {
  return `median ${number(median)} ${unit}, rounds ${rounds.map(number).join(' ')}`;
}

/** Returns the label of an axis with its unit, if it has one. */
export function withUnitOf({ label, unit }: Curve['x']): string {
  return unit === '' ? label : `${label}, ${unit}`;
}

function strokeOf(lines: readonly CurveLine[], index: number): string {
  const before = lines.slice(0, index).filter(({ role }) => role === lines[index]!.role).length;
  return STROKES[before % STROKES.length]!;
}

/** Returns the values whose labels do not run into that of the next one kept. The last is always kept. */
function apart(values: readonly number[], at: (value: number) => number): readonly number[] {
  const half = (value: number): number => (plainNumber(value).length * TICK_CHARACTER) / 2 + 3;
  const kept: number[] = [];
  for (const value of [...values].reverse()) {
    const after = kept.at(-1);
    if (after === undefined || at(after) - half(after) >= at(value) + half(value)) kept.push(value);
  }
  return kept.reverse();
}

/** Returns the heights of labels, moved so that none covers another or leaves the plot. */
function spreadOut(heights: readonly number[]): readonly number[] {
  const order = heights.map((_, index) => index).sort((a, b) => heights[a]! - heights[b]!);
  const placed = [...heights];
  let least = PLOT.top;
  for (const index of order) {
    placed[index] = Math.max(placed[index]!, least);
    least = placed[index] + LINE_HEIGHT;
  }
  let most = PLOT.bottom;
  for (const index of order.reverse()) {
    placed[index] = Math.min(placed[index]!, most);
    most = placed[index] - LINE_HEIGHT;
  }
  return placed;
}

function fixed(value: number): string {
  return value.toFixed(1);
}
