/**
 * Tests a former coordinator that refuses a new member's offset query as a whole. librdkafka leaves the
 * member's partitions unread until they are assigned again.
 */
import t from 'tap';
import { until } from '../fixtures/until.js';
import { BareBroker } from './bare-broker.js';
import { bareBus } from './bare-bus.js';

const PREFIX = 'unread';

t.test('partitions are read when a coordinator refused their offsets', { timeout: 300_000 }, async (t) => {
  const broker = await BareBroker.start(`${PREFIX}.erasure`, { refusals: 1 });
  const faults: string[] = [];
  const bus = await bareBus(
    t,
    broker,
    PREFIX,
    (where, error) => void faults.push(`${where}: ${(error as Error).message}`),
  );
  bus.handle('erasure', async () => undefined);
  await bus.start();
  await until(() => broker.fetched.length > 0);
  t.equal(broker.fetched[0], 0, 'from its beginning');
  t.strictSame(faults, ['consumer of erasure: Broker: Not coordinator'], 'and it is reported');
});
