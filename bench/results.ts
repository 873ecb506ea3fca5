import { defined } from '../src/core/domain/defined.js';
import { CORE_FINGERPRINT } from '../src/core/engine/core-fingerprint.js';
import { barOf, meets } from './bars.js';
import { describeMachine, type Machine } from './machine.js';
import type { Comparison, Section } from './measure.js';
import type { Options } from './options.js';

/** Shape of results.json; a change that a comparison with an earlier run would misread gives it another number. */
export const RESULTS_FORMAT = 1;

/** All of one run, as results.json has it. */
export interface Results {
  readonly format: typeof RESULTS_FORMAT;
  readonly startedAt: string;
  readonly seconds: number;
  readonly quick: boolean;
  /** Measurements that were asked for; absent: those that run by default. */
  readonly only?: readonly string[];
  readonly machine: Machine;
  readonly versions: Readonly<Record<string, string>>;
  /** SHA-256 of dist/core.wasm. */
  readonly coreFingerprint: string;
  /**
   * Seconds that each measurement took, and the larger share of the processors that others took right before
   * and right after it.
   */
  readonly conditions: readonly Condition[];
  readonly bars: { readonly met: number; readonly of: number };
  readonly sections: readonly Section[];
  /** Answers that were not what they must be; a speed is worth nothing while there is one. */
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

/** From this share on, figures say as much of the neighbours as of the service. */
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
