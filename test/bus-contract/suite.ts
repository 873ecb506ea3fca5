import { setTimeout as sleep } from 'node:timers/promises';
import type { Test } from 'tap';
import { DomainError } from '../../src/core/domain/errors.js';
import { PoisonError } from '../../src/service/domain/batch-delivery.js';
import {
  billedSource,
  proofErased,
  reminderDue,
  reviewCreated,
  type ServiceEvent,
  TOPICS,
  type Topic,
  unitsCounted,
} from '../../src/service/domain/events.js';
import { dayOf, monthOf } from '../../src/service/domain/usage-window.js';
import type { DeadLetterReport, EventBus, EventHandler } from '../../src/service/ports/bus.js';
import { until } from '../fixtures/until.js';

/** The place of one test's events. Every bus that is opened here carries the same events. */
export interface BusPlace {
  open(onDeadLetter?: DeadLetterReport): Promise<EventBus>;
  /** Whether the bus itself keeps events, so that they can be replayed. */
  readonly keeps: boolean;
  remove(): Promise<void>;
}

export const AT = 1_780_000_000;

export function erasure(n: number): ServiceEvent {
  return proofErased({ proofId: `prf_${n}`, partnerId: `ptr_${n % 7}`, erasedAt: AT + n });
}

/** Returns the n-th unit of a partner. */
export function usage(partner: number, n: number): ServiceEvent {
  const data = {
    partnerId: `ptr_${partner}`,
    source: billedSource(monthOf(AT)),
    from: n,
    to: n + 1,
    counts: [{ day: dayOf(AT), operation: 'verify', units: 1 }],
  };
  return unitsCounted(data, AT + n);
}

export function retention(n: number): readonly ServiceEvent[] {
  const about = {
    reviewId: `rev_${n}`,
    partnerId: `ptr_${n % 7}`,
    proofId: `prf_${n}`,
    expiresAt: AT + 1_000_000,
  };
  return [
    reviewCreated({ ...about, createdAt: AT + n }),
    reminderDue({ kind: 'review_expiring', dueAt: AT + 500_000, ...about }),
    reminderDue({ kind: 'review_expired', dueAt: AT + 1_000_000, ...about }),
  ];
}

/** Publishes the same events until they are accepted, as the relay does. */
export async function relay(bus: EventBus, events: readonly ServiceEvent[]): Promise<void> {
  for (const deadline = Date.now() + 60_000; ; await sleep(20)) {
    try {
      return await bus.publish(events);
    } catch (error) {
      if (!(error instanceof DomainError) || error.reason !== 'bus_unavailable' || Date.now() > deadline)
        throw error;
    }
  }
}

/** Takes everything, in the order of arrival. */
export class Listener {
  readonly batches: (readonly ServiceEvent[])[] = [];

  readonly take: EventHandler = async (events) => {
    this.batches.push(events);
  };

  /** Returns the taken events without repetitions. */
  get taken(): readonly ServiceEvent[] {
    return [...new Map(this.batches.flat().map((event) => [event.id, event])).values()];
  }

  has(...events: readonly ServiceEvent[]): boolean {
    const ids = new Set(this.batches.flat().map(({ id }) => id));
    return events.every(({ id }) => ids.has(id));
  }
}

