import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import type { loadLibrary } from '../../src/service/adapters/kafka/client.js';
import { Outgoing } from '../../src/service/adapters/kafka/outgoing.js';
import { createEventRelay } from '../../src/service/background/relay.js';
import type { ServiceEvent, Topic } from '../../src/service/domain/events.js';
import type { Settled } from '../../src/service/ports/bus.js';
import { erasure, retention, usage } from '../bus-contract/suite.js';
import { MemoryOutbox } from '../fixtures/memory-outbox.js';
import { until } from '../fixtures/until.js';

type Report = (error: Error | null, report: { readonly opaque: number; readonly offset: number }) => void;

/** A broker for the library's producer. Some topics acknowledge nothing. */
class Broker {
  readonly topics = new Set(['erasure', 'usage', 'retention']);
  readonly silent = new Set<string>();
  /** The sent values, by topic. */
  readonly sent = new Map<string, string[]>();
  #report: Report = () => undefined;
  #acknowledged: number[] = [];
  #held: number[] = [];

  heal(): void {
    this.silent.clear();
    this.#acknowledged.push(...this.#held.splice(0));
  }

  get library(): Awaited<ReturnType<typeof loadLibrary>> {
    const broker = this;
    class Producer {
      #isConnected = false;
      on(event: string, listener: Report): this {
        if (event === 'delivery-report') broker.#report = listener;
        return this;
      }
      connect(_: object, done: (error: null, metadata: object) => void): void {
        this.#isConnected = true;
        setImmediate(() => done(null, broker.#metadata()));
      }
      getMetadata(_: object, done: (error: null, metadata: object) => void): void {
        setImmediate(() => done(null, broker.#metadata()));
      }
      isConnected(): boolean {
        return this.#isConnected;
      }
      produce(topic: string, _: null, value: Buffer, _key: string, _at: null, opaque: number): void {
        broker.sent.set(topic, [...(broker.sent.get(topic) ?? []), value.toString()]);
        (broker.silent.has(topic) ? broker.#held : broker.#acknowledged).push(opaque);
      }
      poll(): void {
        for (const opaque of broker.#acknowledged.splice(0)) broker.#report(null, { opaque, offset: opaque });
      }
      disconnect(_: number, done: () => void): void {
        done();
      }
    }
    return { Producer } as unknown as Awaited<ReturnType<typeof loadLibrary>>;
  }

  #metadata(): object {
    return { topics: [...this.topics].map((name) => ({ name })) };
  }
}

function setUp() {
  const broker = new Broker();
  const outgoing = new Outgoing(broker.library, { brokers: [] }, () => undefined);
  const stores = new MemoryOutbox();
  const bus = {
    async publish(events: readonly ServiceEvent[], onSettled: Settled = () => undefined): Promise<void> {
      const reports = await outgoing.deliver(
        events.map((event) => ({
          name: event.id,
          topic: event.topic,
          key: event.key,
          value: Buffer.from(event.id),
          headers: {},
        })),
      );
      await Promise.all(
        reports.map((report, i) =>
          report.then(
            () => onSettled(events[i]!),
            (error: unknown) => onSettled(events[i]!, error),
          ),
        ),
      );
    },
  };
  const observer = { events: () => undefined, fault: () => undefined };
  const relay = createEventRelay({ stores, bus, observer });
  const sentOf = (topic: Topic) => broker.sent.get(topic) ?? [];
  return { broker, outgoing, stores, relay, sentOf };
}

const ids = (events: readonly ServiceEvent[]) => events.map(({ id }) => id);

t.test('a topic that acknowledges nothing holds up no other one, and nothing is sent twice', async (t) => {
  const { broker, stores, relay, sentOf } = setUp();
  broker.silent.add('retention');
  const stuck = Array.from({ length: 250 }, (_, n) => retention(n)).flat();
  const well = Array.from({ length: 2000 }, (_, n) => usage(1, n));
  stores.add([...stuck, ...well]);
  relay.start();
  await until(() => stores.countWaiting('usage') === 0, 'all that is acknowledged is marked');
  t.strictSame(sentOf('usage'), ids(well), 'each once, in the order of the key');
  stores.add([usage(1, 2000), erasure(1)]);
  await until(() => stores.countWaiting() === stuck.length, 'what came later');
  // As long as a sender waited for the reports of a whole batch.
  await sleep(11_000);
  t.strictSame(sentOf('usage'), ids([...well, usage(1, 2000)]), 'not once more');
  const held = sentOf('retention').length;
  t.ok(held > 500 && held === new Set(sentOf('retention')).size, 'nor what the producer still holds');
  broker.heal();
  await until(() => stores.countWaiting() === 0, 'the rest');
  t.strictSame(sentOf('retention').toSorted(), ids(stuck).toSorted(), 'each once');
  await relay.stop();
});

t.test('a message to a missing topic fails alone', async (t) => {
  const { broker, outgoing } = setUp();
  broker.topics.delete('erasure');
  const message = (topic: string, name: string) => ({
    name,
    topic,
    key: 'key',
    value: Buffer.from(name),
    headers: {},
  });
  const [missing, there] = await outgoing.deliver([message('erasure', 'a'), message('usage', 'b')]);
  await t.rejects(missing!, { name: 'KafkaError', message: /takemark operator migrate/ });
  await t.resolves(there!);
  t.notOk(broker.sent.has('erasure'));
});
