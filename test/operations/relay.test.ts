import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { createEventRelay } from '../../src/background/relay.js';
import { startJobs } from '../../src/background/scheduler.js';
import { DomainError } from '../../src/domain/errors.js';
import { proofErased, type ServiceEvent } from '../../src/domain/events.js';
import type { OutboxStore, WaitingEvent } from '../../src/ports/stores.js';

const PAUSES = { firstMs: 5, longestMs: 20, idleMs: 60_000 };

function eventOf(number: number): ServiceEvent {
  return proofErased({ proofId: `prf_${number}`, partnerId: 'ptr_1', erasedAt: number });
}

class MemoryOutbox implements OutboxStore {
  readonly waiting: WaitingEvent[] = [];
  marks = 0;
  broken = false;
  #listener: () => void = () => undefined;

  add(...numbers: number[]): void {
    for (const number of numbers) this.waiting.push({ event: eventOf(number), rowKey: String(number) });
    this.#listener();
  }

  async waitingEvents(limit: number): Promise<readonly WaitingEvent[]> {
    if (this.broken) throw new DomainError('unavailable', 'x', { reason: 'store_unavailable' });
    return this.waiting.slice(0, limit);
  }

  async markPublished(events: readonly WaitingEvent[]): Promise<void> {
    this.marks += 1;
    for (const { rowKey } of events)
      this.waiting.splice(
        this.waiting.findIndex((event) => event.rowKey === rowKey),
        1,
      );
  }

  countWaiting = () => this.waiting.length;
  onWaiting = (listener: () => void) => void (this.#listener = listener);
}

class MemoryBus {
  readonly published: string[] = [];
  /** Events that were given, taken or not. */
  readonly offered: string[][] = [];
  down = false;
  inside = 0;
  most = 0;
  hold: Promise<unknown> = Promise.resolve();

  async publish(events: readonly ServiceEvent[]): Promise<void> {
    this.offered.push(events.map(({ id }) => id));
    this.most = Math.max(this.most, ++this.inside);
    await this.hold;
    this.inside -= 1;
    if (this.down) throw new DomainError('unavailable', 'x', { reason: 'bus_unavailable' });
    this.published.push(...events.map(({ id }) => id));
  }
}

function setUp() {
  const stores = new MemoryOutbox();
  const bus = new MemoryBus();
  const faults: string[] = [];
  const counted: [string, string, number][] = [];
  const observer = {
    events: (...count: [string, string, number]) => void counted.push(count),
    fault: (where: string) => void faults.push(where),
  };
  return { stores, bus, faults, counted, relay: createEventRelay({ stores, bus, observer, pauses: PAUSES }) };
}

async function until(done: () => boolean): Promise<void> {
  for (const deadline = Date.now() + 60_000; !done(); await sleep(2))
    if (Date.now() > deadline) throw new Error('it did not happen');
}

const ids = (...numbers: number[]) => numbers.map((number) => eventOf(number).id);

t.test('what waits goes out in its order and is marked after the bus has it', async (t) => {
  const { stores, bus, counted, relay } = setUp();
  stores.add(1, 2, 3);
  relay.start();
  await until(() => stores.waiting.length === 0);
  t.strictSame(bus.published, ids(1, 2, 3));
  t.strictSame(counted, [['erasure', 'published', 3]]);
  stores.add(4);
  await until(() => stores.waiting.length === 0);
  t.strictSame(bus.published, ids(1, 2, 3, 4), 'woken long before the next look');
  await relay.stop();
  stores.add(5);
  await sleep(20);
  t.strictSame(bus.published.length, 4, 'nothing after the stop');
});

t.test('more than a batch goes out in rounds, one at a time', async (t) => {
  const { stores, bus, relay } = setUp();
  const numbers = Array.from({ length: 1201 }, (_, number) => number);
  stores.add(...numbers);
  relay.start();
  for (const number of [2000, 2001, 2002]) {
    stores.add(number);
    await sleep(1);
  }
  await until(() => stores.waiting.length === 0);
  t.strictSame(bus.published, ids(...numbers, 2000, 2001, 2002));
  t.equal(bus.most, 1);
  t.ok(bus.offered.every((batch) => batch.length <= 500));
  await relay.stop();
});

t.test(
  'a bus that is down: nothing is marked, the same events come again, and it is told once',
  async (t) => {
    const { stores, bus, faults, counted, relay } = setUp();
    bus.down = true;
    stores.add(1, 2);
    relay.start();
    await until(() => bus.offered.length >= 4);
    t.equal(stores.marks, 0);
    t.ok(bus.offered.every((batch) => batch[0] === ids(1)[0] && batch[1] === ids(2)[0]));
    t.strictSame([faults, counted], [['outbox'], []]);
    const offered = bus.offered.length;
    for (let number = 3; number < 203; number += 1) stores.add(number);
    await sleep(0);
    t.ok(bus.offered.length <= offered + 1, 'what comes in meanwhile does not shorten the pause');
    bus.down = false;
    await until(() => stores.waiting.length === 0);
    t.strictSame(bus.published.slice(0, 3), ids(1, 2, 3));
    bus.down = true;
    stores.add(900);
    await until(() => faults.length === 2);
    t.strictSame(faults, ['outbox', 'outbox'], 'the next outage is another one');
    await relay.stop();
  },
);

t.test('a store that is down is waited for, too', async (t) => {
  const { stores, bus, faults, relay } = setUp();
  stores.broken = true;
  stores.add(1);
  relay.start();
  await until(() => faults.length === 1);
  stores.broken = false;
  await until(() => bus.published.length === 1);
  t.strictSame(faults, ['outbox']);
  await relay.stop();
});

t.test('stop waits for the batch that is under way and marks it', async (t) => {
  const { stores, bus, relay } = setUp();
  let release: () => void = () => undefined;
  bus.hold = new Promise<void>((resolve) => (release = resolve));
  stores.add(1);
  relay.start();
  await until(() => bus.inside === 1);
  const stopped = relay.stop();
  stores.add(2);
  release();
  await stopped;
  t.strictSame(bus.published, ids(1));
  t.strictSame(
    stores.waiting.map(({ rowKey }) => rowKey),
    ['2'],
    'the rest waits for the next start',
  );
  const next = createEventRelay({
    stores,
    bus,
    observer: { events: () => undefined, fault: () => undefined },
    pauses: PAUSES,
  });
  next.start();
  await until(() => stores.waiting.length === 0);
  t.strictSame(bus.published, ids(1, 2));
  await next.stop();
});

t.test('chores: never twice at once, done again after a fault, ended within the grace', async (t) => {
  const faults: string[] = [];
  let [inside, most, runs] = [0, 0, 0];
  const slow = {
    where: 'slow',
    everyMs: 2,
    run: async () => ((most = Math.max(most, ++inside)), await sleep(15), (inside -= 1)),
  };
  const failing = {
    where: 'failing',
    everyMs: 2,
    atStart: true,
    run: () => ((runs += 1), Promise.reject(new Error('x'))),
  };
  const stop = startJobs([slow, failing], { fault: (where) => void faults.push(where) }, 1000);
  t.equal(runs, 1, 'at once');
  await until(() => runs >= 4 && most === 1);
  await stop();
  t.equal(inside, 0, 'what was under way has ended');
  const before = runs;
  await sleep(10);
  t.equal(runs, before);
  t.equal(new Set(faults).size, 1);
  const stuck = startJobs(
    [{ where: 'stuck', everyMs: 1000, atStart: true, run: () => new Promise(() => undefined) }],
    { fault: () => undefined },
    20,
  );
  await stuck();
  t.pass('and what hangs holds nobody up');
});
