import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { store } from './adapters/embedded/charge.js';
import { digests } from './adapters/embedded/digests.js';
import { compare } from './compare.js';
import { askedAgain, heldAgainst, type Outcome, readEarlierRun } from './earlier-run.js';
import { hash } from './engine/hash.js';
import { parse } from './engine/parse.js';
import { samples } from './engine/samples.js';
import { evidence } from './evidence/evidence.js';
import { flow } from './http/flow.js';
import { ingest } from './http/ingest.js';
import { memory } from './http/memory.js';
import { oneCall } from './http/one-call.js';
import { scaleOverload } from './http/scale-overload.js';
import { scaleUploads } from './http/scale-uploads.js';
import { upload } from './http/upload.js';
import { verify } from './http/verify.js';
import { foreignLoad } from './machine.js';
import type { Measure, Run, Section } from './measure.js';
import { isAskedFor, type Options, readOptions, USAGE } from './options.js';
import { htmlReport } from './report/html.js';
import { terminalReport } from './report/terminal.js';
import { type Condition, gatherResults, type Results } from './results.js';
import { scaleProcesses } from './scale/processes.js';
import { scaleRegistry } from './scale/registry.js';

const MEASURES: readonly Measure[] = [
  hash,
  parse,
  samples,
  ingest,
  upload,
  memory,
  verify,
  flow,
  oneCall,
  store,
  digests,
  evidence,
  scaleOverload,
  scaleUploads,
  scaleProcesses,
  scaleRegistry,
];
const COMPARED_PACKAGES = [
  'hash-wasm',
  '@noble/hashes',
  'music-metadata',
  'busboy',
  'express',
  'classic-level',
  '@msgpack/msgpack',
];

async function measureAll(options: Options): Promise<Results> {
  const startedAt = new Date();
  const out = resolve(options.out);
  await mkdir(out, { recursive: true });
  const dataDir = await mkdtemp(join(out, 'data-'));
  const wrong: string[] = [];
  const sections: Section[] = [];
  const conditions: Condition[] = [];
  const tty = process.stderr.isTTY;
  const run: Run = {
    scale: options.scale,
    dataDir,
    profileDir: options.profile ? join(out, 'profiles') : undefined,
    serviceMain: options.serviceMain,
    progress: (text) => void (tty && process.stderr.write(`\r\u001b[K${text}`)),
    wrong: (what) => void wrong.push(what),
  };
  try {
    for (const measure of MEASURES) {
      if (!isAskedFor(measure.name, options.only)) continue;
      if (!tty) process.stderr.write(`${measure.name} ...\n`);
      const before = await foreignLoad();
      const start = performance.now();
      sections.push(await measure.run(run));
      const seconds = Math.round((performance.now() - start) / 100) / 10;
      const load = Math.max(before, await foreignLoad());
      conditions.push({ name: measure.name, seconds, foreignLoad: Math.round(load * 100) / 100 });
    }
  } finally {
    if (tty) process.stderr.write('\r\u001b[K');
    await rm(dataDir, { recursive: true, force: true });
  }
  const results = gatherResults({
    startedAt,
    options,
    versions: await versionsOf(COMPARED_PACKAGES),
    sections,
    conditions,
    wrong,
  });
  await writeFile(join(out, 'results.json'), `${JSON.stringify(results, undefined, 2)}\n`);
  await writeFile(join(out, 'report.html'), htmlReport(results));
  process.stdout.write(
    `${terminalReport(results, process.stdout.isTTY)}\n${join(options.out, 'report.html')}\n`,
  );
  return results;
}

async function versionsOf(names: readonly string[]): Promise<Readonly<Record<string, string>>> {
  const entries = names.map(async (name) => {
    const manifest = JSON.parse(
      await readFile(new URL(`../../node_modules/${name}/package.json`, import.meta.url), 'utf8'),
    ) as { version: string };
    return [name, manifest.version] as const;
  });
  return Object.fromEntries(await Promise.all(entries));
}

/** Returns the options of the measurements as arguments, so that both builds make the same ones. */
function handedOn({ quick, only = [], largest }: Options): readonly string[] {
  return [
    ...(quick ? ['--quick'] : []),
    ...only.flatMap((name) => ['--only', name]),
    ...(largest === undefined ? [] : ['--largest', largest]),
  ];
}

/** Does what the options say. @returns whether all answers were right, and nothing slower that must not be */
async function carriedOut(options: Options, earlier: Results | undefined): Promise<boolean> {
  const { compare: other, pairs, advisory, services } = options;
  const colours = process.stdout.isTTY;
  const passes = (right: boolean, { text, slower }: Outcome): boolean => {
    process.stdout.write(`${text}\n`);
    return right && (advisory || !slower);
  };
  if (other?.kind === 'checkout') {
    const outcome = await compare(other.path, { rounds: pairs, args: handedOn(options), services }, colours);
    return passes(outcome.right, outcome);
  }
  const results = await measureAll(options);
  const right = results.wrong.length === 0;
  if (earlier === undefined) return right;
  process.stdout.write('\n');
  return passes(right, heldAgainst(earlier, results, colours));
}

const NAMES = MEASURES.map(({ name }) => name);
let options: Options;
let earlier: Results | undefined;
try {
  options = readOptions(process.argv.slice(2), NAMES);
  if (options.compare?.kind === 'results') {
    earlier = await readEarlierRun(options.compare.path);
    options = { ...options, only: askedAgain(earlier, options, NAMES) };
  }
} catch (error) {
  process.stderr.write(`${(error as Error).message}\n\n${USAGE}\n`);
  process.exit(2);
}
process.exit((await carriedOut(options, earlier)) ? 0 : 1);
