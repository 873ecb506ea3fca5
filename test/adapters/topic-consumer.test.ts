import t from 'tap';
import {
  type ConsumerClient,
  KafkaError,
  type Message,
  type Rebalance,
  type TopicPartition,
} from '../../src/service/adapters/kafka/client.js';
import { encodeEvent, eventHeaders } from '../../src/service/adapters/kafka/event-message.js';
import { ReadingWatch } from '../../src/service/adapters/kafka/reading-watch.js';
import { TopicConsumer } from '../../src/service/adapters/kafka/topic-consumer.js';
import { proofErased, type ServiceEvent } from '../../src/service/domain/events.js';
import { authenticator } from '../fixtures/authentication.js';
import { until } from '../fixtures/until.js';

function messageOf(event: ServiceEvent, offset: number): Message {
  const value = encodeEvent(event);
  return {
    topic: 'takemark.erasure',
    partition: 0,
    offset,
    key: Buffer.from(event.key),
    value,
    headers: Object.entries(eventHeaders(authenticator, event, value)).map(([name, text]) => ({
      [name]: Buffer.from(text),
    })),
  } as unknown as Message;
}

const PARTITION: TopicPartition = { topic: 'takemark.erasure', partition: 0 };

/** A client of a member. Its polls return the given answers one after another, and then nothing. */
class MemberDouble {
  readonly rebalances: Rebalance[] = [{ kind: 'assign', partitions: [PARTITION] }];
  readonly commitsUnderWay = 0;
  readonly isAnswered = true;
  readonly unread = 0;
  readonly seen: string[] = [];
  held: readonly TopicPartition[] = [];
  /** The first and the next offset of the partition. */
  offsets = { low: 0, high: 7 };
  readonly #polls: (() => readonly Message[])[];

  constructor(...polls: (() => readonly Message[])[]) {
    this.#polls = polls;
  }

  answer(poll: () => readonly Message[]): void {
    this.#polls.push(poll);
  }

  subscribe(): void {
    this.seen.push('subscribe');
  }

  unsubscribe(): void {
    this.held = [];
  }

  assign(partitions: readonly TopicPartition[]): void {
    this.seen.push('assign');
    this.held = partitions;
  }

  unassign(): void {
    this.seen.push('unassign');
    this.held = [];
  }

  commit(): void {
    this.seen.push('commit');
  }

  async close(): Promise<void> {
    this.seen.push('close');
  }

  async committed(): Promise<ReadonlyMap<number, number>> {
    return new Map([[0, 7]]);
  }

  async bounds(): Promise<{ readonly low: number; readonly high: number }> {
    return this.offsets;
  }

  async poll(): Promise<readonly Message[]> {
    return this.#polls.shift()?.() ?? [];
  }
}

function consume(client: MemberDouble, watch = new ReadingWatch()) {
  const faults: unknown[] = [];
  const handled: string[] = [];
  const consumer = new TopicConsumer({
    topic: 'erasure',
    name: 'takemark.erasure',
    reader: { authenticator, acceptWithoutMac: false },
    handler: async (events) => void handled.push(...events.map(({ id }) => id)),
    connect: async () => client as unknown as ConsumerClient,
    deadLetter: async () => undefined,
    fault: (error) => faults.push(error),
    watch,
  });
  return { consumer, faults, handled };
}

const EVENT = proofErased({ proofId: 'prf_1', partnerId: 'ptr_1', erasedAt: 1_700_000_000 });

function refuse(): never {
  throw new KafkaError('Broker: Not coordinator', 16);
}

t.test('after an error of the group its partitions are assigned again: they may be unread', async (t) => {
  // Returns its message after the second assignment, because the coordinator has refused the first offset
  // query.
  class Refused extends MemberDouble {
    override assign(partitions: readonly TopicPartition[]): void {
      super.assign(partitions);
      if (this.seen.filter((call) => call === 'assign').length === 2)
        this.answer(() => [messageOf(EVENT, 7)]);
    }
  }
  const client = new Refused(() => [], refuse);
  const { consumer, faults, handled } = consume(client);
  await until(() => handled.length > 0);
  await consumer.close();
  t.strictSame(handled, [EVENT.id]);
  t.equal(faults.length, 1);
  t.match(faults[0], { message: /Not coordinator/ }, 'and it is reported');
  t.strictSame(client.seen, ['subscribe', 'assign', 'assign', 'commit', 'close'], 'by the same client');
});

