import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import type { Machine } from './machine.js';
import { isAskedFor, type Options } from './options.js';
import { comparisonTable } from './report/comparison.js';
import { disturbance } from './report/numbers.js';
import { disturbed, RESULTS_FORMAT, type Results } from './results.js';
import { type Change, isAnySlower, isBeyondNoise, judged, type Value, valuesOf } from './verdict.js';

const numbers = z.array(z.number()).min(1);
const role = z.enum(['ours', 'baseline', 'other']);
const named = { id: z.string(), label: z.string(), unit: z.string(), rounds: numbers };
const axis = z.object({ label: z.string(), unit: z.string() });

/** The part of a file of results that a comparison reads. */
const resultsSchema = z.object({
  startedAt: z.string(),
  quick: z.boolean(),
  only: z.array(z.string()).optional(),
  machine: z.object({
    processor: z.string(),
    cores: z.number(),
    node: z.string(),
    shaInstructions: z.boolean().optional(),
  }),
  conditions: z.array(z.object({ name: z.string(), foreignLoad: z.number() })),
  sections: z.array(
    z.object({
      id: z.string(),
      figures: z.array(z.object({ ...named, role, median: z.number() })),
      comparisons: z.array(
        z.object({
          ...named,
          baseline: z.string(),
          value: z.number(),
          better: z.enum(['more', 'less']).optional(),
        }),
      ),
      curves: z
        .array(
          z.object({
            id: z.string(),
            title: z.string(),
            x: axis,
            y: axis,
            lines: z.array(
              z.object({
                label: z.string(),
                role,
                points: z.array(z.object({ x: z.number(), rounds: numbers, median: z.number() })),
              }),
            ),
          }),
        )
        .optional(),
    }),
  ),
  wrong: z.array(z.string()),
});

/** @throws Error with a message for people, where the file is not the results of a run that was right */
export async function readEarlierRun(file: string): Promise<Results> {
  const text = await readFile(file, 'utf8').catch((error: Error) => {
    throw new Error(`${file} cannot be read: ${error.message}`);
  });
  const value = parsed(file, text);
  const format = (value as { readonly format?: unknown } | null)?.format;
  if (format !== RESULTS_FORMAT) {
    const found = format === undefined ? 'has no format' : `is of format ${JSON.stringify(format)}`;
    throw new Error(`${file} ${found}, where format ${RESULTS_FORMAT} is read: measure that build again`);
  }
  const { success, error } = resultsSchema.safeParse(value);
  if (!success) {
    const { path, message } = error.issues[0]!;
    throw new Error(`${file} is no whole results.json: ${path.join('.')}: ${message}`);
  }
  const results = value as Results;
  if (results.wrong.length > 0)
    throw new Error(`${file} has wrong answers, so that its figures are worth nothing: ${results.wrong[0]}`);
  return results;
}

function parsed(file: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`${file} is not JSON: ${(error as Error).message}`);
  }
}

/**
 * Returns the measurements to run for a comparison with an earlier run. They are those that are named, or else
 * those of this build that the earlier run was asked for.
 * @param names of all measurements
 * @throws Error with a message for people, where the two could not be compared
 */
export function askedAgain(
  earlier: Results,
  { quick, only, compare }: Options,
  names: readonly string[],
): Options['only'] {
  const file = compare!.path;
  if (earlier.quick !== quick)
    throw new Error(
      `${file} is of a ${earlier.quick ? 'quick' : 'full'} run: ${quick ? 'leave --quick out' : 'add --quick'}`,
    );
  const has = earlier.conditions.map(({ name }) => name);
  const lacking = only?.find((name) => !has.includes(name));
  if (lacking !== undefined)
    throw new Error(`${file} has no measurement ${lacking}; it has ${has.join(', ')}`);
  const again = only ?? earlier.only?.filter((name) => names.includes(name));
  if (!names.some((name) => has.includes(name) && isAskedFor(name, again)))
    throw new Error(`${file} has none of the measurements of this build; it has ${has.join(', ')}`);
  return again;
}

/** Words of a comparison, and whether anything is slower beyond the noise. */
export interface Outcome {
  readonly text: string;
  readonly slower: boolean;
}

/** Holds a run against an earlier one; what one of the two alone has is named. */
export function heldAgainst(earlier: Results, now: Results, colours: boolean): Outcome {
  const isSame = sameMachine(earlier.machine, now.machine);
  const before = new Map(earlier.sections.flatMap(valuesOf).map((value) => [keyOf(value), value]));
  const changes = now.sections.flatMap(valuesOf).flatMap((value): readonly Change[] => {
    const was = before.get(keyOf(value));
    if (was === undefined) return [];
    const ratio = value.value / was.value;
    return [{ ...value, before: was, now: value, ratio, isBeyondNoise: isBeyondNoise(was, value, isSame) }];
  });
  const compared = judged(changes);
  const lines = [
    `Held against the run of ${earlier.startedAt.slice(0, 16).replace('T', ' ')} UTC`,
    comparisonTable(compared, ['then', 'now'], colours),
    ...(isSame
      ? []
      : [
          `Then it was another machine (${machineText(earlier.machine)}): ratios and counts alone have a verdict.`,
        ]),
    ...leftOut(earlier, now),
    ...(disturbed(earlier).length === 0 ? [] : [`Then: ${disturbance(disturbed(earlier))}`]),
  ];
  return { text: lines.join('\n'), slower: isAnySlower(compared) };
}

/** Returns true if processor, cores, SHA instructions and Node are the same, so that speeds can be compared. */
function sameMachine(one: Machine, other: Machine): boolean {
  return (['processor', 'cores', 'node', 'shaInstructions'] as const).every(
    (member) => one[member] === other[member],
  );
}

function machineText({ processor, cores, node, shaInstructions }: Machine): string {
  const sha = shaInstructions === undefined ? 'perhaps with' : shaInstructions ? 'with' : 'without';
  return `${processor}, ${cores} cores, ${sha} SHA instructions, Node ${node}`;
}

/** Returns the key of a figure. Its unit is part of it, since figures of another unit are other figures. */
function keyOf({ id, unit }: Value): string {
  return `${id} (${unit})`;
}

/**
 * Returns a line that names the measurements of this run that the earlier one lacks. Of the measurements that
 * both have, it names the values that one alone has.
 */
function leftOut(earlier: Results, now: Results): readonly string[] {
  const sharedKeys = (one: Results, other: Results): readonly string[] =>
    one.sections
      .filter(({ id }) => other.sections.some((section) => section.id === id))
      .flatMap((section) => valuesOf(section).map(keyOf));
  const [before, after] = [sharedKeys(earlier, now), sharedKeys(now, earlier)];
  const names = [
    ...now.sections
      .map(({ id }) => id)
      .filter((id) => !earlier.sections.some((section) => section.id === id)),
    ...before.filter((key) => !after.includes(key)),
    ...after.filter((key) => !before.includes(key)),
  ];
  return names.length === 0 ? [] : [`Not compared, as one of the runs alone has it: ${names.join('; ')}`];
}
