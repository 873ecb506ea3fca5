import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { DomainError } from '../../src/core/domain/errors.js';
import { createEventRelay } from '../../src/service/background/relay.js';
import { startJobs } from '../../src/service/background/scheduler.js';
import {
  billedSource,
  proofErased,
  type ServiceEvent,
  unitsCounted,
} from '../../src/service/domain/events.js';
import type { Settled } from '../../src/service/ports/bus.js';
import { MemoryOutbox } from '../fixtures/memory-outbox.js';
import { until } from '../fixtures/until.js';

const PAUSES = { firstMs: 5, longestMs: 20, idleMs: 60_000, patienceMs: 50, silentMs: 200, stopMs: 5000 };

function eventOf(number: number): ServiceEvent {
  return proofErased({ proofId: `prf_${number}`, partnerId: 'ptr_1', erasedAt: number });
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

/** A bus that confirms, gives back or keeps in hand each event for itself, as `fateOf` says. */
class PartialBus {
  readonly offered: string[] = [];
  readonly published: string[] = [];
  fateOf: (event: ServiceEvent) => 'kept' | 'failed' | 'silent' = () => 'kept';
  readonly #silent: { readonly event: ServiceEvent; readonly confirm: () => void }[] = [];

  async publish(events: readonly ServiceEvent[], onSettled: Settled = () => undefined): Promise<void> {
    const refused = new DomainError('unavailable', 'x', { reason: 'bus_unavailable' });
    const fates = await Promise.all(
      events.map(async (event) => {
        this.offered.push(event.id);
        const fate = this.fateOf(event);
        if (fate === 'silent')
          await new Promise<void>((resolve) => this.#silent.push({ event, confirm: resolve }));
        if (fate !== 'failed') this.published.push(event.id);
        onSettled(event, fate === 'failed' ? refused : undefined);
        return fate;
      }),
    );
    if (fates.includes('failed')) throw refused;
  }

  /** Events in hand. */
  get silent(): readonly string[] {
    return this.#silent.map(({ event }) => event.id);
  }

  heal(): void {
    for (const { confirm } of this.#silent.splice(0)) confirm();
  }
}

function usageOf(partnerId: string, from: number): ServiceEvent {
  return unitsCounted({ partnerId, source: billedSource('1970-01'), from, to: from + 1, counts: [] }, 1);
}

function add(stores: MemoryOutbox, ...numbers: number[]): void {
  stores.add(numbers.map(eventOf));
}

function setUp(): ReturnType<typeof setUpWith<MemoryBus>> {
  return setUpWith(new MemoryBus());
}

function setUpWith<Bus extends MemoryBus | PartialBus>(bus: Bus) {
  const stores = new MemoryOutbox();
  const faults: string[] = [];
  const counted: [string, string, number][] = [];
  const observer = {
    events: (...count: [string, string, number]) => void counted.push(count),
    fault: (where: string) => void faults.push(where),
  };
  return { stores, bus, faults, counted, relay: createEventRelay({ stores, bus, observer, pauses: PAUSES }) };
}

const ids = (...numbers: number[]) => numbers.map((number) => eventOf(number).id);

t.test('what waits goes out in its order and is marked after the bus has it', async (t) => {
  const { stores, bus, counted, relay } = setUp();
  add(stores, 1, 2, 3);
  relay.start();
  await until(() => stores.waiting.length === 0);
  t.strictSame(bus.published, ids(1, 2, 3));
  t.strictSame(counted, [['erasure', 'published', 3]]);
  add(stores, 4);
  await until(() => stores.waiting.length === 0);
  t.strictSame(bus.published, ids(1, 2, 3, 4), 'woken long before the next look');
  await relay.stop();
  add(stores, 5);
  await sleep(20);
  t.strictSame(bus.published.length, 4, 'nothing after the stop');
});

t.test('the relay knows the age of the oldest waiting event while the bus is away', async (t) => {
  const { stores, bus, relay } = setUp();
  bus.down = true;
  add(stores, 7, 8);
  const [oldest] = stores.waiting;
  relay.start();
  await until(() => relay.oldestAt() !== undefined);
  t.equal(relay.oldestAt(), oldest!.event.at);
  bus.down = false;
  await until(() => stores.waiting.length === 0);
  t.equal(relay.oldestAt(), undefined, 'nothing waits any more');
  await relay.stop();
});

t.test('more than a batch goes out in rounds, one at a time', async (t) => {
  const { stores, bus, relay } = setUp();
  const numbers = Array.from({ length: 1201 }, (_, number) => number);
  add(stores, ...numbers);
  relay.start();
  for (const number of [2000, 2001, 2002]) {
    add(stores, number);
    await sleep(1);
  }
  await until(() => stores.waiting.length === 0);
  t.strictSame(bus.published, ids(...numbers, 2000, 2001, 2002));
  t.equal(bus.most, 1);
  t.ok(bus.offered.every((batch) => batch.length <= 500));
  await relay.stop();
});

t.test(
  'a bus that is down: nothing is marked, the same events come again, and it is reported once',
  async (t) => {
    const { stores, bus, faults, counted, relay } = setUp();
    bus.down = true;
    add(stores, 1, 2);
    relay.start();
    // Each key has pauses of its own, so the two need not come together again.
    const timesOf = (id: string) => bus.offered.flat().filter((offered) => offered === id).length;
    await until(() => bus.offered.length >= 4 && ids(1, 2).every((id) => timesOf(id) >= 2));
    t.equal(stores.marks, 0);
    t.strictSame(new Set(bus.offered.flat()), new Set(ids(1, 2)));
    t.strictSame([faults, counted], [['outbox'], []]);
    const offered = bus.offered.length;
    for (let number = 3; number < 203; number += 1) add(stores, number);
    await sleep(0);
    t.ok(bus.offered.length <= offered + 1, 'what comes in meanwhile does not shorten the pause');
    bus.down = false;
    await until(() => stores.waiting.length === 0);
    // Each event has a key of its own: order is kept within a key alone.
    t.equal(bus.published.length, 202, 'each once');
    t.strictSame(new Set(bus.published), new Set(ids(...Array.from({ length: 202 }, (_, n) => n + 1))));
    bus.down = true;
    add(stores, 900);
    await until(() => faults.length === 2);
    t.strictSame(faults, ['outbox', 'outbox'], 'the next outage is another one');
    await relay.stop();
  },
);

t.test('a store that is down is waited for, too', async (t) => {
  const { stores, bus, faults, relay } = setUp();
  stores.broken = true;
  add(stores, 1);
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
  add(stores, 1);
  relay.start();
  await until(() => bus.inside === 1);
  const stopped = relay.stop();
  add(stores, 2);
  release();
  await stopped;
  t.strictSame(bus.published, ids(1));
  t.strictSame(
    stores.waiting.map(({ rowKey }) => rowKey),
    ids(2),
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

t.test('a confirmed event is marked and never sent again when others fail', async (t) => {
  const { stores, bus, faults, relay } = setUpWith(new PartialBus());
  const stuck = (event: ServiceEvent) => event.key === 'ptr_stuck';
  bus.fateOf = (event) => (stuck(event) ? 'silent' : 'kept');
  const events = Array.from({ length: 300 }, (_, n) => [
    usageOf('ptr_stuck', n),
    usageOf('ptr_well', n),
  ]).flat();
  stores.add(events);
  relay.start();
  await until(() => stores.waiting.length === 300);
  t.ok(
    stores.waiting.every(({ event }) => stuck(event)),
    'exactly those that are not confirmed wait on',
  );
  stores.add([usageOf('ptr_well', 300), usageOf('ptr_stuck', 300)]);
  await until(() => bus.published.includes(usageOf('ptr_well', 300).id));
  // Meanwhile the outbox is looked at again and again.
  for (let n = 301; n < 320; n += 1) {
    stores.add([usageOf('ptr_well', n)]);
    await sleep(PAUSES.longestMs);
  }
  await until(() => stores.waiting.length === 301 && faults.length > 0);
  t.strictSame(faults, ['outbox'], 'silence is reported once');
  t.strictSame(new Set(bus.offered).size, bus.offered.length, 'nothing is sent twice');
  t.notOk(bus.offered.includes(usageOf('ptr_stuck', 300).id), 'a later event of the key waits');
  bus.fateOf = () => 'kept';
  bus.heal();
  await until(() => stores.waiting.length === 0);
  t.strictSame(
    bus.published.filter((id) => id.includes('ptr_stuck')),
    Array.from({ length: 301 }, (_, n) => usageOf('ptr_stuck', n).id),
    'each once, in the order of its key',
  );
  t.equal(bus.published.length, 621);
  await relay.stop();
});

t.test('events after more than a batch of stuck ones are published', async (t) => {
  const { stores, bus, relay } = setUpWith(new PartialBus());
  bus.fateOf = ({ topic }) => (topic === 'erasure' ? 'silent' : 'kept');
  add(stores, ...Array.from({ length: 1700 }, (_, n) => n));
  stores.add(Array.from({ length: 40 }, (_, n) => usageOf(`ptr_${n}`, 0)));
  relay.start();
  await until(() => bus.published.length === 40);
  await until(() => stores.waiting.length === 1700);
  t.ok(bus.published.every((id) => id.startsWith('units_counted')));
  t.equal(bus.silent.length, 1700);
  bus.heal();
  await until(() => stores.waiting.length === 0);
  t.equal(bus.offered.length, 1740, 'and nothing was sent twice');
  await relay.stop();
});

t.test('an event that comes back again and again holds up its key alone, and keeps its place', async (t) => {
  const { stores, bus, faults, relay } = setUpWith(new PartialBus());
  const first = usageOf('ptr_refused', 0).id;
  bus.fateOf = ({ id, key }) =>
    id === first || (key === 'ptr_refused' && !bus.published.includes(first)) ? 'failed' : 'kept';
  stores.add([usageOf('ptr_refused', 0), usageOf('ptr_refused', 1)]);
  relay.start();
  for (let n = 0; n < 50; n += 1) {
    stores.add([usageOf('ptr_well', n)]);
    await until(() => bus.published.includes(usageOf('ptr_well', n).id));
  }
  await until(() => bus.offered.filter((id) => id === first).length > 3);
  // Each is marked shortly after it was published.
  await until(() => stores.waiting.length === 2);
  t.strictSame(faults, ['outbox'], 'it is reported once');
  bus.fateOf = () => 'kept';
  await until(() => stores.waiting.length === 0);
  t.strictSame(
    bus.published.filter((id) => id.includes('ptr_refused')),
    [0, 1].map((n) => usageOf('ptr_refused', n).id),
  );
  t.equal(new Set(bus.published).size, bus.published.length);
  await relay.stop();
});

t.test(
  'events after more than a batch of refused ones are published, and refused ones come again',
  async (t) => {
    const { stores, bus, relay } = setUpWith(new PartialBus());
    bus.fateOf = ({ topic }) => (topic === 'erasure' ? 'failed' : 'kept');
    add(stores, ...Array.from({ length: 1700 }, (_, n) => n));
    stores.add(Array.from({ length: 40 }, (_, n) => usageOf(`ptr_${n}`, 0)));
    relay.start();
    await until(() => bus.published.length === 40);
    t.ok(bus.published.every((id) => id.startsWith('units_counted')));
    await until(() => bus.offered.length > 2000);
    bus.fateOf = () => 'kept';
    await until(() => stores.waiting.length === 0);
    t.equal(new Set(bus.published).size, bus.published.length);
    await relay.stop();
  },
);

t.test('an event that is confirmed and marked while the outbox is read is not sent again', async (t) => {
  const { stores, bus, relay } = setUpWith(new PartialBus());
  bus.fateOf = () => 'silent';
  add(stores, 1);
  relay.start();
  await until(() => bus.silent.length === 1);
  let release: () => void = () => undefined;
  stores.reading = new Promise<void>((resolve) => (release = resolve));
  add(stores, 2);
  // Past the patience with the first one: the next look has begun.
  await sleep(2 * PAUSES.patienceMs);
  bus.heal();
  await until(() => stores.marks === 1);
  await sleep(PAUSES.longestMs);
  bus.fateOf = () => 'kept';
  stores.reading = Promise.resolve();
  release();
  await until(() => stores.waiting.length === 0);
  t.strictSame(bus.offered, ids(1, 2));
  await relay.stop();
});

t.test('events whose mark fails are marked again, and not sent again', async (t) => {
  const { stores, bus, faults, relay } = setUpWith(new PartialBus());
  const mark = stores.markPublished.bind(stores);
  let failures = 3;
  stores.markPublished = async (events) => {
    if (failures-- > 0) throw new DomainError('unavailable', 'x', { reason: 'store_unavailable' });
    await mark(events);
  };
  add(stores, 1, 2, 3);
  relay.start();
  await until(() => stores.waiting.length === 0);
  t.strictSame(bus.offered, ids(1, 2, 3));
  t.strictSame(faults, ['outbox']);
  await relay.stop();
});

t.test('chores: never twice at once, done again after a fault, ended within the grace', async (t) => {
  const faults: string[] = [];
  let [inside, most, runs] = [0, 0, 0];
  const slow = {
    where: 'audit' as const,
    everyMs: 2,
    run: async () => ((most = Math.max(most, ++inside)), await sleep(15), (inside -= 1)),
  };
  const failing = {
    where: 'collect' as const,
    everyMs: 2,
    atStart: true,
    run: () => ((runs += 1), Promise.reject(new Error('x'))),
  };
  const stop = startJobs([slow, failing], { fault: (where) => void faults.push(where) }, () => 1000);
  t.equal(runs, 1, 'at once');
  await until(() => runs >= 4 && most === 1);
  await stop();
  t.equal(inside, 0, 'what was under way has ended');
  const before = runs;
  await sleep(10);
  t.equal(runs, before);
  t.equal(new Set(faults).size, 1);
  let isLeft = false;
  const steps = {
    where: 'audit' as const,
    everyMs: 1000,
    atStart: true,
    run: async (ending: AbortSignal) => {
      while (!ending.aborted) await sleep(1);
      isLeft = true;
    },
  };
  await startJobs([steps], { fault: () => undefined }, () => 60_000)();
  t.ok(isLeft, 'a long job ends with the schedule');
  const stuck = startJobs(
    [{ where: 'meter', everyMs: 1000, atStart: true, run: () => new Promise(() => undefined) }],
    { fault: () => undefined },
    () => 20,
  );
  await stuck();
  t.pass('a hanging job delays no stop');
});
