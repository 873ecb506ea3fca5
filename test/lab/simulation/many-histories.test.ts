import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import t from 'tap';
import { regressionsOf, seedsOf } from '../../fixtures/seeds.js';

const MAIN = new URL('./main.js', import.meta.url).pathname;
/** One process, because the other entry files of the gate use the second processor. */
const PLAYERS = '1';
const HISTORIES = 300;

/** Returns the last line of a run. Throws all lines if a history has a violation. */
async function play(histories: number, seed: number): Promise<string> {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [MAIN, '--histories', String(histories), '--seed', String(seed), '--players', PLAYERS],
    { maxBuffer: 64 * 1024 * 1024 },
  );
  return stdout.trim().split('\n').at(-1)!;
}

t.test(`${HISTORIES} histories of mixed faults have no violation`, async (t) => {
  const [seed] = seedsOf('histories');
  t.equal(await play(HISTORIES, seed!), `${HISTORIES} histories, 0 violations`, `seed ${seed}`);
});

t.test('histories that once had a violation have none', async (t) => {
  for (const seed of regressionsOf('histories'))
    t.equal(await play(1, seed), '1 histories, 0 violations', `seed ${seed}`);
});
