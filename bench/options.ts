import { existsSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';

const MIB = 1024 * 1024;

/** The amount of work that is measured. All sizes are in bytes. */
export interface Scale {
  readonly rounds: number;
  /** The number of slabs that one run of a hash takes. */
  readonly hashSlabs: number;
  readonly parses: number;
  readonly uploadBytes: number;
  /** The number of uploads one after the other on each connection, by the number of connections. */
  readonly uploadsEach: { readonly 1: number; readonly 4: number; readonly 16: number };
  readonly memoryRounds: number;
  readonly memoryBytes: { readonly small: number; readonly large: number };
  readonly verifyCalls: number;
  readonly verifyRounds: number;
  /** The number of proofs in a round. Each is verified once. */
  readonly verifyProofs: number;
  /** The number of flows in a round for each size of file. */
  readonly flows: number;
  readonly charges: number;
  readonly traceEvents: number;
  readonly curveRounds: number;
  /** The bytes that a point of a curve sends, if its files are not larger. */
  readonly curveBytes: number;
  readonly uploadsAtOnce: readonly number[];
  /** The numbers of connections that verify beyond what a core can serve, the smallest first. */
  readonly overloadConnections: readonly number[];
  readonly overloadMs: number;
  readonly uploadMebibytes: readonly number[];
  /** The numbers of proofs of the registries, the smallest first. */
  readonly registries: readonly number[];
  /** The number of calls of verify in a round that measures the cost as something grows. */
  readonly scaledVerifyCalls: number;
}

const FULL: Scale = {
  rounds: 5,
  hashSlabs: 192,
  parses: 300,
  uploadBytes: 50 * MIB,
  uploadsEach: { 1: 8, 4: 6, 16: 2 },
  memoryRounds: 3,
  memoryBytes: { small: 16 * MIB, large: 64 * MIB },
  verifyCalls: 4000,
  verifyRounds: 5,
  verifyProofs: 1000,
  flows: 600,
  charges: 30_000,
  traceEvents: 2_000_000,
  curveRounds: 3,
  curveBytes: 512 * MIB,
  uploadsAtOnce: [1, 2, 4, 8, 16, 32, 64, 128, 256],
  overloadConnections: [16, 32, 64, 128, 256, 512, 1000],
  overloadMs: 10_000,
  uploadMebibytes: [0.1, 1, 8, 32, 65],
  registries: [10_000, 1_000_000, 10_000_000],
  scaledVerifyCalls: 2000,
};

const QUICK: Scale = {
  rounds: 3,
  hashSlabs: 72,
  parses: 100,
  uploadBytes: 20 * MIB,
  uploadsEach: { 1: 4, 4: 4, 16: 1 },
  memoryRounds: 1,
  memoryBytes: { small: 8 * MIB, large: 32 * MIB },
  verifyCalls: 1200,
  verifyRounds: 3,
  verifyProofs: 300,
  flows: 150,
  charges: 6000,
  traceEvents: 400_000,
  curveRounds: 2,
  curveBytes: 256 * MIB,
  uploadsAtOnce: [1, 16, 64, 256],
  overloadConnections: [32, 64, 128, 1000],
  overloadMs: 4000,
  uploadMebibytes: [0.1, 8, 65],
  registries: [1000, 10_000, 100_000],
  scaledVerifyCalls: 800,
};

export interface Options {
  readonly scale: Scale;
  readonly quick: boolean;
  /** The measurements that were asked for. Undefined for those that run by default. */
  readonly only: readonly string[] | undefined;
  /** The most proofs of a registry. `registries` of the scale has no larger ones. Undefined for all registries. */
  readonly largest: string | undefined;
  readonly out: string;
  readonly profile: boolean;
  /**
   * Another built checkout, whose bench runs in turn with this one's, or results.json of an earlier run.
   * Undefined for this build alone.
   */
  readonly compare: { readonly kind: 'checkout' | 'results'; readonly path: string } | undefined;
  /** The number of rounds of a comparison with a checkout. Each round has one run of either build. */
  readonly pairs: number;
  /** True if this bench measures the services of both checkouts, so that an earlier one has all figures. */
  readonly services: boolean;
  /** The main module of the service of another built checkout, which this bench measures. */
  readonly serviceMain: URL | undefined;
  /** True if slower figures are printed but do not fail the comparison. */
  readonly advisory: boolean;
}

/** The beginning of the names of measurements that take minutes and therefore run only when asked for. */
const SCALE = 'scale-';

export const USAGE = `npm run bench -- [options]
  --quick         fewer rounds and smaller files: under two minutes
  --only <name>   run this measurement only; may be repeated
  --scale         run the measurements of how the cost grows, ${SCALE}..., which do not run by default
  --largest <n>   omit larger registries from scale-registry
  --out <dir>     directory of results.json and report.html (default: bench/results)
  --profile       write CPU profiles of the service beside the results
  --compare <of>  compare the figures with another build's; exit code 1 if one is slower by more than the noise
                  <of> is a directory: a built checkout, which is measured in turn with this one
                  <of> is a file: results.json of an earlier run; without --only, the measurements of that run
  --pairs <n>     number of rounds when a checkout is compared (default: 3)
  --services      this bench measures the services of both checkouts; by default each bench measures its own
  --service <dir> measure the service of another built checkout with this bench
  --advisory      print slower figures, but do not fail`;

/** @throws Error with a message for people */
export function readOptions(args: readonly string[], names: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      quick: { type: 'boolean', default: false },
      only: { type: 'string', multiple: true },
      scale: { type: 'boolean', default: false },
      largest: { type: 'string' },
      out: { type: 'string', default: 'bench/results' },
      profile: { type: 'boolean', default: false },
      compare: { type: 'string' },
      pairs: { type: 'string', default: '3' },
      services: { type: 'boolean', default: false },
      service: { type: 'string' },
      advisory: { type: 'boolean', default: false },
    },
  });
  const pairs = Number(values.pairs);
  if (!Number.isInteger(pairs) || pairs < 1 || pairs > 100) throw new Error('--pairs takes 1 to 100');
  const only = [
    ...(values.only ?? []),
    ...(values.scale ? names.filter((name) => name.startsWith(SCALE)) : []),
  ];
  const unknown = only.find((name) => !names.includes(name));
  if (unknown !== undefined)
    throw new Error(`there is no measurement ${unknown}; there are ${names.join(', ')}`);
  const scale = values.quick ? QUICK : FULL;
  const registries = scale.registries.filter(
    (proofs) => values.largest === undefined || proofs <= Number(values.largest),
  );
  if (registries.length === 0) throw new Error(`--largest takes ${scale.registries[0]!} or more`);
  return {
    scale: { ...scale, registries },
    quick: values.quick,
    only: only.length === 0 ? undefined : only,
    largest: values.largest,
    out: values.out,
    profile: values.profile,
    compare: values.compare === undefined ? undefined : comparedWith(values.compare),
    pairs,
    services: values.services,
    serviceMain: values.service === undefined ? undefined : serviceMain(values.service),
    advisory: values.advisory,
  };
}

function comparedWith(path: string): NonNullable<Options['compare']> {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined) throw new Error(`--compare: there is no ${path}`);
  if (!found.isDirectory()) return { kind: 'results', path };
  if (!existsSync(join(path, 'dist/bench/main.js')))
    throw new Error(`there is no bench in ${path}: build that checkout first`);
  return { kind: 'checkout', path };
}

/** Returns the main module of a checkout's service. Earlier checkouts have it one folder higher. */
function serviceMain(path: string): URL {
  const main = ['service/main.js', 'main.js']
    .map((name) => join(resolve(path), 'dist/src', name))
    .find((file) => existsSync(file));
  if (main === undefined) throw new Error(`${path} has no built service: build that checkout first`);
  return pathToFileURL(main);
}

export function isAskedFor(name: string, only: Options['only']): boolean {
  return only?.includes(name) ?? !name.startsWith(SCALE);
}
