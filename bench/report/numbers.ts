import { type Bar, shortfall } from '../bars.js';
import type { Comparison } from '../measure.js';
import type { Condition } from '../results.js';

/** Formats a number with three significant digits, two below 0.01, or from 100 on as an integer with commas. */
export function number(value: number): string {
  if (!Number.isFinite(value)) return '–';
  const size = Math.abs(value);
  if (size >= 100) return Math.round(value).toLocaleString('en-US');
  if (size === 0) return '0';
  return size < 0.01 ? value.toPrecision(2) : value.toPrecision(3);
}

/** Returns a number that is not a measurement, as it is: a size, a tick of an axis. */
export function plainNumber(value: number): string {
  return value.toLocaleString('en-US', { maximumFractionDigits: 4 });
}

export function withUnit(value: number, unit: string): string {
  if (unit !== 'x') return `${number(value)} ${unit}`;
  return value < 0.01 ? `${number(value * 100)} %` : `${ratioText(value)}×`;
}

function ratioText(value: number): string {
  return value >= 0.1 && value < 100 ? value.toFixed(2) : number(value);
}

export function barText(bar: Bar, unit: string): string {
  return `${bar.kind === 'at least' ? '≥' : '≤'} ${bar.limit}${unit === 'x' ? '×' : ` ${unit}`}`;
}

/** Returns `met`, or by how many percent a bar is missed. */
export function outcome({ bar, met, value }: Comparison): string {
  if (bar === undefined) return '';
  if (met) return 'met';
  return `${bar.kind === 'at least' ? 'short' : 'over'} by ${(shortfall(bar, value) * 100).toFixed(1)} %`;
}

export function disturbance(busy: readonly Condition[]): string {
  return `The machine was not at rest: others took ${busy.map(({ name, foreignLoad }) => `${Math.round(foreignLoad * 100)} % around ${name}`).join(', ')}.`;
}
