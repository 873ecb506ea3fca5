import type { Section } from './measure.js';
import { median, spread } from './statistics.js';
import { type Better, betterOf, isOfAnyMachine } from './units.js';

/** A figure, a comparison or a point of a curve, as a run has it. */
export interface Value {
  readonly id: string;
  readonly label: string;
  readonly unit: string;
  /** Absent where neither way is, and for what shows nothing but how the machine was. */
  readonly better?: Better;
  readonly rounds: readonly number[];
  readonly value: number;
}

export type Verdict = 'faster' | 'slower' | '-';

/** Rounds that a side needs, least change that counts between two runs, and within pairs of one run. */
const LEAST_ROUNDS = 3;
const LEAST_CHANGE = 0.05;
const LEAST_CHANGE_OF_PAIRS = 0.03;

export function valuesOf({ figures, comparisons, curves = [] }: Section): readonly Value[] {
  return [
    ...figures.map(({ id, label, unit, role, rounds, median: value }) => ({
      id: `figure ${id}`,
      label,
      unit,
      rounds,
      value,
      ...betterFor(role, unit),
    })),
    ...comparisons.map(({ id, label, baseline, unit, better, rounds, value }) => ({
      id: `comparison ${id}`,
      label: `${label} : ${baseline}`,
      unit,
      rounds,
      value,
      ...(better === undefined ? {} : { better }),
    })),
    ...curves.flatMap(({ id, title, x, y, lines }) =>
      lines.flatMap(({ label, role, points }) =>
        points.map((point) => ({
          id: `curve ${id}, ${label}, ${point.x}`,
          label: `${title}: ${label}, ${point.x} ${x.unit || x.label}`,
          unit: y.unit,
          rounds: point.rounds,
          value: point.median,
          ...betterFor(role, y.unit),
        })),
      ),
    ),
  ];
}

/** A baseline shows how the machine was, so that neither way of it is better. */
function betterFor(role: 'ours' | 'baseline' | 'other', unit: string): { readonly better?: Better } {
  const better = role === 'ours' ? betterOf(unit) : undefined;
  return better === undefined ? {} : { better };
}

/**
 * The verdict on two runs that lie apart in time. It is given where one way is better, each side has three
 * rounds or more, no round of one side lies in the range of the other, and the medians differ by 5 % and by
 * more than the range of either side's rounds as a share of its median. On different machines ratios and
 * counts alone have one.
 */
export function verdictOfRuns(before: Value, now: Value, sameMachine: boolean): Verdict {
  const sides = [before, now];
  const change = distance(now.value / before.value);
  const apart =
    Math.max(...before.rounds) < Math.min(...now.rounds) ||
    Math.max(...now.rounds) < Math.min(...before.rounds);
  const isCertain =
    (sameMachine || isOfAnyMachine(now.unit)) &&
    sides.every(({ rounds }) => rounds.length >= LEAST_ROUNDS) &&
    apart &&
    change >= LEAST_CHANGE &&
    sides.every(({ rounds }) => change > spread(rounds));
  return isCertain ? verdict(now.better, now.value / before.value) : '-';
}

/**
 * The verdict on two builds that ran in turn, from the ratio of each round. It is given where one way is
 * better, and three rounds or more lie all on the same side of 1 with a median that is 3 % or more from it.
 */
export function verdictOfPairs(better: Better | undefined, ratios: readonly number[]): Verdict {
  const isCertain =
    ratios.length >= LEAST_ROUNDS &&
    (ratios.every((ratio) => ratio > 1) || ratios.every((ratio) => ratio < 1)) &&
    distance(median(ratios)) >= LEAST_CHANGE_OF_PAIRS;
  return isCertain ? verdict(better, median(ratios)) : '-';
}

function verdict(better: Better | undefined, ratio: number): Verdict {
  if (better === undefined) return '-';
  return ratio > 1 === (better === 'more') ? 'faster' : 'slower';
}

/** How far a ratio is from 1, the same for a half and the double; none of a ratio that is no number. */
function distance(ratio: number): number {
  return Number.isFinite(ratio) && ratio > 0 ? Math.max(ratio, 1 / ratio) - 1 : 0;
}
