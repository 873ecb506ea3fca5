import type { Comparison, Figure } from '../measure.js';
import { barText, number, withUnit } from './numbers.js';

const WIDTH = 860;
const LABELS = 300;
const VALUES = 96;
const ROW = 30;
const THICK = 14;

export function escapeText(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}

/** Draws horizontal bars of one unit, with the median as the bar and each round as a dot. */
export function barChart(unit: string, figures: readonly Figure[]): string {
  const top = Math.max(...figures.flatMap(({ rounds }) => rounds));
  const plot = WIDTH - LABELS - VALUES;
  const ticks = niceTicks(top);
  const scale = (value: number): number => LABELS + (value / ticks.at(-1)!) * plot;
  const height = figures.length * ROW + 30;
  const rows = figures.map((figure, row) => {
    const y = row * ROW + 6;
    const middle = y + THICK / 2;
    const dots = figure.rounds
      .map((value) => `<circle cx="${scale(value).toFixed(1)}" cy="${middle}" r="2.2" class="dot"/>`)
      .join('');
    const text = `${figure.label}: median ${number(figure.median)} ${unit}; rounds ${figure.rounds.map(number).join(', ')}`;
    return `<g><title>${escapeText(text)}</title><text x="${LABELS - 12}" y="${middle + 4}" text-anchor="end" class="label">${escapeText(figure.label)}</text><rect x="${LABELS}" y="${y}" width="${Math.max(1, scale(figure.median) - LABELS).toFixed(1)}" height="${THICK}" rx="2" class="${figure.role}"/>${dots}<text x="${(Math.max(scale(figure.median), ...figure.rounds.map(scale)) + 8).toFixed(1)}" y="${middle + 4}" class="value">${number(figure.median)}</text></g>`;
  });
  const bottom = figures.length * ROW + 4;
  const grid = ticks.map(
    (tick) =>
      `<line x1="${scale(tick).toFixed(1)}" x2="${scale(tick).toFixed(1)}" y1="0" y2="${bottom}" class="grid"/><text x="${scale(tick).toFixed(1)}" y="${bottom + 16}" text-anchor="middle" class="tick">${number(tick)}</text>`,
  );
  return `<svg viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="${escapeText(`${unit}: ${figures.map(({ label, median }) => `${label} ${number(median)}`).join('; ')}`)}">${grid.join('')}${rows.join('')}</svg>`;
}

/** Returns four to five ticks in equal steps from 0. The last is at or above `top`, and above 0. */
export function niceTicks(top: number): readonly number[] {
  // A chart of zeros has a scale too.
  const most = top > 0 ? top : 1;
  const raw = most / 4;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= raw)!;
  const count = Math.ceil(most / step);
  return Array.from({ length: count + 1 }, (_, i) => i * step);
}

const GAUGE = 190;
/** The gauge ends at three times and a third of the bar. */
const GAUGE_DECADE = Math.log(3);

/**
 * Draws a value beside its bar, which is in the middle of a logarithmic scale. A value to the right of the bar
 * is better for either kind of bar.
 */
export function gauge({ value, bar, unit, rounds }: Comparison): string {
  if (bar === undefined) return '';
  const at = (each: number): number => {
    const goodness = bar.kind === 'at least' ? each / bar.limit : bar.limit / each;
    const share = Math.max(-1, Math.min(1, Math.log(goodness) / GAUGE_DECADE));
    return GAUGE / 2 + (share * (GAUGE - 12)) / 2;
  };
  const x = at(value);
  const tone = (bar.kind === 'at least' ? value >= bar.limit : value <= bar.limit) ? 'met' : 'missed';
  const dots = rounds
    .map((each) => `<circle cx="${at(each).toFixed(1)}" cy="10" r="1.8" class="dot"/>`)
    .join('');
  return `<svg viewBox="0 0 ${GAUGE} 20" class="gauge" role="img" aria-label="${escapeText(`${withUnit(value, unit)}, bar ${barText(bar, unit)}`)}"><line x1="2" x2="${GAUGE - 2}" y1="10" y2="10" class="grid"/><rect x="${Math.min(x, GAUGE / 2).toFixed(1)}" y="6" width="${Math.abs(x - GAUGE / 2).toFixed(1)}" height="8" class="${tone}"/><line x1="${GAUGE / 2}" x2="${GAUGE / 2}" y1="1" y2="19" class="bar"/>${dots}</svg>`;
}
