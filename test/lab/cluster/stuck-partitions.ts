/**
 * One broker of three hangs. Then a topic has no leader, another one falls below its `min.insync.replicas`,
 * and the third loses the leaders of some partitions until others take over. Every acknowledgeable event is
 * acknowledged, no call is refused, and the rest arrives when the broker is back. Only an event that the bus
 * gave back may be stored twice (decision 0052).
 */
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { migrate } from '../../../src/service/adapters/cassandra/driver/migrations.js';
import { openCassandraStore } from '../../../src/service/adapters/cassandra/store.js';
import { openEmbeddedStore } from '../../../src/service/adapters/embedded/store.js';
import { openKafkaBus } from '../../../src/service/adapters/kafka/bus.js';
import { KafkaError } from '../../../src/service/adapters/kafka/client.js';
import { createEventRelay } from '../../../src/service/background/relay.js';
import { billedSource, type ServiceEvent, TOPICS, type Topic } from '../../../src/service/domain/events.js';
import { monthOf } from '../../../src/service/domain/usage-window.js';
import type { EventBus } from '../../../src/service/ports/bus.js';
import type { Stores } from '../../../src/service/ports/stores.js';
import { fileHeads } from '../../adapters/embedded-process.js';
import { again } from '../../fixtures/again.js';
import { authenticated } from '../../fixtures/authentication.js';
import { audit, issuedProof, NOW, reviewCase, usageCharge } from '../../store-contract/samples.js';
import { makePlacedTopic } from './placed-topic.js';
import type { Servers } from './servers.js';

const HUNG = 'kafka-3';
/** The replicas of six partitions. Each broker leads two of the partitions. */
const SPREAD = [
  [1, 2, 3],
  [2, 3, 1],
  [3, 1, 2],
  [3, 2, 1],
  [1, 3, 2],
  [2, 1, 3],
];
const PARTNERS = 30;
const WARM_MS = 3000;
/** The duration of the hang, in milliseconds. It exceeds the time of a leader election and of any attempt. */
const HUNG_MS = 45_000;
const CAUGHT_UP_MS = 60_000;
const PAUSE_MS = 50;

export interface Figures {
  readonly charges: number;
  readonly erasures: number;
  readonly reviews: number;
  /** The number of waiting events of each topic when the broker came back. */
  readonly waitedAtTheEnd: Readonly<Record<Topic, number>>;
  /** The number of usage events that were acknowledged while the broker hung. */
  readonly acknowledgedMeanwhile: number;
  /** The number of usage events that the bus gave back for another attempt. */
  readonly givenBack: number;
  readonly caughtUpMs: number;
}

/** A store for one run. */
interface OwnStore {
  readonly stores: Stores;
  close(): Promise<void>;
}
type OpenStore = () => Promise<OwnStore>;

