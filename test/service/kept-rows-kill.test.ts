/** No read sees an older row after the answer of a change or after a kill, although the service keeps rows decoded. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import t, { type Test } from 'tap';
import { PLAIN_NODE } from '../adapters/embedded-process.js';
import { seedsOf } from '../fixtures/seeds.js';
import { seeded } from '../fixtures/service.js';
import { addReport, type KeptRowsPlant, type Reported } from './kept-rows-reports.js';

const KILLS = Number(process.env['TAKEMARK_KEPT_ROWS_KILLS'] ?? 2);
/** The most answers before a kill. A round has three. */
const MOST_ANSWERS = 9;
const PROCESS = fileURLToPath(new URL('./kept-rows-process.js', import.meta.url));
const PLANTS: readonly KeptRowsPlant[] = ['no-drop', 'late-drop', 'kept-plaintext'];

class Killed {
  readonly reported: Reported = { revoked: [], erased: [], plans: [] };
  /** Reads that saw an older row, or rows that do not fit together, and counts of plaintexts that were left. */
  readonly faults: string[] = [];
  readonly #directory: string;

  constructor(directory: string) {
    this.#directory = directory;
  }

  static async in(t: Test): Promise<Killed> {
    const directory = await mkdtemp(join(tmpdir(), 'takemark-kept-rows-'));
    t.teardown(() => rm(directory, { recursive: true, force: true }));
    return new Killed(directory);
  }

  /** Runs a process and kills it at the first line for which `isLast` returns true. */
  async run(isLast: (line: string) => boolean, rounds: number, plant?: KeptRowsPlant): Promise<void> {
    const path = join(this.#directory, 'reported.json');
    await writeFile(path, JSON.stringify(this.reported));
    const [command, ...before] = PLAIN_NODE;
    const args = [
      join(this.#directory, 'data'),
      path,
      String(rounds),
      ...(plant === undefined ? [] : [plant]),
    ];
    const child: ChildProcess = spawn(command, [...before, PROCESS, ...args], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const exited = once(child, 'exit');
    for await (const line of createInterface({ input: child.stdout! })) {
      addReport(this.reported, line);
      if (/^(?:stale|unfit|plaintexts [1-9])/.test(line)) this.faults.push(line);
      if (isLast(line)) child.kill('SIGKILL');
    }
    const [, signal] = (await exited) as [number | null, string | null];
    t.equal(signal, 'SIGKILL', 'the process runs until it is killed');
  }
}

for (const seed of seedsOf('kills'))
  t.test(`${KILLS} kills amid changes of kept rows undo none that was answered (seed ${seed})`, async (t) => {
    const killed = await Killed.in(t);
    const random = seeded(seed);
    for (let kill = 0; kill < KILLS; kill += 1) {
      let answers = 1 + Math.floor(random() * MOST_ANSWERS);
      await killed.run((line) => line.startsWith('answered ') && (answers -= 1) === 0, 0);
    }
    await killed.run((line) => line === 'ended', 1);
    t.strictSame(killed.faults, []);
    const { revoked, erased, plans } = killed.reported;
    t.ok(Math.min(revoked.length, erased.length, plans.length) > 0, 'each kind of change was answered');
    t.comment(`${revoked.length} revocations, ${erased.length} erasures, plans of ${plans.length} partners`);
  });

for (const plant of PLANTS)
  t.test(`the reads find the planted defect ${plant}`, async (t) => {
    const killed = await Killed.in(t);
    await killed.run((line) => line === 'ended', 1, plant);
    const kinds = new Set(killed.faults.map((line) => line.split(' ').slice(0, 2).join(' ')));
    const found = plant === 'kept-plaintext' ? /^plaintexts/ : /^stale revoked$/;
    t.ok(
      [...kinds].some((kind) => found.test(kind)),
      [...kinds].join(', '),
    );
  });
