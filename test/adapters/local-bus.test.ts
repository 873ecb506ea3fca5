import { appendFile, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { openLocalBus } from '../../src/adapters/local-bus/bus.js';
import { DEAD_LETTER_FILE } from '../../src/adapters/local-bus/dead-letter-file.js';
import { PoisonError } from '../../src/ports/bus.js';
import { busContract, type BusPlace, erasure, Listener } from '../bus-contract/suite.js';

const clock = { now: () => Date.now() };

async function makeDirectory(t: Test): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'takemark-bus-'));
  t.teardown(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

async function make(): Promise<BusPlace> {
  const directory = await mkdtemp(join(tmpdir(), 'takemark-bus-'));
  return { open: (buried) => openLocalBus({ directory, clock, ...(buried && { buried }) }), keeps: false, remove: () => rm(directory, { recursive: true, force: true }) };
}

await t.test('the contract of a bus', (t) => busContract(t, make));

await t.test('publish tells of the handlers', async (t) => {
  const bus = await openLocalBus({ directory: await makeDirectory(t), clock });
  t.teardown(() => bus.close());
  const listener = new Listener();
  let away = true;
  bus.handle('erasure', async (events) => {
    if (away) throw new Error('the store is away');
    await listener.take(events);
  });
  await t.rejects(bus.publish([erasure(1)]), { code: 'unavailable', reason: 'bus_unavailable' });
  await bus.start();
  await t.rejects(bus.publish([erasure(1)]), { code: 'unavailable', reason: 'bus_unavailable', retryAfterSeconds: 1, cause: { message: 'the store is away' } });
  away = false;
  await bus.publish([erasure(1)]);
  t.ok(listener.has(erasure(1)), 'they took it when it resolves');
});

await t.test('the file of dead letters', async (t) => {
  const directory = await makeDirectory(t);
  const path = join(directory, DEAD_LETTER_FILE);
  const open = async () => {
    const bus = await openLocalBus({ directory, clock });
    bus.handle('erasure', () => Promise.reject(new PoisonError('not this one')));
    await bus.start();
    return bus;
  };
  const first = await open();
  await first.publish([erasure(1), erasure(2)]);
  await first.close();
  t.equal((await stat(path)).mode & 0o777, 0o600);

  await appendFile(path, '{"at":1,"reason":"torn');
  const second = await open();
  await second.publish([erasure(3)]);
  t.strictSame((await second.deadLetters('erasure', 9)).map(({ id }) => id), [1, 2, 3].map((n) => erasure(n).id), 'a torn last line is cut off');
  await second.close();

  const lines = (await readFile(path, 'utf8')).split('\n');
  await writeFile(path, [lines[0], lines[1]!.replace('prf_2', 'prf_9'), ...lines.slice(2)].join('\n'));
  const third = await open();
  t.teardown(() => third.close());
  await t.rejects(third.deadLetters('erasure', 9), { message: `${DEAD_LETTER_FILE} is damaged at line 2` });
});
