import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

const MIB = 1024 * 1024;

/** How much is measured. All sizes in bytes. */
export interface Scale {
  readonly rounds: number;
  /** Slabs of 1 MiB that one run of a hash takes. */
  readonly hashSlabs: number;
  readonly parses: number;
  readonly uploadBytes: number;
  /** Uploads one after the other on each connection, by connections. */
  readonly uploadsEach: { readonly 1: number; readonly 4: number; readonly 16: number };
  readonly memoryRounds: number;
  readonly memoryBytes: { readonly small: number; readonly large: number };
  readonly verifyCalls: number;
  readonly verifyRounds: number;
  readonly charges: number;
  readonly traceEvents: number;
}

const FULL: Scale = {
  rounds: 5,
  hashSlabs: 96,
  parses: 300,
  uploadBytes: 50 * MIB,
  uploadsEach: { 1: 8, 4: 6, 16: 2 },
  memoryRounds: 3,
  memoryBytes: { small: 16 * MIB, large: 64 * MIB },
  verifyCalls: 4000,
  verifyRounds: 5,
  charges: 30_000,
  traceEvents: 2_000_000,
};

const QUICK: Scale = {
  rounds: 3,
  hashSlabs: 36,
  parses: 100,
  uploadBytes: 20 * MIB,
  uploadsEach: { 1: 4, 4: 4, 16: 1 },
  memoryRounds: 1,
  memoryBytes: { small: 8 * MIB, large: 32 * MIB },
  verifyCalls: 1200,
  verifyRounds: 3,
  charges: 6000,
  traceEvents: 400_000,
};

export interface Options {
  readonly scale: Scale;
  readonly quick: boolean;
  /** Undefined: all. */
  readonly only: readonly string[] | undefined;
  readonly out: string;
  readonly profile: boolean;
  /**
   * Folder of another built checkout, whose bench runs in turn with this one's; undefined: this one alone.
   */
  readonly compare: string | undefined;
  /** Rounds of a comparison, each with one run of either build. */
  readonly pairs: number;
}

export const USAGE = `npm run bench -- [options]
  --quick         fewer rounds and smaller files: under two minutes
  --only <name>   one measurement; may be given several times
  --out <dir>     where results.json and report.html go (bench/results)
  --profile       CPU profiles of the service, beside the results
  --compare <dir> run in turn with the bench of another checkout, and print the ratios
  --pairs <n>     rounds of a comparison (3)`;

/** @throws Error with a message for people */
export function readOptions(args: readonly string[], names: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      quick: { type: 'boolean', default: false },
      only: { type: 'string', multiple: true },
      out: { type: 'string', default: 'bench/results' },
      profile: { type: 'boolean', default: false },
      compare: { type: 'string' },
      pairs: { type: 'string', default: '3' },
    },
  });
  const pairs = Number(values.pairs);
  if (!Number.isInteger(pairs) || pairs < 1 || pairs > 100) throw new Error('--pairs takes 1 to 100');
  if (values.compare !== undefined && !existsSync(join(values.compare, 'dist/bench/main.js')))
    throw new Error(`there is no bench in ${values.compare}: build that checkout first`);
  const unknown = values.only?.find((name) => !names.includes(name));
  if (unknown !== undefined)
    throw new Error(`there is no measurement ${unknown}; there are ${names.join(', ')}`);
  return {
    scale: values.quick ? QUICK : FULL,
    quick: values.quick,
    only: values.only,
    out: values.out,
    profile: values.profile,
    compare: values.compare,
    pairs,
  };
}
