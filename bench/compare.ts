import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Options } from './options.js';
import type { Results } from './results.js';
import { median } from './statistics.js';

const THIS = fileURLToPath(new URL('../../', import.meta.url));

/** A figure or comparison of both builds, by rounds. */
interface Pair {
  readonly label: string;
  readonly unit: string;
  readonly other: number[];
  readonly ours: number[];
}

/**
 * Runs this build's measurements and those of another checkout in turn, in an order that changes with each
 * round, and prints medians and the median of the ratios within a round. The machine's moods of minutes are
 * in both sides of a ratio.
 * @param other folder of the other checkout, built
 * @returns whether every run of both was right in what it answered
 */
export async function compare(other: string, options: Options, args: readonly string[]): Promise<boolean> {
  const pairs = new Map<string, Pair>();
  let right = true;
  for (let round = 0; round < options.pairs; round += 1) {
    const sides = [
      ['other', resolve(other)],
      ['ours', THIS],
    ] as const;
    for (const [side, directory] of round % 2 === 0 ? sides : sides.toReversed()) {
      process.stderr.write(`round ${round + 1} of ${options.pairs}: ${directory}\n`);
      const results = await measured(directory, args);
      right &&= results.wrong.length === 0;
      for (const { id, label, unit, value } of valuesOf(results)) {
        const pair = pairs.get(id) ?? { label, unit, other: [], ours: [] };
        pairs.set(id, pair);
        pair[side].push(value);
      }
    }
  }
  process.stdout.write(`${comparedReport(pairs)}\n`);
  return right;
}

async function measured(directory: string, args: readonly string[]): Promise<Results> {
  const main = join(directory, 'dist/bench/main.js');
  const out = await mkdtemp(join(tmpdir(), 'takemark-compare-'));
  try {
    const child = spawn(process.execPath, [main, ...args, '--out', out], {
      cwd: directory,
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    await once(child, 'exit');
    return JSON.parse(await readFile(join(out, 'results.json'), 'utf8')) as Results;
  } finally {
    await rm(out, { recursive: true, force: true });
  }
}

function valuesOf({ sections }: Results) {
  return sections.flatMap(({ figures, comparisons }) => [
    ...figures.map(({ id, label, unit, median: value }) => ({ id: `figure ${id}`, label, unit, value })),
    ...comparisons.map(({ id, label, baseline, unit, value }) => ({
      id: `comparison ${id}`,
      label: `${label} : ${baseline}`,
      unit,
      value,
    })),
  ]);
}

/** Lines of a table: other build, this build, ratio. Values that one build alone has are left out. */
export function comparedReport(pairs: ReadonlyMap<string, Pair>): string {
  const lines = [...pairs.values()]
    .filter(({ other, ours }) => other.length > 0 && other.length === ours.length)
    .map(({ label, unit, other, ours }) => {
      const ratios = ours.map((value, round) => value / other[round]!);
      return [
        label,
        unit,
        short(median(other)),
        short(median(ours)),
        `${median(ratios).toFixed(3)}x`,
      ] as const;
    });
  const rows = [['', 'unit', 'other', 'this', 'this : other'], ...lines];
  const widths = [0, 1, 2, 3, 4].map((column) => Math.max(...rows.map((row) => row[column]!.length)));
  return rows
    .map((row) =>
      row.map((cell, at) => (at < 2 ? cell.padEnd(widths[at]!) : cell.padStart(widths[at]!))).join('  '),
    )
    .join('\n');
}

function short(value: number): string {
  return Number.isInteger(value) ? String(value) : value.toPrecision(4);
}
