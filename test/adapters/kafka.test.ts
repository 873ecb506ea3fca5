import { randomBytes } from 'node:crypto';
import t from 'tap';
import { openKafkaBus, type KafkaBusOptions } from '../../src/adapters/kafka/bus.js';
import { createTopics } from '../../src/adapters/kafka/topics.js';
import { busContract, type BusPlace } from '../bus-contract/suite.js';
import { dropTopics } from './kafka-trials.js';

// An empty variable counts as not set, as in the service's configuration.
const BROKERS = process.env['TAKEMARK_KAFKA'] || undefined;
const brokers = (BROKERS ?? '').split(',');

async function place(): Promise<BusPlace> {
  const prefix = `takemark-test-${randomBytes(5).toString('hex')}`;
  const connection: KafkaBusOptions = { brokers, prefix, group: prefix, onFault: () => undefined };
  await createTopics({ ...connection, partitions: 3, replication: 1 });
  return { open: () => openKafkaBus(connection), keeps: true, remove: () => dropTopics(connection, prefix) };
}

await t.test('the contract of a bus', { skip: BROKERS === undefined && 'TAKEMARK_KAFKA is not set' }, (t) => busContract(t, place));
