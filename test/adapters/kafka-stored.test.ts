/**
 * Tests a producer whose first batch is refused while the next one is in flight and is stored. librdkafka
 * concludes that the first batch was stored before, and reports it as delivered.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import type { ServiceEvent } from '../../src/service/domain/events.js';
import { erasure } from '../bus-contract/suite.js';
import { until } from '../fixtures/until.js';
import { BareBroker } from './bare-broker.js';
import { bareBus } from './bare-bus.js';

const PREFIX = 'stored';
/** The pause in milliseconds. It is far longer than the producer waits for further messages of a batch. */
const APART_MS = 500;

t.test('an event is published when a broker has returned its offset', { timeout: 120_000 }, async (t) => {
  const broker = await BareBroker.start(`${PREFIX}.erasure`, { refusesFirstBatch: true });
  const bus = await bareBus(t, broker, PREFIX, () => undefined);
  const isStored = ({ key }: ServiceEvent) => broker.stored.some((batch) => batch.includes(key));
  const [first, second] = [erasure(1), erasure(2)];
  const settled = new Map<ServiceEvent, unknown>();
  const publish = (event: ServiceEvent) =>
    bus.publish([event], (each, fault) => void settled.set(each, fault)).catch(() => undefined);
  const publishing = [publish(first)];
  await until(() => broker.batches === 1, 'the first one has come');
  await sleep(APART_MS);
  t.equal(settled.size, 0, 'it waits for its answer');
  publishing.push(publish(second));
  await Promise.all(publishing);
  t.strictSame([settled.get(second), isStored(second)], [undefined, true], 'the second one is stored');
  t.notOk(isStored(first), 'the first one is not');
  t.match(settled.get(first), { reason: 'bus_unavailable' }, 'and is not taken for published');
  await publish(first);
  t.strictSame([settled.get(first), isStored(first)], [undefined, true], 'it is stored when it comes again');
});
