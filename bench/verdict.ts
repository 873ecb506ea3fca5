import { defined } from '../src/core/domain/defined.js';
import type { Figure, Section } from './measure.js';
import { median, spread } from './statistics.js';
import { type Better, betterOf, isOfAnyMachine } from './units.js';

/** A figure, a comparison or a point of a curve, as a run has it. */
export interface Value {
  readonly id: string;
  readonly label: string;
  readonly unit: string;
  /** The better direction. Absent if there is none, or if the value shows only how the machine was. */
  readonly better?: Better;
  /** The group of values of one unit measured together. Absent for a comparison, which has its own baseline. */
  readonly group?: string;
  /** True for a baseline of its group. */
  readonly isBaseline: boolean;
  readonly rounds: readonly number[];
  readonly value: number;
}

/** A value of two builds. */
export interface Change extends Pick<Value, 'label' | 'unit' | 'better' | 'group' | 'isBaseline'> {
  /** Each side's value, and the rounds that show its spread. */
  readonly before: Pick<Value, 'rounds' | 'value'>;
  readonly now: Pick<Value, 'rounds' | 'value'>;
  /** The ratio of `now` to `before`. */
  readonly ratio: number;
  readonly isBeyondNoise: boolean;
}

export type Verdict = 'faster' | 'slower' | '-';

export interface Judged extends Change {
  readonly verdict: Verdict;
}

/** Rounds that a side needs, least change that counts between two runs, and within pairs of one run. */
const LEAST_ROUNDS = 3;
const LEAST_CHANGE = 0.05;
const LEAST_CHANGE_OF_PAIRS = 0.03;

export function valuesOf({ id: section, figures, comparisons, curves = [] }: Section): readonly Value[] {
  return [
    ...figures.map(({ id, label, unit, role, rounds, median: value }) => ({
      ...absolute(role, unit, `${section}, ${unit}`),
      id: `figure ${id}`,
      label,
      rounds,
      value,
    })),
    ...comparisons.map(({ id, label, baseline, unit, better, rounds, value }) => ({
      id: `comparison ${id}`,
      label: `${label} : ${baseline}`,
      unit,
      ...defined({ better }),
      isBaseline: false,
      rounds,
      value,
    })),
    ...curves.flatMap(({ id, title, x, y, lines }) =>
      lines.flatMap(({ label, role, points }) =>
        points.map((point) => ({
          ...absolute(role, y.unit, `${id}, ${point.x}`),
          id: `curve ${id}, ${label}, ${point.x}`,
          label: `${title}: ${label}, ${point.x} ${x.unit || x.label}`,
          rounds: point.rounds,
          value: point.median,
        })),
      ),
    ),
  ];
}

function absolute(role: Figure['role'], unit: string, group: string) {
  const better = role === 'ours' ? betterOf(unit) : undefined;
  return { unit, ...defined({ better }), group, isBaseline: role === 'baseline' };
}

/**
 * Returns true if two runs at different times differ: each side has three rounds or more, no round of one side
 * is in the range of the other, and the medians differ by 5 % or more and by more than the range of either
 * side's rounds as a share of its median. On different machines, only ratios and counts can differ.
 */
export function isBeyondNoise(before: Value, now: Value, sameMachine: boolean): boolean {
  const sides = [before.rounds, now.rounds];
  const change = distance(now.value / before.value);
  const areApart =
    Math.max(...before.rounds) < Math.min(...now.rounds) ||
    Math.max(...now.rounds) < Math.min(...before.rounds);
  return (
    (sameMachine || isOfAnyMachine(now.unit)) &&
    sides.every((rounds) => rounds.length >= LEAST_ROUNDS && change > spread(rounds)) &&
    areApart &&
    change >= LEAST_CHANGE
  );
}

/**
 * Returns true if two builds that ran in turn differ: there are three rounds or more, all their ratios are on
 * the same side of 1, and the median of the ratios is 3 % or more from it.
 */
export function areBeyondNoise(ratios: readonly number[]): boolean {
  return (
    ratios.length >= LEAST_ROUNDS &&
    (ratios.every((ratio) => ratio > 1) || ratios.every((ratio) => ratio < 1)) &&
    distance(median(ratios)) >= LEAST_CHANGE_OF_PAIRS
  );
}

/**
 * Returns each change with its verdict. A change beyond the noise has one if one way is better, and if it is
 * larger than that of any baseline of its unit that was measured beside it, since that was the machine.
 */
export function judged(changes: readonly Change[]): readonly Judged[] {
  const drifts = new Map<string, number>();
  for (const { group, isBaseline, ratio } of changes) {
    if (group !== undefined && isBaseline)
      drifts.set(group, Math.max(drifts.get(group) ?? 0, distance(ratio)));
  }
  return changes.map((change) => {
    const { group, better, ratio } = change;
    const drift = (group === undefined ? undefined : drifts.get(group)) ?? 0;
    const isCertain = change.isBeyondNoise && distance(ratio) > drift;
    if (!isCertain || better === undefined) return { ...change, verdict: '-' };
    return { ...change, verdict: ratio > 1 === (better === 'more') ? 'faster' : 'slower' };
  });
}

export function isAnySlower(changes: readonly Judged[]): boolean {
  return changes.some(({ verdict }) => verdict === 'slower');
}

/** Returns how far a ratio is from 1, the same for a half and the double, or 0 if it is not finite and positive. */
function distance(ratio: number): number {
  return Number.isFinite(ratio) && ratio > 0 ? Math.max(ratio, 1 / ratio) - 1 : 0;
}
