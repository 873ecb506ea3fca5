import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { Authenticator } from '../../src/core/codec/authenticator.js';
import { encodeMessagePack, type MessagePackValue } from '../../src/core/codec/messagepack.js';
import { defined } from '../../src/core/domain/defined.js';
import { DomainError } from '../../src/core/domain/errors.js';
import { type KafkaBusOptions, openKafkaBus } from '../../src/service/adapters/kafka/bus.js';
import {
  type KafkaConnection,
  KafkaError,
  loadLibrary,
  type OutgoingMessage,
  provesPasswords,
} from '../../src/service/adapters/kafka/client.js';
import {
  encodeEvent,
  eventHeaders,
  UNAUTHENTICATED,
} from '../../src/service/adapters/kafka/event-message.js';
import { createTopics } from '../../src/service/adapters/kafka/topics.js';
import { createEventRelay } from '../../src/service/background/relay.js';
import { type ServiceEvent, TOPICS, type Topic } from '../../src/service/domain/events.js';
import type { EventBus } from '../../src/service/ports/bus.js';
import {
  type BusPlace,
  busContract,
  byKey,
  erasure,
  Listener,
  relay,
  retention,
  usage,
} from '../bus-contract/suite.js';
import { again } from '../fixtures/again.js';
import { authenticated, authenticator, TEST_SECRET } from '../fixtures/authentication.js';
import { MemoryOutbox } from '../fixtures/memory-outbox.js';
import { until } from '../fixtures/until.js';
import {
  dropTopic,
  dropTopics,
  forward,
  freePort,
  makeTopic,
  makeTopics,
  partitionsOf,
  produceCompressed,
  produceRaw,
  takeAndForget,
} from './kafka-trials.js';

// An empty variable counts as not set, as in the service's configuration.
const BROKERS = process.env['TAKEMARK_KAFKA'] || undefined;
const {
  TAKEMARK_SECURE_KAFKA: SECURE,
  TAKEMARK_SECURE_USER: username = '',
  TAKEMARK_SECURE_PASSWORD: password = '',
  TAKEMARK_SECURE_CA: authority = '',
} = process.env;
const brokers = (BROKERS ?? '').split(',');

function freshPrefix(): string {
  return `takemark-test-${randomBytes(5).toString('hex')}`;
}

async function makePlace(): Promise<{ readonly connection: KafkaBusOptions; remove(): Promise<void> }> {
  const prefix = freshPrefix();
  const connection: KafkaBusOptions = {
    brokers,
    prefix,
    group: prefix,
    onFault: () => undefined,
    ...authenticated,
  };
  await makeTopics({ ...connection, partitions: 3, replication: 1 });
  return { connection, remove: () => dropTopics(connection, prefix) };
}

async function place(): Promise<BusPlace> {
  const { connection, remove } = await makePlace();
  return {
    open: async (onDeadLetter) =>
      patient(await openKafkaBus({ ...connection, ...defined({ onDeadLetter }) })),
    keeps: true,
    remove,
  };
}

const isUnanswered = (error: unknown): boolean =>
  error instanceof DomainError && error.reason === 'bus_unavailable';

/** Returns a bus whose reads of dead letters and replays are repeated if a broker paused. */
function patient(bus: EventBus): EventBus {
  return {
    handle: (topic, handler) => bus.handle(topic, handler),
    start: () => bus.start(),
    publish: (events, onSettled) => bus.publish(events, onSettled),
    lag: () => bus.lag(),
    ping: () => bus.ping(),
    deadLetters: (topic, limit) => again(() => bus.deadLetters(topic, limit), isUnanswered),
    replay: (topic, handler) => again(() => bus.replay(topic, handler), isUnanswered),
    replayDeadLetters: (topic, limit) => again(() => bus.replayDeadLetters(topic, limit), isUnanswered),
    discardDeadLetters: (topic, limit, record) =>
      again(() => bus.discardDeadLetters(topic, limit, record), isUnanswered),
    close: () => bus.close(),
  };
}

async function topics(t: Test): Promise<KafkaBusOptions> {
  const { connection, remove } = await makePlace();
  t.teardown(remove);
  return connection;
}

async function opened(t: Test, options: KafkaBusOptions, listener?: Listener): Promise<EventBus> {
  const bus = await openKafkaBus(options);
  t.teardown(() => bus.close());
  if (listener !== undefined) for (const topic of TOPICS) bus.handle(topic, listener.take);
  await bus.start();
  return bus;
}

