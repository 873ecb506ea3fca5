import { appendFile, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { defined } from '../../src/core/domain/defined.js';
import { openLocalBus } from '../../src/service/adapters/local-bus/bus.js';
import { DEAD_LETTER_FILE } from '../../src/service/adapters/local-bus/dead-letter-file.js';
import { PoisonError } from '../../src/service/domain/batch-delivery.js';
import { TOPICS, type Topic } from '../../src/service/domain/events.js';
import { type BusPlace, busContract, erasure, Listener } from '../bus-contract/suite.js';
import { authenticated } from '../fixtures/authentication.js';

const clock = { now: () => Date.now() };

async function makeDirectory(t: Test): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'takemark-bus-'));
  t.teardown(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

async function make(): Promise<BusPlace> {
  const directory = await mkdtemp(join(tmpdir(), 'takemark-bus-'));
  return {
    open: (onDeadLetter) =>
      openLocalBus({ directory, clock, ...authenticated, ...defined({ onDeadLetter }) }),
    keeps: false,
    remove: () => rm(directory, { recursive: true, force: true }),
  };
}

await t.test('the bus of one process keeps the contract of a bus', (t) => busContract(t, make));

await t.test('a publication resolves when the handlers took it, and fails with them', async (t) => {
  const bus = await openLocalBus({ directory: await makeDirectory(t), clock, ...authenticated });
  t.teardown(() => bus.close());
  const listener = new Listener();
  let away = true;
  bus.handle('erasure', async (events) => {
    if (away) throw new Error('the store is away');
    await listener.take(events);
  });
  await t.rejects(bus.publish([erasure(1)]), { code: 'unavailable', reason: 'bus_unavailable' });
  await bus.start();
  await t.rejects(bus.publish([erasure(1)]), {
    code: 'unavailable',
    reason: 'bus_unavailable',
    retryAfterSeconds: 1,
    cause: { message: 'the store is away' },
  });
  away = false;
  await bus.publish([erasure(1)]);
  t.ok(listener.has(erasure(1)), 'they took it when it resolves');
});

await t.test('dead letters outlive the process, and a torn one is cut off', async (t) => {
  const directory = await makeDirectory(t);
  const path = join(directory, DEAD_LETTER_FILE);
  const open = async (over: { readonly acceptWithoutMac?: boolean } = {}) => {
    const bus = await openLocalBus({ directory, clock, ...authenticated, ...over });
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
  t.strictSame(
    (await second.deadLetters('erasure', 9)).map(({ id }) => id),
    [1, 2, 3].map((n) => erasure(n).id),
    'a torn last line is cut off',
  );
  await second.close();

  const lines = (await readFile(path, 'utf8')).split('\n');
  const { mac: _, ...bare } = JSON.parse(lines[0]!) as Record<string, unknown>;
  const forged = {
    at: 9,
    reason: 'please',
    topic: 'erasure',
    event: JSON.parse(JSON.stringify({ ...erasure(9), topic: undefined })) as object,
  };
  const edited = [
    lines[0]!,
    lines[1]!.replaceAll('prf_2', 'prf_9'),
    lines[2]!,
    JSON.stringify(forged),
    JSON.stringify({ ...bare, mac: null }),
    'not even JSON',
  ];
  await writeFile(path, edited.map((line) => `${line}\n`).join(''));
  const third = await open();
  const idsOf = async (bus: typeof third) =>
    (await bus.deadLetters('erasure', 9)).map(({ id, reason }) => id ?? reason);
  const strange = 'the line is not authenticated, or it is damaged';
  t.strictSame(
    await idsOf(third),
    [erasure(1).id, strange, erasure(3).id, strange, strange, strange],
    'what somebody else wrote is listed, and holds up nothing',
  );
  t.equal(await third.replayDeadLetters('erasure', 9), 5);
  t.strictSame(
    await idsOf(third),
    [strange, erasure(1).id, strange, erasure(3).id, strange, strange],
    'events without a consumer stay, and so do lines of no topic',
  );
  await third.close();
  const listener = new Listener();
  const replay = async (acceptWithoutMac: boolean) => {
    const bus = await openLocalBus({ directory, clock, ...authenticated, acceptWithoutMac });
    bus.handle('erasure', listener.take);
    await bus.start();
    await bus.replayDeadLetters('erasure', 9);
    await bus.close();
  };
  await replay(false);
  t.strictSame(
    listener.taken.map(({ id }) => id),
    [erasure(1).id, erasure(3).id],
    'a replay does nothing with them',
  );
  await replay(true);
  t.strictSame(
    listener.taken.map(({ id }) => id),
    [erasure(1).id, erasure(3).id, erasure(9).id],
    'unless what has no code is accepted',
  );
});

await t.test('a line that names no topic stays as it is, and a replay passes over it', async (t) => {
  const directory = await makeDirectory(t);
  const path = join(directory, DEAD_LETTER_FILE);
  const reported: Topic[] = [];
  const listener = new Listener();
  let isPoisonous = true;
  const open = async () => {
    const bus = await openLocalBus({
      directory,
      clock,
      ...authenticated,
      onDeadLetter: (topic) => void reported.push(topic),
    });
    bus.handle('erasure', async (events) => {
      if (isPoisonous) throw new PoisonError('not this one');
      await listener.take(events);
    });
    await bus.start();
    return bus;
  };
  await writeFile(path, `${'x'.repeat(200)}\n{}\n{"topic":"another"}\n`);
  const before = await readFile(path);
  const first = await open();
  for (let round = 0; round < 3; round += 1)
    for (const topic of TOPICS) {
      t.equal(await first.replayDeadLetters(topic, 2), 0);
      t.equal((await first.deadLetters(topic, 9)).length, 3, 'and it is listed');
    }
  t.strictSame(await readFile(path), before);
  t.strictSame(reported, [], 'it is not reported as a new one');

  await first.publish([erasure(1)]);
  await first.close();
  await appendFile(path, 'and one after it\n');
  isPoisonous = false;
  const second = await open();
  t.equal(
    await second.replayDeadLetters('erasure', 1),
    1,
    'what can be taken is, however many lie before it',
  );
  t.strictSame(
    listener.taken.map(({ id }) => id),
    [erasure(1).id],
  );
  t.equal(await second.replayDeadLetters('erasure', 9), 0);
  t.equal((await second.deadLetters('erasure', 9)).length, 4);
  t.strictSame(reported, ['erasure']);
  await second.close();
});
