import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { type ConsumerClient, KafkaError, type Message } from '../../src/adapters/kafka/client.js';
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

/** A member of the group that answers polls as `polls` says, one after another, and with nothing behind that. */
function member(polls: readonly (readonly Message[] | Error)[]) {
  const left = [...polls];
  const seen = { subscribed: 0, committed: 0, closed: 0 };
  const client = {
    rebalances: [],
    commitsUnderWay: 0,
    isAnswered: true,
    unread: 0,
    subscribe: () => void (seen.subscribed += 1),
    unsubscribe: () => undefined,
    holds: () => false,
    pause: () => undefined,
    resume: () => undefined,
    commit: () => void (seen.committed += 1),
    close: async () => void (seen.closed += 1),
    async poll() {
      const next = left.shift();
      if (next instanceof Error) throw next;
      return next ?? [];
    },
  } as unknown as ConsumerClient;
  return { client, seen };
}

t.test('an error of the group has the consumer join anew: partitions may be left unread', async (t) => {
  const event = proofErased({ proofId: 'prf_1', partnerId: 'ptr_1', erasedAt: 1_700_000_000 });
  const refusal = new KafkaError('Broker: Not coordinator', 16);
  // The client that met the refusal never gives a message of what it holds.
  const members = [member([[], refusal]), member([[messageOf(event, 7)]])];
  const faults: unknown[] = [];
  const handled: string[] = [];
  let joined = 0;
  const consumer = new TopicConsumer({
    topic: 'erasure',
    name: 'takemark.erasure',
    reader: { authenticator, acceptWithoutMac: false },
    handler: async (events) => void handled.push(...events.map(({ id }) => id)),
    connect: async () => members[Math.min(joined++, members.length - 1)]!.client,
    deadLetter: async () => undefined,
    fault: (error) => faults.push(error),
  });
  for (const deadline = Date.now() + 60_000; handled.length === 0 && Date.now() < deadline; await sleep(20));
  await consumer.close();
  t.strictSame(handled, [event.id]);
  t.strictSame(faults, [refusal], 'and says why');
  t.equal(joined, 2);
  t.strictSame(
    members.map(({ seen }) => seen),
    [
      { subscribed: 1, committed: 0, closed: 1 },
      { subscribed: 1, committed: 1, closed: 1 },
    ],
  );
});