await t.test(
  'a broker',
  {
    skip:
      BROKERS === undefined && 'TAKEMARK_KAFKA is not set: npm run services:up starts a server and prints it',
  },
  async (t) => {
    await t.test('Kafka keeps the contract of a bus', (t) => busContract(t, place));
    await t.test('processes of a group share the events', sharing);
    await t.test('what was taken and not committed comes again', takenAndForgotten);
    await t.test('a message goes to the dead letters when it is not an event', malformed);
    await t.test('a message goes to the dead letters when another installation wrote it', strangers);
    await t.test('Kafka comes after the service', laterBroker);
    await t.test('topics are made once', making);
    await t.test('a topic that is missing or deleted holds up no other one', missingTopic);
  },
);

await t.test(
  'a broker that demands a password and TLS',
  { skip: !SECURE && 'TAKEMARK_SECURE_KAFKA is not set' },
  async (t) =>
    // A system's librdkafka may be too old for SCRAM with Kafka 4. Then the error must say so. In CI it must
    // not be too old.
    process.env['CI'] || provesPasswords(await loadLibrary()) ? secured(t) : refusedByLibrary(t),
);

async function sharing(t: Test): Promise<void> {
  const options = await topics(t);
  const listeners = [new Listener(), new Listener()] as const;
  const first = await opened(t, options, listeners[0]);
  const second = await opened(t, options, listeners[1]);
  const all = () => [...listeners[0].taken, ...listeners[1].taken];
  const sent: ServiceEvent[] = [];
  // Waits until both have a part, because a later member gets partitions of the first.
  for (let n = 0; listeners.some(({ taken }) => taken.length === 0); n += 1) {
    const events = [erasure(n), usage(n % 11, Math.floor(n / 11)), ...retention(n)];
    await relay(first, events);
    sent.push(...events);
  }
  const together = Array.from({ length: 500 }, (_, n) => erasure(100_000 + n));
  await relay(first, together);
  sent.push(...together);
  const ids = () => new Set(all().map(({ id }) => id));
  await until(() => ids().size === sent.length, 'all of it, to one or the other');
  await second.close();
  const rest = Array.from({ length: 200 }, (_, n) => erasure(200_000 + n));
  await relay(first, rest);
  await until(() => listeners[0].has(...rest), 'all of it, to the one that stays');
  t.strictSame(ids(), new Set([...sent, ...rest].map(({ id }) => id)));
  const twice = all().length - ids().size;
  t.equal(twice, 0, 'a rebalance hands over where it stopped');
}

async function takenAndForgotten(t: Test): Promise<void> {
  const options = await topics(t);
  const publisher = await opened(t, options);
  const sent = Array.from({ length: 40 }, (_, n) => usage(n % 5, Math.floor(n / 5)));
  await relay(publisher, sent);
  const forgotten = await takeAndForget(options, `${options.group}.usage`, `${options.prefix}.usage`);
  t.ok(forgotten.length > 0);
  const listener = new Listener();
  await opened(t, options, listener);
  await until(() => listener.has(...sent), 'all of it');
  t.strictSame(byKey(listener.taken), byKey(sent));
}

