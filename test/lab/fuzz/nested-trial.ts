/** Fuzzes the nested reader once, in a process of its test, and prints the result as JSON. */
import { randomNumbers } from '../../core/core-under-test.js';
import { BlockCoverage } from './coverage.js';
import { fuzz, minimise, type Target } from './guided.js';
import { readNested } from './nested-reader.js';

export interface Trial {
  readonly inputs: number;
  readonly depth: number;
  readonly kept: number;
  readonly minimisedDepth: number;
  readonly fault: string | null;
}

const INPUTS = 400_000;
const kind = process.argv[2];
let depth = 0;
const target: Target = {
  name: 'nested',
  seeds: [Buffer.alloc(12)],
  maxBytes: 32,
  run: (input) => {
    depth = Math.max(depth, readNested(input));
    if (kind === 'failing' && depth >= 2) throw new Error('two deep');
  },
};
const coverage = new BlockCoverage([kind === 'uncounted' ? 'no such file' : 'nested-reader']);
const { inputs, corpus, fault } = await fuzz(target, {
  coverage,
  guided: kind !== 'blind',
  random: randomNumbers(7),
  enough: (done) => done >= INPUTS || depth === 5,
});
const kept = fault === undefined ? await minimise(target, corpus, coverage) : [];
const trial: Trial = {
  inputs,
  depth,
  kept: corpus.length,
  minimisedDepth: Math.max(0, ...kept.map(readNested)),
  fault: fault === undefined ? null : (fault.error as Error).message,
};
console.log(JSON.stringify(trial));
