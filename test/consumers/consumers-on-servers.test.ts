/** The consumers over the real Cassandra and Kafka: events that Kafka has lost, and records that were damaged. */
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { openAssetDirectory } from '../../src/service/adapters/assets/directory.js';
import { migrate } from '../../src/service/adapters/cassandra/driver/migrations.js';
import { type KafkaBusOptions, openKafkaBus } from '../../src/service/adapters/kafka/bus.js';
import { topicName } from '../../src/service/adapters/kafka/topic-names.js';
import { createEventRelay } from '../../src/service/background/relay.js';
import { finishErasure } from '../../src/service/consumers/erasure.js';
import { listen } from '../../src/service/consumers/listen.js';
import {
  remindersOf,
  reviewCreated,
  type ServiceEvent,
  TOPICS,
  type Topic,
} from '../../src/service/domain/events.js';
import { dayOf } from '../../src/service/domain/usage-window.js';
import { auditStores } from '../../src/service/operations/system/audit-stores.js';
import type { EventBus } from '../../src/service/ports/bus.js';
import {
  ADDRESSES,
  connection as cassandra,
  dropKeyspace,
  openStore,
  withClient,
} from '../adapters/cassandra-under-test.js';
import { dropTopics, makeTopic, makeTopics, removeRecords } from '../adapters/kafka-trials.js';
import { relay } from '../bus-contract/suite.js';
import { authenticated } from '../fixtures/authentication.js';
import { until } from '../fixtures/until.js';
import { publish } from '../store-contract/asset-contract.js';
import { audit, issuedProof, partner, reviewCase, usageCharge } from '../store-contract/samples.js';

const BROKERS = process.env['TAKEMARK_KAFKA'] || undefined;
const skip =
  (ADDRESSES === undefined || BROKERS === undefined) && 'needs TAKEMARK_CASSANDRA and TAKEMARK_KAFKA';
const BYTES = Buffer.alloc(1000, 1);
const MINUTE_MS = 60_000;
const HOUR_SECONDS = 3600;

const at = Math.floor(Date.now() / 1000);
const clock = { now: () => Date.now() };