/** Opens a store of one machine. */
export async function embeddedStore(): Promise<OwnStore> {
  const directory = await mkdtemp(join(tmpdir(), 'takemark-stuck-'));
  const stores = await openEmbeddedStore({
    directory,
    audit: { key: Buffer.alloc(32, 1), heads: fileHeads(directory) },
    authenticator: authenticated.authenticator,
  });
  return {
    stores,
    async close() {
      await stores.close();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

/**
 * Opens a store of a cluster in a new keyspace.
 * @param settings that name the nodes
 */
export function clusterStore(settings: Readonly<Record<string, string>>): OpenStore {
  return async () => {
    const connection = {
      contactPoints: settings['TAKEMARK_CASSANDRA']!.split(','),
      localDataCenter: settings['TAKEMARK_CASSANDRA_DC'] ?? 'datacenter1',
      keyspace: `takemark_stuck_${randomUUID().slice(0, 8)}`,
    };
    await again(() =>
      migrate({ ...connection, replication: Number(settings['TAKEMARK_CASSANDRA_REPLICATION'] ?? 1) }),
    );
    const stores = await openCassandraStore({
      ...connection,
      audit: { key: Buffer.alloc(32, 1) },
      authenticator: authenticated.authenticator,
    });
    return { stores, close: () => stores.close() };
  };
}

/**
 * @param servers that include three brokers
 * @param violation called with each violation
 */
export async function stuckPartitions(
  servers: Servers,
  open: OpenStore,
  violation: (what: string) => void,
): Promise<Figures> {
  const prefix = `stuck-${randomUUID().slice(0, 8)}`;
  const brokers = servers.settings['TAKEMARK_KAFKA']!.split(',');
  const topic = (name: Topic, replicas: readonly (readonly number[])[], inSync: number) =>
    makePlacedTopic(brokers[0]!, `${prefix}.${name}`, replicas, { 'min.insync.replicas': String(inSync) });
  await topic('usage', SPREAD, 2);
  await topic('retention', SPREAD, 3);
  await topic('erasure', [[3], [3], [3]], 1);
  const { stores, close } = await open();
  const bus = await openKafkaBus({
    brokers,
    prefix,
    group: prefix,
    onFault: (_, error) => {
      // Two brokers are always available.
      if (error instanceof KafkaError && error.fatal) violation(`a client was given up: ${error.message}`);
    },
    ...authenticated,
  });
  const published: Record<Topic, number> = { erasure: 0, usage: 0, retention: 0 };
  const givenBack = new Set<string>();
  const relay = createEventRelay({
    stores,
    bus: {
      publish: (events, onSettled) =>
        bus.publish(events, (event, fault) => {
          if (fault !== undefined && event.topic === 'usage') givenBack.add(event.id);
          onSettled?.(event, fault);
        }),
    },
    observer: { events: (topic, _, count) => void (published[topic] += count), fault: () => undefined },
  });
  relay.start();
  const work = begin(stores, violation);
  try {
    for (const end = Date.now() + CAUGHT_UP_MS; Date.now() < end; await delay(PAUSE_MS))
      if (TOPICS.every((topic) => published[topic] > 0)) break;
    await delay(WARM_MS);
    await servers.freeze(HUNG);
    const before = published.usage;
    await delay(HUNG_MS);
    const acknowledgedMeanwhile = published.usage - before;
    const counts = await work.end();
    // The last charges are in flight. The partitions of the hung broker have other leaders by now.
    for (const end = Date.now() + CAUGHT_UP_MS; stores.countWaiting('usage') > 0; await delay(PAUSE_MS))
      if (Date.now() > end) break;
    const waitedAtTheEnd = {
      usage: stores.countWaiting('usage'),
      erasure: stores.countWaiting('erasure'),
      retention: stores.countWaiting('retention'),
    };
    if (waitedAtTheEnd.usage > 0) violation(`${waitedAtTheEnd.usage} usage events waited for other topics`);
    if (waitedAtTheEnd.erasure === 0 || waitedAtTheEnd.retention === 0)
      violation('the other topics were acknowledged: nothing was tested');
    const healed = performance.now();
    await servers.thaw(HUNG);
    while (stores.countWaiting() > 0 && performance.now() - healed < CAUGHT_UP_MS) await delay(PAUSE_MS);
    const caughtUpMs = Math.round(performance.now() - healed);
    if (stores.countWaiting() > 0) violation(`${stores.countWaiting()} events wait after ${caughtUpMs} ms`);
    await check(bus, counts, givenBack, violation);
    return { ...counts, waitedAtTheEnd, acknowledgedMeanwhile, givenBack: givenBack.size, caughtUpMs };
  } finally {
    await servers.thaw(HUNG);
    await work.end();
    await relay.stop();
    await bus.close();
    await close();
  }
}

type Counts = Pick<Figures, 'charges' | 'erasures' | 'reviews'>;

/** Charges many partners, erases proofs and creates reviews, one after another, until `end`. */
function begin(stores: Stores, violation: (what: string) => void): { end(): Promise<Counts> } {
  const counts = { charges: 0, erasures: 0, reviews: 0 };
  let isEnded = false;
  const call = async (what: string, work: () => Promise<unknown>): Promise<void> => {
    try {
      await work();
    } catch (error) {
      violation(`${what} is refused: ${error instanceof Error ? error.message : String(error)}`);
    }
  };
  const done = (async () => {
    for (let n = 0; !isEnded; n += 1) {
      const partnerId = `ptr_${n % PARTNERS}`;
      const proof = issuedProof(`prf_${n}`, partnerId);
      await stores.reserveProof(proof.proofId, partnerId, NOW);
      await stores.issueProof(proof, audit(partnerId, 'proof_issued', proof.proofId));
      await call('a charge', () => stores.charge(usageCharge(partnerId, `call-${n}`)));
      counts.charges += 1;
      if (n % 2 === 0) {
        await call('an erasure', () =>
          stores.eraseProof(proof.proofId, partnerId, NOW, audit(partnerId, 'proof_erased', proof.proofId)),
        );
        counts.erasures += 1;
      } else {
        const review = reviewCase(`rev_${n}`, partnerId, proof.proofId);
        await call('a review', () =>
          stores.createReview(review, review.createdAt, audit(partnerId, 'review_created', review.reviewId)),
        );
        counts.reviews += 1;
      }
      await delay(PAUSE_MS);
    }
  })();
  return {
    async end() {
      isEnded = true;
      await done;
      return counts;
    },
  };
}

/**
 * Checks that every event is in its topic. An event is there once in the topic that the other replicas serve.
 * @param givenBack ids of the usage events that may be there twice
 */
async function check(
  bus: EventBus,
  counts: Counts,
  givenBack: ReadonlySet<string>,
  violation: (what: string) => void,
): Promise<void> {
  const distinct = {} as Record<Topic, ReadonlyMap<string, ServiceEvent>>;
  const copied = new Set<string>();
  for (const topic of TOPICS)
    distinct[topic] = await again(async () => {
      const events = new Map<string, ServiceEvent>();
      await bus.replay(topic, async (batch) => {
        for (const event of batch) {
          // An event of another topic may be there twice. The broker may have appended it without an
          // acknowledgement before the topic fell below its minimum.
          if (topic === 'usage' && events.has(event.id)) copied.add(event.id);
          events.set(event.id, event);
        }
      });
      return events;
    });
  const unasked = [...copied].filter((id) => !givenBack.has(id));
  if (unasked.length > 0) violation(`stored twice, and not given back: ${unasked.join(', ')}`);
  const units = [...distinct.usage.values()].reduce(
    (sum, event) => sum + (event.topic === 'usage' ? event.data.to - event.data.from : 0),
    0,
  );
  const expected: Readonly<Record<string, readonly [number, number]>> = {
    [`units of ${billedSource(monthOf(NOW))}`]: [units, counts.charges],
    erasures: [distinct.erasure.size, counts.erasures],
    reviews: [distinct.retention.size, counts.reviews],
  };
  for (const [what, [found, sent]] of Object.entries(expected))
    if (found !== sent) violation(`${found} ${what} of ${sent} arrived`);
}