t.test('an assignment that waits gives way to what the group says after it', async (t) => {
  const client = new MemberDouble();
  client.rebalances.push({ kind: 'revoke', partitions: [PARTITION] });
  const { consumer } = consume(client);
  await until(() => client.seen.length > 1);
  await consumer.close();
  t.strictSame(client.seen, ['subscribe', 'unassign', 'close']);
});

t.test('pauses grow between assignments of the same partitions', async (t) => {
  const assignedAt: number[] = [];
  class Timed extends MemberDouble {
    override assign(partitions: readonly TopicPartition[]): void {
      super.assign(partitions);
      assignedAt.push(performance.now());
      // Refuses each time.
      this.answer(refuse);
    }
  }
  const { consumer } = consume(new Timed());
  await until(() => assignedAt.length === 5);
  await consumer.close();
  const [, second, third, fourth, fifth] = assignedAt as [number, number, number, number, number];
  const gaps = [third - second, fourth - third, fifth - fourth];
  t.ok(
    gaps.every((gap, at) => gap >= 1000 * 2 ** at - 5),
    `${gaps.map(Math.round).join(', ')} ms are 1, 2 and 4 s or more`,
  );
});

t.test('nothing is assigned after an error when the group may have revoked it', async (t) => {
  const client: MemberDouble = new MemberDouble(
    () => [],
    refuse,
    () => {
      client.rebalances.push({ kind: 'revoke', partitions: [PARTITION] });
      return [];
    },
  );
  const { consumer } = consume(client);
  await until(() => client.seen.includes('unassign'));
  await consumer.close();
  t.strictSame(client.seen, ['subscribe', 'assign', 'unassign', 'close']);
});

t.test('a partition is assigned again when its messages do not come, without an error', async (t) => {
  // Returns its message after the second assignment.
  class Unread extends MemberDouble {
    override offsets = { low: 0, high: 8 };
    override assign(partitions: readonly TopicPartition[]): void {
      super.assign(partitions);
      if (this.seen.filter((call) => call === 'assign').length === 2)
        this.answer(() => [messageOf(EVENT, 7)]);
    }
  }
  const client = new Unread();
  const { consumer, faults, handled } = consume(client, new ReadingWatch(100));
  await until(() => handled.length > 0);
  await consumer.close();
  t.strictSame(handled, [EVENT.id]);
  t.match(faults[0], { message: /Kafka does not deliver them/ });
  t.strictSame(client.seen.slice(0, 4), ['subscribe', 'assign', 'assign', 'commit']);
});

t.test('a partition is left alone that is read to its end, or whose messages have expired', async (t) => {
  for (const offsets of [
    { low: 0, high: 7 },
    { low: 9, high: 9 },
  ]) {
    const client = new MemberDouble();
    client.offsets = offsets;
    let looks = 0;
    const { consumer, faults } = consume(
      Object.assign(client, {
        async bounds() {
          looks += 1;
          return offsets;
        },
      }),
      new ReadingWatch(50),
    );
    await until(() => looks > 4);
    await consumer.close();
    t.strictSame(faults, []);
    t.strictSame(client.seen, ['subscribe', 'assign', 'close']);
  }
});

t.test('a partition is left alone whose reading goes on', async (t) => {
  const client = new MemberDouble(() => []);
  client.offsets = { low: 0, high: 1000 };
  let looks = 0;
  let offset = 7;
  const { consumer, faults } = consume(
    Object.assign(client, {
      async bounds() {
        looks += 1;
        client.answer(() => [messageOf(EVENT, offset++)]);
        return client.offsets;
      },
    }),
    new ReadingWatch(50),
  );
  await until(() => looks > 4);
  await consumer.close();
  t.strictSame(faults, []);
  t.equal(client.seen.filter((call) => call === 'assign').length, 1);
});