async function malformed(t: Test): Promise<void> {
  const options = await topics(t);
  const good = erasure(1);
  const { topic: _, ...document } = good;
  const packed = (value: unknown) => Buffer.from(encodeMessagePack(value as MessagePackValue));
  const bad: readonly (readonly [value: Buffer | null, reason: RegExp])[] = [
    [Buffer.from('{"v":1}'), /MessagePack document that this service would write/],
    [Buffer.concat([encodeEvent(good), Buffer.of(0)]), /malformed/],
    [null, /has no value/],
    [packed([1]), /schema version is missing/],
    [packed({ v: 2, ...document }), /schema version is unknown/],
    [
      packed({ v: 1, ...document, data: { proofId: 'prf_1', erasedAt: good.at } }),
      /data\.partnerId is missing/,
    ],
    [packed({ v: 1, ...document, data: { ...good.data, title: 'Take One' } }), /data has an unknown member/],
    [packed({ v: 1, ...document, more: true }), /the event has an unknown member/],
    [packed({ v: 1, ...document, kind: 'proof_lost' }), /no events of this kind/],
    [packed({ v: 1, ...document, at: -1 }), /at is not valid/],
    [
      packed({ v: 1, ...document, id: 'proof_erased/prf_2' }),
      /id does not match the value derived from data/,
    ],
    [encodeEvent(erasure(2)), /key of the message differs from the event's key/],
    [Buffer.alloc(40_000), /over_budget/],
  ];
  const topic = `${options.prefix}.erasure`;
  // An author with the secret makes all of these.
  const message = (value: Buffer | null): OutgoingMessage => ({
    topic,
    key: good.key,
    value,
    headers: eventHeaders(authenticator, good, value ?? Buffer.alloc(0)),
  });
  await produceCompressed(options, topic, Buffer.alloc(3_000_000));
  await produceRaw(options, [...bad.map(([value]) => message(value)), message(encodeEvent(good))]);
  const listener = new Listener();
  let deadLettered = 0;
  const bus = patient(
    await opened(t, { ...options, onDeadLetter: () => void (deadLettered += 1) }, listener),
  );
  // The message that is too large is in another partition, so it has no order with the rest.
  await until(
    () => listener.has(good) && deadLettered >= bad.length + 1,
    'the one that is good, and word of each that is not',
  );
  t.equal(deadLettered, bad.length + 1);
  t.strictSame(listener.taken, [good]);
  const tooLarge = /not authenticated.*; the event has 3000003 bytes, which is too large to keep/;
  const all = await bus.deadLetters('erasure', 100);
  const letters = all.filter(({ reason }) => !tooLarge.test(reason));
  t.equal(all.length, bad.length + 1);
  t.equal(letters.length, bad.length);
  for (const [index, [, reason]] of bad.entries()) t.match(letters[index]!.reason, reason);
  t.notMatch(
    JSON.stringify(letters.map(({ reason }) => reason)),
    /Take One|prf_/,
    'a reason holds nothing of the event',
  );
  t.strictSame([letters[4]!.id, letters[4]!.kind], [good.id, 'proof_erased'], 'what can be read of it');
  t.equal(letters[0]!.id, undefined);
  t.strictSame(
    await bus.replay('erasure', new Listener().take),
    { taken: 1, left: bad.length + 1 },
    'a replay passes over them',
  );
  // A dead letter that is put back becomes a dead letter again, with the same bytes.
  t.equal(await bus.replayDeadLetters('erasure', 100), bad.length + 1);
  await until(
    async () => (await bus.deadLetters('erasure', 100)).length === bad.length + 1,
    'all of them once more',
  );
  t.strictSame(
    new Set((await bus.deadLetters('erasure', 100)).map(({ reason }) => reason)),
    new Set(letters.map(({ reason }) => reason)),
  );
}

/** Tests messages with valid content from an author without the secret, or in a wrong topic or partition. */
async function strangers(t: Test): Promise<void> {
  const options = await topics(t);
  const good = erasure(1);
  const value = encodeEvent(good);
  const secret = { id: '0a1b2c3d', key: randomBytes(32) };
  const keys = { current: () => secret, find: () => secret };
  const [elsewhere] = retention(1);
  const { mac } = eventHeaders(authenticator, good, value);
  const forged: readonly (readonly [what: string, headers: OutgoingMessage['headers'], value?: Buffer])[] = [
    ['no code', { 'schema-version': '1', 'event-id': good.id }],
    ['a code of another secret under our key id', eventHeaders(new Authenticator(keys, 'test'), good, value)],
    [
      'a code of another environment',
      eventHeaders(
        new Authenticator({ current: () => TEST_SECRET, find: () => TEST_SECRET }, 'beta'),
        good,
        value,
      ),
    ],
    ['a code of another topic', eventHeaders(authenticator, elsewhere!, value)],
    ['a code of another event', eventHeaders(authenticator, good, encodeEvent(erasure(2)))],
    ['a key id that is not known', { mac: mac!.replace(/^[^.]+/, 'ffffffff') }],
    ['half a code', { mac: mac!.slice(0, -32) }],
    ['no digits', { mac: 'mac' }],
  ];
  const topic = `${options.prefix}.erasure`;
  await produceRaw(options, [
    ...forged.map(([, headers]) => ({ topic, key: good.key, value, headers })),
    { topic, key: good.key, value, headers: eventHeaders(authenticator, good, value) },
  ]);
  const listener = new Listener();
  const bus = patient(await opened(t, options, listener));
  await until(() => listener.has(good), 'the one that is ours');
  t.equal(listener.batches.flat().length, 1, 'and no other');
  const letters = await bus.deadLetters('erasure', 100);
  t.equal(letters.length, forged.length);
  for (const { reason } of letters) t.match(reason, UNAUTHENTICATED);
  t.equal(await bus.replayDeadLetters('erasure', 100), forged.length);
  await until(
    async () => (await bus.deadLetters('erasure', 100)).length === forged.length,
    'all of them once more',
  );
  t.equal(listener.batches.flat().length, 1, 'putting them back does not let them act either');
  t.strictSame(await bus.replay('erasure', new Listener().take), { taken: 1, left: 2 * forged.length });
  await bus.close();

  const lenient = new Listener();
  const accepting = patient(
    await opened(t, { ...options, acceptWithoutMac: true, group: `${options.group}-2` }, lenient),
  );
  await until(() => lenient.has(good), 'what has no code');
  const counted = await accepting.replay('erasure', new Listener().take);
  t.strictSame(
    counted,
    { taken: 3, left: 2 * (forged.length - 1) },
    'a wrong code is refused all the same: no version made one',
  );
}

async function laterBroker(t: Test): Promise<void> {
  const options = await topics(t);
  const port = await freePort();
  const faults: unknown[] = [];
  const listener = new Listener();
  const bus = await opened(
    t,
    { ...options, brokers: [`127.0.0.1:${port}`], onFault: (_, error) => faults.push(error) },
    listener,
  );
  const sent = Array.from({ length: 50 }, (_, n) => usage(1, n));
  await t.rejects(bus.publish(sent.slice(0, 20)), {
    code: 'unavailable',
    reason: 'bus_unavailable',
    retryAfterSeconds: 2,
  });
  await t.rejects(bus.deadLetters('usage', 1), { code: 'unavailable', reason: 'bus_unavailable' });
  await until(() => faults.length > 0, 'a reported fault');
  await t.rejects(bus.ping(), { code: 'unavailable', reason: 'bus_unavailable' });
  const proxy = await forward(port, brokers[0]!);
  t.teardown(() => proxy.close());
  await until(
    () =>
      bus.ping().then(
        () => true,
        () => false,
      ),
    'an answer, and consumers that are connected',
  );
  await relay(bus, sent);
  await until(() => listener.has(...sent), 'all of it');
  t.strictSame(listener.taken, sent, 'in its order');
}

async function making(t: Test): Promise<void> {
  const prefix = freshPrefix();
  const options: KafkaBusOptions = {
    brokers,
    prefix,
    group: prefix,
    onFault: () => undefined,
    ...authenticated,
  };
  t.teardown(() => dropTopics(options, prefix));
  const bus = await opened(t, options);
  const refused = await refusal(() => bus.publish([erasure(1)]), /takemark operator migrate/);
  t.ok(
    refused instanceof DomainError &&
      refused.cause instanceof KafkaError &&
      refused.cause.message.includes('takemark operator migrate'),
    'nothing is sent to topics that were not created',
  );
  const made = await Promise.all(
    [1, 2, 3].map(() => again(() => createTopics({ ...options, partitions: 5, replication: 1 }))),
  );
  t.strictSame(
    new Set(made.flat()),
    new Set(TOPICS.flatMap((topic) => [`${prefix}.${topic}`, `${prefix}.${topic}.dlq`])),
  );
  t.strictSame(
    await again(() => createTopics({ ...options, partitions: 9, replication: 1 })),
    [],
    'what is there stays as it is',
  );
  const partitions = (name: string) => again(() => partitionsOf(options, `${prefix}.${name}`));
  for (const topic of TOPICS)
    t.strictSame([await partitions(topic), await partitions(`${topic}.dlq`)], [5, 1]);
  await t.resolves(relay(bus, [erasure(1)]), 'without another start');
}

/** Returns the events of an outbox: more than one batch that is stuck, followed by some that are not. */
function stuckAndWell(stuck: readonly ServiceEvent[]): readonly ServiceEvent[] {
  return [...stuck, ...Array.from({ length: 600 }, (_, n) => usage(n % 20, Math.floor(n / 20)))];
}

/**
 * Starts a relay.
 * @returns the outbox, and what it reported
 */
async function relayed(t: Test, options: KafkaBusOptions, events: readonly ServiceEvent[]) {
  const bus = await openKafkaBus(options);
  const stores = new MemoryOutbox();
  stores.add(events);
  const faults: unknown[] = [];
  const published: Record<Topic, number> = { erasure: 0, usage: 0, retention: 0 };
  const relay = createEventRelay({
    stores,
    bus,
    observer: {
      events: (topic, _, count) => void (published[topic] += count),
      fault: (_, error) => void faults.push(error),
    },
  });
  t.teardown(async () => {
    await relay.stop();
    await bus.close();
  });
  relay.start();
  return { stores, bus, faults, published };
}

/** Returns every message of a topic, with repetitions. */
async function held(bus: EventBus, topic: Topic): Promise<readonly ServiceEvent[]> {
  const events: ServiceEvent[] = [];
  await again(async () => {
    events.length = 0;
    await bus.replay(topic, async (batch) => void events.push(...batch));
  }, isUnanswered);
  return events;
}

async function missingTopic(t: Test): Promise<void> {
  const options = await topics(t);
  const name = `${options.prefix}.erasure`;
  await dropTopic(options, name);
  const stuck = Array.from({ length: 700 }, (_, n) => erasure(n));
  const events = stuckAndWell(stuck);
  const { stores, bus, faults } = await relayed(t, options, events);
  await until(() => stores.countWaiting() === stuck.length, 'all but what has no topic');
  t.match((faults[0] as DomainError).cause, { message: /takemark operator migrate/ }, 'it is reported');
  await makeTopic(options, name);
  await until(() => stores.countWaiting() === 0, 'the rest');
  t.equal((await held(bus, 'erasure')).length, stuck.length);

  await dropTopic(options, name);
  const more = [erasure(1000), usage(30, 0), usage(0, 5000)];
  stores.add(more);
  await until(() => stores.countWaiting() === 1, 'all but what has lost its topic');
  await makeTopic(options, name);
  await until(() => stores.countWaiting() === 0, 'the last one');
  t.strictSame(await held(bus, 'erasure'), [erasure(1000)]);
  t.equal((await held(bus, 'usage')).length, 602, 'exactly once');
}

async function refusedByLibrary(t: Test): Promise<void> {
  const secure = {
    brokers: (SECURE ?? '').split(','),
    credentials: { username, password },
    tls: { authority },
    prefix: freshPrefix(),
    partitions: 1,
    replication: 1,
  };
  await t.rejects(createTopics(secure), { name: 'KafkaError', message: /user name or the password/ });
}

/** Returns the error of a call. A slow broker is asked again. */
async function refusal(call: () => Promise<unknown>, message: RegExp): Promise<unknown> {
  for (const end = Date.now() + 60_000; ; await sleep(500)) {
    const error = await call().then(
      () => undefined,
      (cause: unknown) => cause,
    );
    const said = error instanceof DomainError ? error.cause : error;
    if ((said instanceof Error && message.test(said.message)) || Date.now() > end) return error;
  }
}

async function secured(t: Test): Promise<void> {
  const prefix = freshPrefix();
  const secure = {
    brokers: (SECURE ?? '').split(','),
    credentials: { username, password },
    tls: { authority },
    prefix,
    group: prefix,
    partitions: 1,
    replication: 1,
    onFault: () => undefined,
    ...authenticated,
  };
  await makeTopics(secure);
  const listener = new Listener();
  const bus = await opened(t, secure, listener);
  await relay(bus, [erasure(1)]);
  await until(() => listener.has(erasure(1)), 'an event');

  const foreign = join(tmpdir(), `takemark-${prefix}.pem`);
  t.teardown(() => rm(foreign, { force: true }));
  execFileSync(
    'openssl',
    [
      'req',
      '-x509',
      '-newkey',
      'ec',
      '-pkeyopt',
      'ec_paramgen_curve:prime256v1',
      '-nodes',
      '-keyout',
      '/dev/null',
      '-out',
      foreign,
      '-subj',
      '/CN=another authority',
    ],
    { stdio: 'ignore' },
  );
  const refusals: readonly (readonly [what: string, connection: KafkaConnection, message: RegExp])[] = [
    [
      'another password',
      { ...secure, credentials: { username, password: `${password}x` } },
      /user name or the password/,
    ],
    [
      'another user',
      { ...secure, credentials: { username: 'somebody', password } },
      /user name or the password/,
    ],
    [
      'an authority that is not its own',
      { ...secure, tls: { authority: foreign } },
      /certificate was not issued by the configured authority/,
    ],
  ];
  for (const [what, connection, message] of refusals) {
    t.match(
      await refusal(() => createTopics({ ...secure, ...connection }), message),
      { name: 'KafkaError', message },
      what,
    );
    const faults: unknown[] = [];
    const stranger = await opened(
      t,
      { ...secure, ...connection, onFault: (_, error) => faults.push(error) },
      new Listener(),
    );
    const error = await refusal(() => stranger.publish([erasure(2)]), message);
    t.ok(
      error instanceof DomainError && error.cause instanceof KafkaError && message.test(error.cause.message),
      what,
    );
    t.notMatch(String(faults), password, 'the password is in no message');
    await stranger.close();
  }
  const { credentials: _, ...withoutPassword } = secure;
  await t.rejects(createTopics(withoutPassword), { name: 'KafkaError' }, 'no password');
  const { tls: __, ...open } = secure;
  await t.rejects(createTopics(open), { name: 'KafkaError' }, 'no encryption');
}
