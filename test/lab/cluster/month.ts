/** Partners with a few units left in their month. The other units are charged without calls. */
import { setTimeout as delay } from 'node:timers/promises';
import { DomainError } from '../../../src/core/domain/errors.js';
import { openCassandraStore } from '../../../src/service/adapters/cassandra/store.js';
import { openKafkaBus } from '../../../src/service/adapters/kafka/bus.js';
import { readClusterBundle } from '../../../src/service/adapters/signing/cluster-bundle.js';
import { createEventRelay } from '../../../src/service/background/relay.js';
import { readConfig } from '../../../src/service/config/config.js';
import { SHIPPED_PLANS } from '../../../src/service/domain/partner.js';
import { again } from '../../fixtures/again.js';
import { authenticatorWith } from '../../fixtures/authentication.js';
import { inParallel } from '../../fixtures/service.js';
import type { KnownPartner } from './ledger.js';
import type { Run } from './run.js';

/** The number of units that one conditional batch charges. */
const CHARGED_AT_ONCE = 40;
const PUBLISHED_MS = 300_000;

export interface Month {
  readonly partner: KnownPartner;
  readonly used: number;
  readonly limit: number;
  /** The number of events of these charges that were not published in time. */
  readonly waiting: number;
}

/**
 * Charges partners with a separate store, before the first fault.
 * @returns this many months, each of its own partner
 */
export async function nearEndOfMonth(
  { cluster, workload, ledger }: Pick<Run, 'cluster' | 'workload' | 'ledger'>,
  { months, unitsLeft }: { readonly months: number; readonly unitsLeft: number },
): Promise<Month[]> {
  const plan = SHIPPED_PLANS.find(({ name }) => name === 'trial')!;
  const partners: KnownPartner[] = [];
  while (partners.length < months) partners.push(await workload.partner(plan.name));
  const used = plan.monthlyQuota - unitsLeft;
  const { cassandra, kafka, environment } = readConfig(cluster.settings);
  const { secrets } = await readClusterBundle(cluster.settings['TAKEMARK_SECRETS_FILE']!, environment);
  // Nothing is audited here, so any key is valid.
  const store = await openCassandraStore({
    ...cassandra!,
    audit: { key: Buffer.alloc(32) },
    authenticator: authenticatorWith(secrets, 'row', environment),
  });
  const bus = await openKafkaBus({
    ...kafka!,
    group: 'none',
    onFault: () => undefined,
    authenticator: authenticatorWith(secrets, 'event', environment),
    acceptWithoutMac: false,
  });
  const relay = createEventRelay({
    stores: store,
    bus,
    observer: { events: () => undefined, fault: () => undefined },
  });
  relay.start();
  const at = Math.floor(Date.now() / 1000);
  try {
    for (const { partnerId } of partners)
      await inParallel(
        Array.from({ length: used }, (_, index) => `before-${index}`),
        CHARGED_AT_ONCE,
        async (dedupeKey) => {
          await again(
            () =>
              store.charge({
                partnerId,
                operation: 'verify',
                dedupeKey,
                at,
                monthlyQuota: plan.monthlyQuota,
                dedupeUntil: at + 3600,
              }),
            (error) => error instanceof DomainError && error.code === 'unavailable',
          );
          ledger.bill({ partnerId, uploadId: dedupeKey });
        },
      );
    const deadline = Date.now() + PUBLISHED_MS;
    while (store.countWaiting() > 0 && Date.now() < deadline) await delay(100);
    const waiting = store.countWaiting();
    return partners.map((partner) => ({ partner, used, limit: plan.monthlyQuota, waiting }));
  } finally {
    await relay.stop();
    await bus.close();
    await store.close();
  }
}
