import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import {
  type ConsumerClient,
  KafkaError,
  type Message,
  type TopicPartition,
} from '../../src/adapters/kafka/client.js';
import { encodeEvent, eventHeaders } from '../../src/adapters/kafka/event-message.js';
import { TopicConsumer } from '../../src/adapters/kafka/topic-consumer.js';
import { proofErased, type ServiceEvent } from '../../src/domain/events.js';
import { authenticator } from '../fixtures/authentication.js';

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

t.test(
  'after an error of the group its partitions are assigned again: they may be left unread',
  async (t) => {
    const event = proofErased({ proofId: 'prf_1', partnerId: 'ptr_1', erasedAt: 1_700_000_000 });
    const refusal = new KafkaError('Broker: Not coordinator', 16);
    const partition: TopicPartition = { topic: 'takemark.erasure', partition: 0 };
    // Gives its message only to who asks for the partition anew once the coordinator has refused to say where to begin.
    const left: (readonly Message[] | Error)[] = [[], refusal];
    const seen = { joined: 0, assigned: 0, committed: 0, closed: 0 };
    let held: readonly TopicPartition[] = [];
    const client = {
      rebalances: [{ kind: 'assign', partitions: [partition] }],
      commitsUnderWay: 0,
      isAnswered: true,
      unread: 0,
      get held() {
        return held;
      },
      subscribe: () => undefined,
      unsubscribe: () => void (held = []),
      assign(partitions: readonly TopicPartition[]) {
        held = partitions;
        seen.assigned += 1;
        if (seen.assigned === 2) left.push([messageOf(event, 7)]);
      },
      commit: () => void (seen.committed += 1),
      close: async () => void (seen.closed += 1),
      async poll() {
        const next = left.shift();
        if (next instanceof Error) throw next;
        return next ?? [];
      },
    } as unknown as ConsumerClient;
    const faults: unknown[] = [];
    const handled: string[] = [];
    const consumer = new TopicConsumer({
      topic: 'erasure',
      name: 'takemark.erasure',
      reader: { authenticator, acceptWithoutMac: false },
      handler: async (events) => void handled.push(...events.map(({ id }) => id)),
      connect: async () => {
        seen.joined += 1;
        return client;
      },
      deadLetter: async () => undefined,
      fault: (error) => faults.push(error),
    });
    for (
      const deadline = Date.now() + 60_000;
      handled.length === 0 && Date.now() < deadline;
      await sleep(20)
    );
    await consumer.close();
    t.strictSame(handled, [event.id]);
    t.strictSame(faults, [refusal], 'and says why');
    t.strictSame(seen, { joined: 1, assigned: 2, committed: 1, closed: 1 });
  },
);
