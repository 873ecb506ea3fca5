/**
 * A coordinator of before refuses, as a whole, the question from where a new member is to read: librdkafka leaves the
 * member's partitions unread until they are assigned again.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { BareBroker } from './bare-broker.js';
import { bareBus } from './bare-bus.js';

const PREFIX = 'unread';
/** Much longer than a second assignment takes. */
const PATIENCE_MS = 120_000;

t.test('partitions are read that a coordinator refused to tell of', { timeout: 300_000 }, async (t) => {
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
  for (const deadline = Date.now() + PATIENCE_MS; broker.fetched.length === 0 && Date.now() < deadline; )
    await sleep(100);
  t.equal(broker.fetched[0], 0, 'from its beginning');
  t.strictSame(faults, ['consumer of erasure: Broker: Not coordinator'], 'and it is told');
});
