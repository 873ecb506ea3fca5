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
 * Lines over a logarithmic x axis with a tick at each x, and a y axis that begins at 0. A line goes through
 * the medians, small dots are single rounds.
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
      `<line x1="${PLOT.left}" x2="${right}" y1="${fixed(yAt(tick))}" y2="${fixed(yAt(tick))}" class="grid"/>` +
      `<text x="${PLOT.left - 8}" y="${fixed(yAt(tick) + 4)}" text-anchor="end" class="tick">${plainNumber(tick)}</text>`,
  );
  const vertical = apart(xs, xAt).map(
    (value) =>
      `<line x1="${fixed(xAt(value))}" x2="${fixed(xAt(value))}" y1="${PLOT.bottom}" y2="${PLOT.bottom + 5}" class="grid"/>` +
      `<text x="${fixed(xAt(value))}" y="${PLOT.bottom + 19}" text-anchor="middle" class="tick">${plainNumber(value)}</text>`,
  );
  const ends = spreadOut(lines.map(({ points }) => yAt(points.at(-1)!.median)));
  const drawn = lines.map((line, index) => {
    const path = line.points.map(({ x, median }) => `${fixed(xAt(x))},${fixed(yAt(median))}`).join(' ');
    const rounds = line.points.flatMap((point) =>
      point.rounds.map(
        (value) =>
          `<circle cx="${fixed(xAt(point.x))}" cy="${fixed(yAt(value))}" r="2.4" class="${line.role} round"/>`,
      ),
    );
    const medians = line.points.map(
      (point) =>
        `<circle cx="${fixed(xAt(point.x))}" cy="${fixed(yAt(point.median))}" r="3.8" class="${line.role}">` +
        `<title>${escapeText(`${line.label}, ${plainNumber(point.x)} ${x.unit || x.label}: ${pointText(point, y.unit)}`)}</title></circle>`,
    );
    const end = line.points.at(-1)!;
    return (
      `<g><title>${escapeText(lineText(line, y.unit))}</title>` +
      `<polyline points="${path}" class="${line.role} line" stroke-dasharray="${strokeOf(lines, index)}"/>${rounds.join('')}${medians.join('')}` +
      `<line x1="${fixed(xAt(end.x) + 5)}" x2="${fixed(right + LABEL_GAP - 6)}" y1="${fixed(yAt(end.median))}" y2="${fixed(ends[index]!)}" class="grid"/>` +
      `<text x="${fixed(right + LABEL_GAP)}" y="${fixed(ends[index]! + 4)}" class="label">${escapeText(line.label)}</text></g>`
    );
  });
  const text = `${title}, in ${y.unit}: ${lines.map((line) => lineText(line, y.unit)).join('. ')}`;
  return (
    `<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${escapeText(text)}">` +
    `<text x="4" y="14" class="tick">${escapeText(withUnitOf(y))}</text>` +
    `<text x="${fixed(right)}" y="${HEIGHT - 6}" text-anchor="end" class="tick">${escapeText(withUnitOf(x))}</text>` +
    `${horizontal.join('')}${vertical.join('')}${drawn.join('')}</svg>`
  );
}

/** Every x that a line has, in order. */
export function xsOf(lines: readonly CurveLine[]): readonly number[] {
  return [...new Set(lines.flatMap(({ points }) => points.map(({ x }) => x)))].sort((a, b) => a - b);
}

function lineText({ label, points }: CurveLine, unit: string): string {
  return `${label}: ${points.map((point) => `at ${plainNumber(point.x)} ${pointText(point, unit)}`).join('; ')}`;
}

function pointText({ median, rounds }: CurveLine['points'][number], unit: string): string {
  return `median ${number(median)} ${unit}, rounds ${rounds.map(number).join(' ')}`;
}

function withUnitOf({ label, unit }: Curve['x']): string {
  return unit === '' ? label : `${label}, ${unit}`;
}

function strokeOf(lines: readonly CurveLine[], index: number): string {
  const before = lines.slice(0, index).filter(({ role }) => role === lines[index]!.role).length;
  return STROKES[before % STROKES.length]!;
}

/** The values whose labels do not run into that of the one before; the last is always one. */
function apart(values: readonly number[], at: (value: number) => number): readonly number[] {
  const half = (value: number): number => (plainNumber(value).length * TICK_CHARACTER) / 2 + 3;
  const kept: number[] = [];
  for (const value of [...values].reverse()) {
    const after = kept.at(-1);
    if (after === undefined || at(after) - half(after) >= at(value) + half(value)) kept.push(value);
  }
  return kept.reverse();
}

/** The heights in which labels are to stand, moved so that none covers another or leaves the plot. */
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
