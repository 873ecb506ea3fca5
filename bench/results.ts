import { defined } from '../src/core/domain/defined.js';
import { CORE_FINGERPRINT } from '../src/core/engine/core-fingerprint.js';
import { barOf, meets } from './bars.js';
import { describeMachine, type Machine } from './machine.js';
import type { Comparison, Section } from './measure.js';
import type { Options } from './options.js';

/** The format number of results.json. It changes if a comparison with an earlier run would misread the file. */
export const RESULTS_FORMAT = 1;

/** The results of one run, as in results.json. */
export interface Results {
  readonly format: typeof RESULTS_FORMAT;
  readonly startedAt: string;
  readonly seconds: number;
  readonly quick: boolean;
  /** The measurements that were asked for. Absent for those that run by default. */
  readonly only?: readonly string[];
  readonly machine: Machine;
  readonly versions: Readonly<Record<string, string>>;
  /** The SHA-256 of dist/core.wasm. */
  readonly coreFingerprint: string;
  /**
   * The seconds of each measurement, and the share of the processors that others took. It is the larger of the
   * shares right before and right after the measurement.
   */
  readonly conditions: readonly Condition[];
  readonly bars: { readonly met: number; readonly of: number };
  readonly sections: readonly Section[];
  /** The answers that were not what they must be. While there is one, speeds mean nothing. */
  readonly wrong: readonly string[];
}

export interface Condition {
  readonly name: string;
  readonly seconds: number;
  readonly foreignLoad: number;
}

export interface ResultParts {
  readonly startedAt: Date;
  readonly options: Options;
  readonly versions: Readonly<Record<string, string>>;
  readonly sections: readonly Section[];
  readonly conditions: readonly Condition[];
  readonly wrong: readonly string[];
}

/** The share of the processors from which on others disturb the figures. */
const DISTURBED = 0.1;

/** Returns the measurements around which the machine was not at rest. */
export function disturbed({ conditions }: Results): readonly Condition[] {
  return conditions.filter(({ foreignLoad }) => foreignLoad >= DISTURBED);
}

export function gatherResults({
  startedAt,
  options,
  versions,
  sections,
  conditions,
  wrong,
}: ResultParts): Results {
  const judged = sections.map((section) => withBars(section, options.quick));
  const held = barred(judged);
  return {
    format: RESULTS_FORMAT,
    startedAt: startedAt.toISOString(),
    seconds: Math.round((Date.now() - startedAt.getTime()) / 1000),
    quick: options.quick,
    ...defined({ only: options.only }),
    machine: describeMachine(),
    versions,
    coreFingerprint: CORE_FINGERPRINT,
    conditions,
    bars: { met: held.filter(({ met }) => met).length, of: held.length },
    sections: judged,
    wrong,
  };
}

/** Returns the section with the bar of each comparison that has one in a run of that kind. */
function withBars(section: Section, quick: boolean): Section {
  const comparisons = section.comparisons.map((comparison) => {
    const bar = barOf(comparison.id, quick);
    return bar === undefined ? comparison : { ...comparison, bar, met: meets(bar, comparison.value) };
  });
  return { ...section, comparisons };
}

/** Returns the comparisons that have a bar. */
export function barred(
  sections: readonly Section[],
): readonly (Comparison & { readonly bar: NonNullable<Comparison['bar']> })[] {
  return sections.flatMap(({ comparisons }) =>
    comparisons.flatMap((comparison) =>
      comparison.bar === undefined ? [] : [{ ...comparison, bar: comparison.bar }],
    ),
  );
}
