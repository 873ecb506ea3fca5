/**
 * A coordinator of before refuses, as a whole, the question from where a new member is to read: librdkafka leaves the
 * member's partitions unread until they are assigned again.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { openKafkaBus } from '../../src/adapters/kafka/bus.js';
import { authenticator } from '../fixtures/authentication.js';
import { BareBroker } from './bare-broker.js';

const PREFIX = 'unread';
/** Much longer than a second assignment takes. */
const PATIENCE_MS = 120_000;

t.test('partitions are read that a coordinator refused to tell of', { timeout: 300_000 }, async (t) => {
  const broker = await BareBroker.start(`${PREFIX}.erasure`, { refusals: 1 });
  const faults: string[] = [];
  const bus = await openKafkaBus({
    brokers: [`127.0.0.1:${String(broker.port)}`],
    prefix: PREFIX,
    group: PREFIX,
    authenticator,
    acceptWithoutMac: false,
    onFault: (where, error) => void faults.push(`${where}: ${(error as Error).message}`),
  });
  t.teardown(async () => {
    await bus.close();
    broker.close();
  });
  bus.handle('erasure', async () => undefined);
  await bus.start();
  for (const deadline = Date.now() + PATIENCE_MS; broker.fetched.length === 0 && Date.now() < deadline; )
    await sleep(100);
  t.equal(broker.fetched[0], 0, 'from its beginning');
  t.strictSame(faults, ['consumer of erasure: Broker: Not coordinator'], 'and it is told');
});