/** Makes a store and topics with one partition each, and returns what a service does with them. */
async function setUp(
  t: Test,
  name: string,
  prepare: (kafka: KafkaBusOptions) => Promise<unknown> = async () => undefined,
) {
  const keyspace = `${cassandra.keyspace}_${name}`;
  await migrate({ ...cassandra, keyspace });
  t.teardown(() => dropKeyspace(keyspace));
  const stores = await openStore({ keyspace });
  t.teardown(() => stores.close());
  const assets = await openAssetDirectory({ directory: join(t.testdir(), 'assets') });
  const prefix = `takemark-test-${randomUUID().slice(0, 8)}`;
  const kafka: KafkaBusOptions = {
    brokers: BROKERS!.split(','),
    prefix,
    group: prefix,
    onFault: () => undefined,
    ...authenticated,
  };
  t.teardown(() => dropTopics(kafka, prefix));
  await prepare(kafka);
  await makeTopics({ ...kafka, partitions: 1, replication: 1 });
  const publisher = await openKafkaBus(kafka);
  t.teardown(() => publisher.close());
  await publisher.start();

  const partnerId = `ptr_${name}`;
  await stores.createPartner(partner(partnerId), audit(partnerId, 'partner_created', partnerId));
  const review = (proofId: string) => reviewCase(`rev_${proofId}`, partnerId, proofId, { createdAt: at });
  const deps = {
    stores,
    assets,
    journal: { record: async () => undefined },
    clock,
    observer: { events: () => undefined },
  };
  return {
    ...{ stores, keyspace, kafka, publisher, partnerId, deps },

    async issue(proofId: string): Promise<void> {
      await stores.reserveProof(proofId, partnerId, at);
      await publish(assets, proofId, BYTES);
      const asset = { bytes: BYTES.length, sha256: 'ab', fileName: 'song.wav', mediaType: 'audio/wav' };
      await stores.issueProof(
        issuedProof(proofId, partnerId, { createdAt: at, asset }),
        audit(partnerId, 'proof_issued', proofId),
      );
    },
    erase: (proofId: string) =>
      stores.eraseProof(proofId, partnerId, at, audit(partnerId, 'proof_erased', proofId)),
    open: (proofId: string) =>
      stores.createReview(review(proofId), at, audit(partnerId, 'review_created', `rev_${proofId}`)),
    async charge(...keys: readonly string[]): Promise<void> {
      for (const key of keys)
        await stores.charge(usageCharge(partnerId, key, { at, dedupeUntil: at + HOUR_SECONDS }));
    },
    async units(): Promise<number | undefined> {
      const day = dayOf(at);
      return (await stores.getDailyUsage(partnerId, day, day))[0]?.operations['verify'];
    },

    /** Publishes all that waits. @returns the events */
    async publishAll(): Promise<readonly ServiceEvent[]> {
      const events: ServiceEvent[] = [];
      const running = createEventRelay({
        stores,
        bus: {
          publish: async (given, onSettled) => {
            events.push(...given);
            await publisher.publish(given, onSettled);
          },
        },
        observer: { events: () => undefined, fault: () => undefined },
      });
      running.start();
      await until(async () => (await stores.waitingEvents(1)).length === 0, 'all is published');
      await running.stop();
      return events;
    },

    /** Starts the consumers of a process. */
    async consume(t: Test): Promise<EventBus> {
      const bus = await openKafkaBus(kafka);
      t.teardown(() => bus.close());
      listen(bus, deps);
      await bus.start();
      return bus;
    },
    isConfirmed: async (proofId: string) => {
      const proof = await stores.getProof(proofId);
      return proof?.state === 'erased' && proof.confirmedAt !== undefined;
    },
    async isScheduled(proofId: string): Promise<boolean> {
      const found = await stores.audited.review(`rev_${proofId}`, at);
      return found?.scheduled.length === remindersOf(reviewCreated(review(proofId))).length;
    },
    /** Returns the findings of a pass of the auditor an hour later. */
    async findings(): Promise<readonly string[]> {
      const findings: string[] = [];
      const later = { now: () => Date.now() + HOUR_SECONDS * 1000 };
      const parts = { stores, assets, keys: { read: async () => undefined }, audited: stores.audited };
      for (let from: string | undefined, isFirst = true; isFirst || from !== undefined; isFirst = false) {
        const step = await auditStores({ ...parts, clock: later }, { from, limit: 500 });
        findings.push(...step.findings.map(({ kind, subject }) => `${kind} ${subject}`));
        from = step.next;
      }
      return findings.toSorted();
    },
  };
}

t.test('consumers that come back to topics which lost their events', { skip }, async (t) => {
  // A topic that is compacted loses nothing: erasures lie in one that somebody made otherwise.
  const house = await setUp(t, 'lost', (kafka) =>
    makeTopic(kafka, topicName(kafka.prefix, 'erasure'), { 'cleanup.policy': 'delete' }),
  );
  const { stores, kafka, publisher, partnerId } = house;
  for (const id of ['before', 'lost', 'after', 'before-open', 'lost-open', 'after-open'])
    await house.issue(`prf_${id}`);
  const happens = async (when: string, units: number): Promise<readonly ServiceEvent[]> => {
    await house.charge(...Array.from({ length: units }, (_, unit) => `${when}.${unit}`));
    await house.erase(`prf_${when}`);
    await house.open(`prf_${when}-open`);
    return house.publishAll();
  };
  const arrived = (when: string) => async () =>
    (await house.isConfirmed(`prf_${when}`)) && (await house.isScheduled(`prf_${when}-open`));

  await happens('before', 3);
  const consumers = await house.consume(t);
  await until(arrived('before'), 'what was published before is taken');
  await until(() => [...consumers.lag().values()].every((lag) => lag === 0), 'and nothing is left');
  await consumers.close();

  const lost = await happens('lost', 4);
  t.strictSame(new Set(lost.map(({ topic }) => topic)), new Set<Topic>(TOPICS));
  for (const topic of TOPICS) await removeRecords(kafka, topicName(kafka.prefix, topic));
  await happens('after', 2);
  const back = await house.consume(t);
  await until(arrived('after'), 'what came afterwards is taken');
  t.equal(await house.units(), 9, 'no unit is missing meanwhile');
  t.notOk(await arrived('lost')());
  t.strictSame(
    await house.findings(),
    ['erasure_unfinished prf_lost', 'review_unannounced rev_prf_lost-open'],
    'the auditor reports what no consumer got',
  );

  const now = Date.now;
  t.teardown(() => void (Date.now = now));
  const events = async () =>
    withClient(
      async (client) =>
        (
          await client.execute(
            `SELECT item FROM charge WHERE partner_id = '${partnerId}' AND item > 'event/' AND item < 'event0'`,
          )
        ).rowLength,
      house.keyspace,
    );
  t.ok((await events()) > 0, 'they wait in the store');
  Date.now = () => now() + 130 * MINUTE_MS;
  await stores.collectExpired(at, 100);
  Date.now = now;
  t.equal(await events(), 0, 'and were added from there');
  t.equal(await house.units(), 9, 'each once');
  await relay(
    publisher,
    lost.filter(({ topic }) => topic === 'usage'),
  );
  await house.charge('late');
  await house.publishAll();
  await until(() => back.lag().get('usage') === 0, 'events that come after all are taken');
  t.equal(await house.units(), 10, 'and add nothing again');

  // As a restore takes it from the journal of erasures.
  await finishErasure(house.deps, { proofId: 'prf_lost', partnerId, erasedAt: at });
  t.strictSame(
    await house.findings(),
    ['review_unannounced rev_prf_lost-open'],
    'units are no finding either',
  );
});

