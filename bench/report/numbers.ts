import { shortfall, type Bar } from '../bars.js';
import type { Comparison } from '../measure.js';

/** Three significant digits, thousands grouped. */
export function number(value: number): string {
  if (!Number.isFinite(value)) return '–';
  const size = Math.abs(value);
  if (size >= 100) return Math.round(value).toLocaleString('en-US');
  if (size === 0) return '0';
  return size < 0.001 ? value.toExponential(1) : value.toPrecision(3);
}

export function withUnit(value: number, unit: string): string {
  return unit === 'x' ? `${ratioText(value)}×` : `${number(value)} ${unit}`;
}

/** Two decimals, and enough digits to see a small share. */
function ratioText(value: number): string {
  return value >= 0.1 && value < 100 ? value.toFixed(2) : number(value);
}

export function barText(bar: Bar, unit: string): string {
  return `${bar.kind === 'at least' ? '≥' : '≤'} ${bar.limit}${unit === 'x' ? '×' : ` ${unit}`}`;
}

/** `met`, or by how much not. */
export function outcome({ bar, met, value }: Comparison): string {
  if (bar === undefined) return '';
  if (met) return 'met';
  return `${bar.kind === 'at least' ? 'short' : 'over'} by ${(shortfall(bar, value) * 100).toFixed(1)} %`;
}
