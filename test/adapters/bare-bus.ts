import type { Test } from 'tap';
import { type KafkaBusOptions, openKafkaBus } from '../../src/service/adapters/kafka/bus.js';
import type { EventBus } from '../../src/service/ports/bus.js';
import { authenticator } from '../fixtures/authentication.js';
import type { BareBroker } from './bare-broker.js';

/** Returns a bus over a bare broker. Both are closed when the test ends. */
export async function bareBus(
  t: Test,
  broker: BareBroker,
  prefix: string,
  onFault: (where: string, error: unknown) => void,
  over: Pick<KafkaBusOptions, 'questionMs'> = {},
): Promise<EventBus> {
  const bus = await openKafkaBus({
    brokers: [`127.0.0.1:${String(broker.port)}`],
    prefix,
    group: prefix,
    authenticator,
    acceptWithoutMac: false,
    onFault,
    ...over,
  });
  t.teardown(async () => {
    await bus.close();
    broker.close();
  });
  return bus;
}
