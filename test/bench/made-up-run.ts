import type { Section } from '../../bench/measure.js';
import { readOptions } from '../../bench/options.js';
import { gatherResults, type Results } from '../../bench/results.js';

/** Measurements of the build under test. */
export const NAMES = ['hash', 'upload', 'scale-uploads'];

export interface MadeUp {
  readonly args?: readonly string[];
  readonly sections?: readonly Section[];
  readonly machine?: Partial<Results['machine']>;
  readonly wrong?: readonly string[];
}

/** Returns the results of an invented run, as they are read from a file. */
export function madeUpRun({ args = [], sections = [], machine, wrong = [] }: MadeUp): Results {
  const results = gatherResults({
    startedAt: new Date('2026-01-01T00:00:00Z'),
    options: readOptions(args, NAMES),
    versions: {},
    sections,
    conditions: sections.map(({ id }) => ({ name: id, seconds: 1, foreignLoad: 0 })),
    wrong,
  });
  return JSON.parse(JSON.stringify({ ...results, machine: { ...results.machine, ...machine } })) as Results;
}

export function madeUpSection(id: string, parts: Partial<Section>): Section {
  return { id, title: id, method: '', figures: [], comparisons: [], notes: [], ...parts };
}
