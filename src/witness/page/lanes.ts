import { html, Markup } from './markup.js';

/** A span of a lane in seconds. Its kind is a CSS class. */
export interface Span {
  readonly start: number;
  readonly end: number;
  readonly kind: string;
  /** A short text inside the span, shown if there is room. */
  readonly label?: string;
  /** The tooltip text. */
  readonly title?: string;
}

/** The minimum width of a span, so that a short span is visible. */
const LEAST_PERCENT = 0.4;
/** The distance in percent of the width below which spans of one kind are drawn as one. */
const MERGE_PERCENT = 0.15;
/** The minimum width of a span with a label. */
const LABEL_PERCENT = 9;

/** Joins neighbours that look like one span, so that the number of shapes is bounded. */
export function mergeSpans(spans: readonly Span[], total: number): readonly Span[] {
  const near = (total * MERGE_PERCENT) / 100;
  const merged: Span[] = [];
  const last = new Map<string, number>();
  for (const span of spans.toSorted((one, other) => one.start - other.start)) {
    const key = `${span.kind} ${span.label ?? ''}`;
    const at = last.get(key);
    const before = at === undefined ? undefined : merged[at];
    if (at !== undefined && before !== undefined && span.start - before.end <= near)
      merged[at] = { ...before, end: Math.max(before.end, span.end) };
    else {
      last.set(key, merged.length);
      merged.push(span);
    }
  }
  return merged;
}

/**
 * Draws spans over a length of time. Positions are percentages of the width and heights are pixels, so that
 * text and lines are not scaled on a narrow screen.
 */
export function drawLane(
  spans: readonly Span[],
  { total, label, height = 26, className = '' }: LaneOptions,
): Markup {
  const merged = mergeSpans(spans, total);
  const room = (total * LABEL_PERCENT) / 100;
  // An overlapping neighbour would cut off the label.
  const isFree = (span: Span): boolean =>
    span.end - span.start >= room &&
    merged.every((other) => other === span || other.end <= span.start || other.start >= span.start + room);
  return html`<svg class="lane ${className}" width="100%" height="${height}" role="img" aria-label="${label}" focusable="false">${merged.map((span) => drawSpan(span, total, height, isFree(span)))}</svg>`;
}

interface LaneOptions {
  readonly total: number;
  /** The content of the lane in words, for screen readers. */
  readonly label: string;
  readonly height?: number;
  readonly className?: string;
}

function drawSpan(
  { start, end, kind, label, title }: Span,
  total: number,
  height: number,
  isLabelled: boolean,
): Markup {
  const from = percent(start, total);
  const width = Math.max(LEAST_PERCENT, percent(end, total) - from);
  // Move a span at the very end inwards instead of cutting it off.
  const x = Math.min(from, 100 - LEAST_PERCENT);
  const shape = html`<rect class="${kind}" x="${number(x)}%" y="2" width="${number(Math.min(width, 100 - x))}%" height="${height - 4}" rx="3">${
    title === undefined ? undefined : html`<title>${title}</title>`
  }</rect>`;
  if (label === undefined || !isLabelled) return shape;
  return html`${shape}<text class="in-block" x="${number(x)}%" dx="7" y="${height / 2 + 4}">${label}</text>`;
}

/** Returns the marks of a time axis, at round times. */
export function axisMarks(total: number): readonly number[] {
  const step = STEPS.find((seconds) => total / seconds <= 5) ?? Math.ceil(total / 5);
  const marks: number[] = [];
  for (let at = 0; at <= total && marks.length < 7; at += step) marks.push(at);
  return marks;
}

const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 28_800, 86_400];

/** Draws the time axis below lanes. */
export function drawAxis(total: number, write: (seconds: number) => string): Markup {
  return html`<svg class="axis" width="100%" height="22" aria-hidden="true" focusable="false">${axisMarks(
    total,
  ).map((at) => {
    const x = percent(at, total);
    const anchor = x < 4 ? 'start' : x > 94 ? 'end' : 'middle';
    return html`<line x1="${number(x)}%" x2="${number(x)}%" y1="0" y2="5"/><text class="${anchor}" x="${number(x)}%" y="18">${write(at)}</text>`;
  })}</svg>`;
}

/** Returns a value as a percentage of a total, from 0 to 100. */
export function percent(value: number, total: number): number {
  return total > 0 ? Math.min(100, Math.max(0, (value / total) * 100)) : 0;
}

/** Formats a number with at most two decimals. */
export function number(value: number): string {
  return String(Math.round(value * 100) / 100);
}

/** The pattern that all gaps of a page share. Only gaps are hatched. */
export const PATTERNS = new Markup(
  '<svg class="patterns" width="0" height="0" aria-hidden="true" focusable="false"><defs><pattern id="hatch" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect class="hatch-ground" width="7" height="7"/><rect class="hatch-line" width="2.5" height="7"/></pattern></defs></svg>',
);