/** Returns events by key, those of each key in order. */
export function byKey(events: readonly ServiceEvent[]): Readonly<Record<string, readonly ServiceEvent[]>> {
  const keys = new Map<string, ServiceEvent[]>();
  for (const event of events) {
    const name = `${event.topic} ${event.key}`;
    const own = keys.get(name);
    if (own === undefined) keys.set(name, [event]);
    else own.push(event);
  }
  return Object.fromEntries([...keys].toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

export async function busContract(t: Test, make: () => Promise<BusPlace>): Promise<void> {
  const cases: Readonly<Record<string, (t: Test, place: BusPlace) => Promise<void>>> = {
    'thousands arrive as they were sent': thousands,
    'a batch that failed comes again as it was': failingHandler,
    'an event goes to the dead letters when no handler accepts it, and the rest goes on': deadLetters,
    'a batch is split when no handler accepts some events, and each of these is isolated once': isolation,
    'events that came while others failed keep their place': orderAfterFailure,
    'a close lets the batch that is being handled end': closing,
    'every event that a topic keeps is replayed, as often as asked': replay,
    'a second or late handler is refused, and an event without a handler is taken': refusals,
  };
  for (const [name, run] of Object.entries(cases)) {
    await t.test(name, async (t) => {
      const place = await make();
      t.teardown(() => place.remove());
      await run(t, place);
    });
  }
}

async function opened(
  t: Test,
  place: BusPlace,
  handlers: Partial<Record<Topic, EventHandler>>,
  onDeadLetter?: DeadLetterReport,
): Promise<EventBus> {
  const bus = await place.open(onDeadLetter);
  t.teardown(() => bus.close());
  for (const topic of TOPICS) if (handlers[topic] !== undefined) bus.handle(topic, handlers[topic]);
  await bus.start();
  return bus;
}

async function thousands(t: Test, place: BusPlace): Promise<void> {
  const listeners = { erasure: new Listener(), usage: new Listener(), retention: new Listener() };
  const bus = await opened(t, place, {
    erasure: listeners.erasure.take,
    usage: listeners.usage.take,
    retention: listeners.retention.take,
  });
  const sent = Array.from({ length: 1000 }, (_, n) => [
    erasure(n),
    usage(n % 13, Math.floor(n / 13)),
    usage(100, n),
    ...retention(n),
  ]).flat();
  for (let from = 0; from < sent.length; from += 300) await relay(bus, sent.slice(from, from + 300));
  for (const topic of TOPICS) {
    const own = sent.filter((event) => event.topic === topic);
    await until(() => listeners[topic].has(...own), `all of ${topic}`);
    t.strictSame(byKey(listeners[topic].taken), byKey(own), topic);
    t.ok(
      listeners[topic].batches.every(({ length }) => length > 0 && length <= 500),
      'batches are bounded',
    );
  }
}

async function failingHandler(t: Test, place: BusPlace): Promise<void> {
  const given: (readonly string[])[] = [];
  const listener = new Listener();
  const bus = await opened(t, place, {
    erasure: async (events) => {
      given.push(events.map(({ id }) => id));
      if (given.length <= 2) throw new Error('the store is away');
      await listener.take(events);
    },
  });
  const sent = Array.from({ length: 20 }, (_, n) => erasure(n));
  const relayed = relay(bus, sent);
  await until(() => given.length > 0, 'the first failure');
  // A bus that keeps nothing leaves in the outbox what was not taken.
  if (place.keeps) await until(() => bus.lag().get('erasure')! > 0, 'a process that lags');
  await relayed;
  await until(() => listener.has(...sent), 'all of it');
  await until(() => bus.lag().get('erasure') === 0, 'a process that is not');
  t.strictSame([...bus.lag().keys()], ['erasure'], 'of what it listens to');
  t.ok(given.length > 2);
  t.strictSame(given[1], given[0]);
  t.strictSame(given[2], given[0]);
  t.strictSame(byKey(listener.taken), byKey(sent));
  t.strictSame(await bus.deadLetters('erasure', 10), [], 'a failure of the store makes no dead letter');
}

async function deadLetters(t: Test, place: BusPlace): Promise<void> {
  const poisoned = new Set([usage(1, 1), usage(1, 3), usage(2, 0)].map(({ id }) => id));
  const listener = new Listener();
  const take: EventHandler = async (events) => {
    if (events.some(({ id }) => poisoned.has(id))) throw new PoisonError('the partner is not known');
    await listener.take(events);
  };
  const reported: Topic[] = [];
  const bus = await opened(t, place, { usage: take }, (topic) => void reported.push(topic));
  const sent = [usage(1, 0), usage(1, 1), usage(1, 2), usage(1, 3), usage(1, 4), usage(2, 0), usage(2, 1)];
  const good = sent.filter(({ id }) => !poisoned.has(id));
  await relay(bus, sent);
  await until(() => listener.has(...good), 'the rest');
  t.strictSame(byKey(listener.taken), byKey(good));
  await until(
    async () => reported.length >= 3 && (await bus.deadLetters('usage', 10)).length === 3,
    'three dead letters, each reported',
  );
  t.strictSame(reported, ['usage', 'usage', 'usage']);
  const letters = await bus.deadLetters('usage', 10);
  t.strictSame(new Set(letters.map(({ id }) => id)), poisoned);
  t.ok(
    letters.every(
      (letter) =>
        letter.topic === 'usage' &&
        letter.kind === 'units_counted' &&
        letter.reason === 'the partner is not known' &&
        letter.at > AT,
    ),
  );
  t.equal(new Set(letters.map(({ position }) => position)).size, 3);
  t.strictSame(await bus.deadLetters('usage', 2), letters.slice(0, 2), 'oldest first');
  t.strictSame(await bus.deadLetters('erasure', 10), []);
  t.strictSame(await bus.replayDeadLetters('erasure', 10), 0);

  // Two are deliverable now. The third becomes a dead letter again, at the end.
  const [first, second, third] = letters.map(({ id }) => id!);
  poisoned.delete(first!);
  t.equal(await bus.replayDeadLetters('usage', 1), 1);
  await until(() => listener.taken.some(({ id }) => id === first), 'the first again');
  t.strictSame(
    (await bus.deadLetters('usage', 10)).map(({ id }) => id),
    [second, third],
  );
  await bus.close();

  const again = await opened(t, place, { usage: take });
  t.strictSame(
    (await again.deadLetters('usage', 10)).map(({ id }) => id),
    [second, third],
    'the place among the dead letters outlives the process',
  );
  poisoned.delete(third!);
  t.equal(await again.replayDeadLetters('usage', 10), 2);
  await until(
    async () =>
      listener.taken.some(({ id }) => id === third) && (await again.deadLetters('usage', 10)).length === 1,
    'the second is back',
  );
  t.strictSame(
    (await again.deadLetters('usage', 10)).map(({ id }) => id),
    [second],
  );
  t.strictSame(
    new Set(listener.taken.map(({ id }) => id)),
    new Set(sent.map(({ id }) => id).filter((id) => id !== second)),
  );

  const recorded: (readonly (string | undefined)[])[] = [];
  await t.rejects(
    again.discardDeadLetters('usage', 10, () => Promise.reject(new Error('the store is away'))),
  );
  t.equal((await again.deadLetters('usage', 10)).length, 1, 'nothing is discarded without a record');
  const discarded = await again.discardDeadLetters('usage', 10, async (letters) => {
    recorded.push(letters.map(({ id }) => id));
  });
  t.strictSame(
    discarded.map(({ id }) => id),
    [second],
  );
  t.strictSame(recorded, [[second]]);
  t.strictSame(await again.deadLetters('usage', 10), []);
  t.equal(await again.replayDeadLetters('usage', 10), 0);
  t.strictSame(await again.discardDeadLetters('usage', 10, async () => undefined), []);
}

async function orderAfterFailure(t: Test, place: BusPlace): Promise<void> {
  const listener = new Listener();
  let failures = 3;
  const bus = await opened(t, place, {
    usage: async (events) => {
      if (failures-- > 0) throw new Error('the store is away');
      await listener.take(events);
    },
  });
  const sent = Array.from({ length: 30 }, (_, n) => usage(1, n));
  // Waits for the connection, because the first one may be slow.
  await relay(bus, [erasure(0)]);
  // All at once, because later ones must not overtake the first.
  const results = await Promise.allSettled([
    bus.publish(sent.slice(0, 10)),
    bus.publish(sent.slice(10, 20)),
    bus.publish(sent.slice(20)),
  ]);
  const refused = results.findIndex(({ status }) => status === 'rejected');
  if (refused >= 0)
    t.ok(
      results.slice(refused).every(({ status }) => status === 'rejected'),
      'nothing after one that was refused is taken',
    );
  await relay(bus, sent);
  await until(() => listener.has(...sent), 'all of it');
  t.strictSame(
    listener.taken.map(({ id }) => id),
    sent.map(({ id }) => id),
  );
}

async function closing(t: Test, place: BusPlace): Promise<void> {
  let entered: (() => void) | undefined;
  let letOut: (() => void) | undefined;
  const inside = new Promise<void>((resolve) => (entered = resolve));
  const gate = new Promise<void>((resolve) => (letOut = resolve));
  let done = false;
  const first = new Listener();
  const bus = await opened(t, place, {
    retention: async (events) => {
      entered?.();
      await gate;
      await first.take(events);
      done = true;
    },
  });
  const sent = [...retention(1), ...retention(2)];
  const publishing = bus.publish(sent).catch(() => 'refused');
  await inside;
  let closed = false;
  const end = bus.close().then(() => (closed = true));
  await sleep(50);
  t.notOk(closed, 'the batch is still being handled');
  letOut?.();
  await end;
  t.ok(done);
  await publishing;
  const handled = first.taken.length;
  t.ok(handled > 0);
  await t.resolves(bus.close(), 'a second time');
  await t.rejects(bus.publish(sent), { code: 'unavailable', reason: 'bus_unavailable' });

  const second = new Listener();
  const next = await opened(t, place, { retention: second.take });
  const more = retention(3);
  await relay(next, [...sent, ...more]);
  const taken = () => new Set([...first.taken, ...second.taken].map(({ id }) => id));
  await until(
    () => second.has(...more) && taken().size >= sent.length + more.length,
    'what came later, and the rest',
  );
  t.strictSame(taken(), new Set([...sent, ...more].map(({ id }) => id)), 'nothing is lost between the two');
}

/**
 * Tests the isolation of two of five events that can never be taken. One failure of the store comes while the
 * last event is delivered alone.
 */
async function isolation(t: Test, place: BusPlace): Promise<void> {
  const sent = Array.from({ length: 5 }, (_, n) => usage(1, n));
  const [, second, , fourth, last] = sent.map(({ id }) => id);
  const poisoned = [second!, fourth!];
  const good = sent.filter(({ id }) => !poisoned.includes(id));
  const calls: (readonly string[])[] = [];
  const listener = new Listener();
  const reported: Topic[] = [];
  let failures = 0;
  const take: EventHandler = async (events) => {
    const ids = events.map(({ id }) => id);
    calls.push(ids);
    if (ids.some((id) => poisoned.includes(id))) throw new PoisonError('not this one');
    if (ids.length === 1 && ids[0] === last && (failures += 1) === 1) throw new Error('the store is away');
    await listener.take(events);
  };
  const bus = await opened(t, place, { usage: take }, (topic) => void reported.push(topic));
  await relay(bus, sent);
  await until(() => reported.length >= 2 && listener.has(...good), 'the rest');
  const split = calls.findIndex((ids) => ids.length > 1 && ids.some((id) => poisoned.includes(id)));
  t.ok(split >= 0, 'some came together');
  const together = calls[split]!;
  t.strictSame(
    calls.slice(split + 1, split + 1 + together.length),
    together.map((id) => [id]),
    'given again one by one, in their order',
  );
  for (const id of poisoned) {
    const own = calls.filter((ids) => ids.includes(id));
    t.strictSame(
      own.filter(({ length }) => length === 1).length,
      1,
      'isolated once, also when others failed later',
    );
    t.strictSame(own.at(-1), [id], 'and not given again');
  }
  t.strictSame(
    (await bus.deadLetters('usage', 10)).map(({ id }) => id),
    poisoned,
  );
  t.strictSame(reported, ['usage', 'usage']);
  t.ok(failures > 0, 'the world failed in between');
}

async function replay(t: Test, place: BusPlace): Promise<void> {
  const bus = await opened(t, place, {});
  const sent = Array.from({ length: 700 }, (_, n) => erasure(n));
  await relay(bus, sent);
  const listener = new Listener();
  const all = { taken: place.keeps ? sent.length : 0, left: 0 };
  t.strictSame(await bus.replay('erasure', listener.take), all);
  if (place.keeps) t.strictSame(byKey(listener.taken), byKey(sent));
  t.strictSame(await bus.replay('usage', listener.take), { taken: 0, left: 0 }, 'an empty topic');
  t.strictSame(await bus.replay('erasure', listener.take), all, 'as often as one likes');
  const poisoned = new Set([erasure(3), erasure(600)].map(({ id }) => id));
  const rest = new Listener();
  const replayed = await bus.replay('erasure', async (events) => {
    if (events.some(({ id }) => poisoned.has(id))) throw new PoisonError('not this one');
    await rest.take(events);
  });
  if (place.keeps)
    t.strictSame(replayed, { taken: sent.length - 2, left: 2 }, 'it passes over what no handler accepts');
  if (place.keeps) t.strictSame(byKey(rest.taken), byKey(sent.filter(({ id }) => !poisoned.has(id))));
  if (place.keeps)
    await t.rejects(
      bus.replay('erasure', () => Promise.reject(new Error('the store is away'))),
      "what goes wrong is the caller's",
    );
}

async function refusals(t: Test, place: BusPlace): Promise<void> {
  const bus = await place.open();
  t.teardown(() => bus.close());
  const listener = new Listener();
  bus.handle('erasure', listener.take);
  t.throws(() => bus.handle('erasure', listener.take), 'a second handler');
  await bus.start();
  t.throws(() => bus.handle('usage', listener.take), 'after the start');
  await t.resolves(bus.publish([]));
  await t.resolves(relay(bus, [usage(1, 0)]), 'it has no handler');
}
