/**
 * npm run fuzz [-- --seconds 20] [--only NAME,...] [--seed N] [--jobs 2] [--keep]: fuzzes each reader in its
 * own process, from its seeds and its corpus. With --keep the corpora get the new inputs, the smallest first.
 */
import { fork } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { Report } from './process.js';
import { TARGETS } from './targets.js';

const PROCESS = new URL('./process.js', import.meta.url).pathname;
/** The time after which a reader counts as hung on a busy machine, in milliseconds. */
const STALL_MS = 60_000;

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '20' },
    only: { type: 'string' },
    seed: { type: 'string' },
    jobs: { type: 'string', default: '2' },
    keep: { type: 'boolean', default: false },
  },
});
const seed = Number(values.seed ?? randomInt(1, 1 << 30));
const names = values.only?.split(',') ?? Object.keys(TARGETS);
for (const name of names)
  if (TARGETS[name] === undefined)
    throw new Error(`there is no reader ${name}; there are ${Object.keys(TARGETS).join(', ')}`);

console.log(`seed ${seed}, ${values.seconds} s each`);
const directory = await mkdtemp(join(tmpdir(), 'takemark-fuzz-'));
const queue = names.values();
let failed = 0;
await Promise.all(
  Array.from({ length: Number(values.jobs) }, async () => {
    for (const name of queue) if (!(await runTarget(name))) failed += 1;
  }),
);
await rm(directory, { recursive: true });
console.log(`${names.length - failed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);

async function runTarget(name: string): Promise<boolean> {
  const current = join(directory, name);
  const child = fork(PROCESS, [name, values.seconds, String(seed), current, String(values.keep)], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  let report: Report | undefined;
  let stalled = false;
  let alarm = setTimeout(stall, Number(values.seconds) * 1000 + STALL_MS);
  function stall(): void {
    stalled = true;
    child.kill('SIGKILL');
  }
  child.on('message', (message: Report | 'alive') => {
    clearTimeout(alarm);
    alarm = setTimeout(stall, STALL_MS);
    if (message !== 'alive') report = message;
  });
  await new Promise((resolve) => child.once('close', resolve));
  clearTimeout(alarm);
  if (report?.fault === undefined && report !== undefined && !stalled) {
    console.log(
      `ok: ${name}: ${report.inputs} inputs, ${report.features} blocks and counts, ${report.kept} inputs kept`,
    );
    return true;
  }
  const input =
    report?.fault?.input ?? (await readFile(current).catch(() => Buffer.alloc(0))).toString('base64');
  console.log(
    `FAILED: ${name}, seed ${seed}: ${stalled ? 'an input it does not come back from' : (report?.fault?.error ?? 'the process ended')}\n  input ${input}`,
  );
  return false;
}
