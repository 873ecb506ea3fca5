import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { defined } from '../src/core/domain/defined.js';
import type { Outcome } from './earlier-run.js';
import { comparisonTable } from './report/comparison.js';
import type { Results } from './results.js';
import { median } from './statistics.js';
import { areBeyondNoise, isAnySlower, type Judged, judged, type Value, valuesOf } from './verdict.js';

const THIS = fileURLToPath(new URL('../../', import.meta.url));

/** A value of both builds, by rounds. */
export interface Pair extends Pick<Value, 'label' | 'unit' | 'better' | 'group' | 'isBaseline'> {
  readonly other: number[];
  readonly ours: number[];
}

/**
 * Runs this build's measurements and those of another checkout in turn, in an order that changes with each
 * round, and compares the medians by the ratios within a round. The machine's moods of minutes are in both
 * sides of a ratio.
 * @param other folder of the other checkout, built
 * @param runs the rounds, the arguments of each run, and whether this build's bench measures both services
 * @returns also whether every run of both was right in what it answered
 */
export async function compare(
  other: string,
  {
    rounds,
    args,
    services,
  }: { readonly rounds: number; readonly args: readonly string[]; readonly services: boolean },
  colours: boolean,
): Promise<Outcome & { readonly right: boolean }> {
  const pairs = new Map<string, Pair>();
  let right = true;
  for (let round = 0; round < rounds; round += 1) {
    const sides = [
      ['other', resolve(other)],
      ['ours', THIS],
    ] as const;
    for (const [side, directory] of round % 2 === 0 ? sides : sides.toReversed()) {
      process.stderr.write(`round ${round + 1} of ${rounds}: ${directory}\n`);
      const results = services
        ? await measured(THIS, [...args, '--service', directory])
        : await measured(directory, args);
      right &&= results.wrong.length === 0;
      for (const { id, value, label, unit, better, group, isBaseline } of results.sections.flatMap(
        valuesOf,
      )) {
        const { other = [], ours = [] } = pairs.get(id) ?? {};
        const pair = { label, unit, ...defined({ better, group }), isBaseline, other, ours };
        // Which way is better is this build's word: an older one may not know.
        if (side === 'ours' || !pairs.has(id)) pairs.set(id, pair);
        pair[side].push(value);
      }
    }
  }
  const compared = comparedPairs([...pairs.values()]);
  return {
    text: comparisonTable(compared, ['other', 'this'], colours),
    slower: isAnySlower(compared),
    right,
  };
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
    const text = await readFile(join(out, 'results.json'), 'utf8').catch(() => {
      throw new Error(`the bench of ${directory} ended without results`);
    });
    return JSON.parse(text) as Results;
  } finally {
    await rm(out, { recursive: true, force: true });
  }
}

/** Returns the verdict on each value that both builds have in the same number of rounds. */
export function comparedPairs(pairs: readonly Pair[]): readonly Judged[] {
  const changes = pairs
    .filter(({ other, ours }) => other.length > 0 && other.length === ours.length)
    .map(({ other, ours, ...facts }) => {
      const ratios = ours.map((value, round) => value / other[round]!);
      return {
        ...facts,
        before: { value: median(other), rounds: other },
        now: { value: median(ours), rounds: ours },
        ratio: median(ratios),
        isBeyondNoise: areBeyondNoise(ratios),
      };
    });
  return judged(changes);
}
