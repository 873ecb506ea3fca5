import { defined } from '../src/core/domain/defined.js';
import type { Bar } from './bars.js';
import type { Scale } from './options.js';
import { median } from './statistics.js';
import { type Better, betterOf } from './units.js';

/** A quantity, measured once in each round. */
export interface Figure {
  readonly id: string;
  readonly label: string;
  readonly unit: string;
  readonly role: 'ours' | 'baseline' | 'other';
  readonly rounds: readonly number[];
  readonly median: number;
}

/** A figure beside its baseline, or a value by itself that may have a bar. */
export interface Comparison {
  readonly id: string;
  readonly label: string;
  /** The name of the baseline, or of what the value counts. */
  readonly baseline: string;
  /** The unit of `value`. It is `x` for a ratio. */
  readonly unit: string;
  readonly rounds: readonly number[];
  readonly value: number;
  /** The medians of the two figures of the ratio. */
  readonly sides?: { readonly unit: string; readonly ours: number; readonly baseline: number };
  /** The better direction. Absent if there is none: of two figures of ours, either may have changed. */
  readonly better?: Better;
  /** The bar of the run. It and the outcome `met` are added once the run is over. */
  readonly bar?: Bar;
  readonly met?: boolean;
}

export interface Section {
  readonly id: string;
  readonly title: string;
  /** The method of the measurement, in full sentences. */
  readonly method: string;
  readonly figures: readonly Figure[];
  readonly comparisons: readonly Comparison[];
  readonly curves?: readonly Curve[];
  readonly notes: readonly string[];
}

/** The cost as work grows, as lines over a logarithmic x axis. */
export interface Curve {
  readonly id: string;
  readonly title: string;
  readonly x: { readonly label: string; readonly unit: string };
  readonly y: { readonly label: string; readonly unit: string };
  readonly lines: readonly CurveLine[];
}

/** A line of a curve, with the rounds of each x and their median. */
export interface CurveLine {
  readonly label: string;
  readonly role: Figure['role'];
  readonly points: readonly {
    readonly x: number;
    readonly rounds: readonly number[];
    readonly median: number;
  }[];
}

/** The things that a measurement gets from the run that it is part of. */
export interface Run {
  readonly scale: Scale;
  /** The directory for data. It is on the disk of the results, so a sync here is a sync to a real disk. */
  readonly dataDir: string;
  /** The directory for CPU profiles of the service. Undefined if none are taken. */
  readonly profileDir: string | undefined;
  /** The main module of the service that is measured. Undefined for that of this build. */
  readonly serviceMain: URL | undefined;
  /** Shows what is being measured. */
  progress(text: string): void;
  /** Records an answer that was not what it must be. The run goes on, and ends with a failure. */
  wrong(what: string): void;
}

export interface Measure {
  readonly name: string;
  run(run: Run): Promise<Section>;
}

export function figure(
  id: string,
  label: string,
  unit: string,
  role: Figure['role'],
  rounds: readonly number[],
): Figure {
  return { id, label, unit, role, rounds, median: median(rounds) };
}

/** Returns a line of a curve from the rounds of each point. */
export function curveLine(
  label: string,
  role: Figure['role'],
  points: readonly { readonly x: number; readonly rounds: readonly number[] }[],
): CurveLine {
  return { label, role, points: points.map(({ x, rounds }) => ({ x, rounds, median: median(rounds) })) };
}

/** Divides `ours` by `theirs` in each round, so that the machine's moods that both saw cancel out. */
export function ratio(
  id: string,
  label: string,
  baseline: string,
  unit: string,
  ours: readonly number[],
  theirs: readonly number[],
): Comparison {
  return {
    ...proportion(id, label, baseline, unit, ours, theirs),
    ...defined({ better: betterOf(unit) }),
  };
}

/** Returns the ratio of two figures of ours. Both may change, so neither more nor less of it is better. */
export function proportion(
  id: string,
  label: string,
  baseline: string,
  unit: string,
  ours: readonly number[],
  theirs: readonly number[],
): Comparison {
  const rounds = ours.map((value, round) => value / theirs[round]!);
  return {
    id,
    label,
    baseline,
    unit: 'x',
    rounds,
    value: median(rounds),
    sides: { unit, ours: median(ours), baseline: median(theirs) },
  };
}

/** Returns how many times faster `ours` is than `theirs`, where both are times. */
export function speedup(
  id: string,
  label: string,
  baseline: string,
  unit: string,
  ours: readonly number[],
  theirs: readonly number[],
): Comparison {
  const rounds = ours.map((value, round) => theirs[round]! / value);
  return {
    ...proportion(id, label, baseline, unit, ours, theirs),
    rounds,
    value: median(rounds),
    better: 'more',
  };
}

/** Returns a comparison whose value in each round is not a ratio. */
export function held(
  id: string,
  label: string,
  baseline: string,
  unit: string,
  rounds: readonly number[],
): Comparison {
  return {
    id,
    label,
    baseline,
    unit,
    rounds,
    value: median(rounds),
    ...defined({ better: betterOf(unit) }),
  };
}

export interface Contender<Result> {
  readonly name: string;
  readonly once: () => Promise<Result>;
}

/** Warms up each contender, then runs rounds of A B A B, so that neighbours in time are compared. */
export async function interleave<Result>(
  run: Run,
  title: string,
  rounds: number,
  contenders: readonly Contender<Result>[],
): Promise<ReadonlyMap<string, readonly Result[]>> {
  const results = new Map<string, Result[]>(contenders.map(({ name }) => [name, []]));
  for (let round = 0; round <= rounds; round += 1) {
    for (const { name, once } of contenders) {
      run.progress(`${title}: ${name}, ${round === 0 ? 'warm-up' : `round ${round} of ${rounds}`}`);
      const result = await once();
      if (round > 0) results.get(name)!.push(result);
    }
  }
  return results;
}