t.test('an event about a damaged record is a dead letter, and later ones are taken', { skip }, async (t) => {
  const house = await setUp(t, 'damaged');
  const { stores, publisher } = house;
  const ids = ['prf_damaged', 'prf_sound', 'prf_damaged-open', 'prf_sound-open'];
  for (const id of ids) await house.issue(id);
  for (const id of ids.slice(0, 2)) await house.erase(id);
  for (const id of ids.slice(2)) await house.open(id);
  const published = await house.publishAll();
  t.strictSame(
    published.filter(({ topic }) => topic !== 'usage').map(({ key }) => key),
    ['prf_damaged', 'prf_sound', 'rev_prf_damaged-open', 'rev_prf_sound-open'],
    'the damaged ones come first in the one partition of their topic',
  );
  /** Writes the partner of a proof's head, as no program of the service does. */
  const giveTo = (proofId: string, owner: string) =>
    withClient(
      (client) =>
        client.execute(
          `UPDATE record SET partner_id = ? WHERE proof_id = ? AND part = ''`,
          [owner, proofId],
          {
            prepare: true,
          },
        ),
      house.keyspace,
    );
  const damaged = [ids[0]!, ids[2]!];
  for (const id of damaged) {
    await giveTo(id, 'ptr_other');
    await t.rejects(stores.getProof(id), { code: 'internal', reason: 'record_damaged' });
  }
  const letters = async (topic: Topic) =>
    (await publisher.deadLetters(topic, 10)).map(({ id, reason }) => `${id}: ${reason}`);
  const reason = 'a record that the event needs is damaged';
  const consumers = await house.consume(t);
  await until(() => house.isConfirmed('prf_sound'), 'the sound erasure is confirmed');
  await until(() => house.isScheduled('prf_sound-open'), 'the sound review is announced');
  await until(() => [...consumers.lag().values()].every((lag) => lag === 0), 'nothing waits');
  t.strictSame(await letters('erasure'), [`proof_erased/prf_damaged: ${reason}`]);
  t.strictSame(await letters('retention'), [`review_created/rev_prf_damaged-open: ${reason}`]);
  t.strictSame(
    await house.findings(),
    [...damaged, 'rev_prf_damaged-open'].map((id) => `record_damaged ${id}`),
    'the auditor reports both, and the review beside one',
  );

  for (const id of damaged) await giveTo(id, house.partnerId);
  for (const topic of ['erasure', 'retention'] as const)
    t.equal(await publisher.replayDeadLetters(topic, 10), 1);
  await until(() => house.isConfirmed('prf_damaged'), 'its erasure is confirmed once the record is put back');
  await until(() => house.isScheduled('prf_damaged-open'), 'and its review announced');
  await until(() => [...consumers.lag().values()].every((lag) => lag === 0), 'nothing waits');
  t.strictSame(await house.findings(), []);
});
