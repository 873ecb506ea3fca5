/** Starts of a service over real servers that are not as they should be, and one with a wrong clock. */
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { test } from 'tap';
import { startConsumers } from '../../src/service/compose/consumers.js';
import { startService } from '../../src/service/compose/service.js';
import { readConfig } from '../../src/service/config/config.js';
import { ADDRESSES, connection, dropKeyspace } from '../adapters/cassandra-under-test.js';
import { takemark } from '../lab/cluster/members.js';

const { TAKEMARK_KAFKA, TAKEMARK_S3_BUCKET } = process.env;
const servers =
  (ADDRESSES ?? '') !== '' && (TAKEMARK_KAFKA ?? '') !== '' && (TAKEMARK_S3_BUCKET ?? '') !== ''
    ? {}
    : { skip: 'needs TAKEMARK_CASSANDRA, TAKEMARK_KAFKA and TAKEMARK_S3_BUCKET' };

/** An address at which nothing listens. */
const NOWHERE = '127.0.0.1:9';

test('a service of a cluster looks at its servers and at its clock', servers, async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'takemark-start-'));
  t.teardown(() => rm(directory, { recursive: true, force: true }));
  const settings: Record<string, string> = {
    ...Object.fromEntries(
      Object.entries(process.env).filter(
        (entry): entry is [string, string] =>
          /^TAKEMARK_(CASSANDRA|KAFKA|S3)/.test(entry[0]) && entry[1] !== undefined,
      ),
    ),
    TAKEMARK_STORE: 'cassandra',
    TAKEMARK_CASSANDRA_KEYSPACE: connection.keyspace,
    TAKEMARK_CASSANDRA_REPLICATION: '1',
    TAKEMARK_ASSETS: 's3',
    TAKEMARK_S3_PREFIX: `start-${randomUUID()}/`,
    TAKEMARK_BUS: 'kafka',
    TAKEMARK_KAFKA_PREFIX: `start-${randomUUID().slice(0, 8)}`,
    TAKEMARK_KAFKA_REPLICATION: '1',
    TAKEMARK_KAFKA_PARTITIONS: '1',
    TAKEMARK_SECRETS_FILE: join(directory, 'bundle.json'),
    TAKEMARK_HOST: '127.0.0.1',
    TAKEMARK_STOP_GRACE_SECONDS: '1',
  };
  await takemark(settings, 'operator', 'secrets', 'init', '--out', settings['TAKEMARK_SECRETS_FILE']!);
  await takemark(settings, 'operator', 'migrate');
  t.teardown(() => dropKeyspace(connection.keyspace));

  let starts = 0;
  const configOf = (over: Readonly<Record<string, string>>) => {
    starts += 1;
    return readConfig({
      ...settings,
      TAKEMARK_PORT: '0',
      TAKEMARK_OPERATOR_PORT: '0',
      TAKEMARK_DATA_DIR: join(directory, `process-${starts}`),
      ...over,
    });
  };
  const start = (over: Readonly<Record<string, string>>, ahead = 0) => {
    const log: string[] = [];
    const config = configOf(over);
    const service = startService(config, {
      version: '0',
      clock: { now: () => Date.now() + ahead },
      logDestination: { write: (line) => void log.push(line) },
    });
    return { service, log };
  };
  const accepted = {
    TAKEMARK_ACCEPT_SERVERS: 'cassandra.replication,kafka.replication,kafka.min_insync_replicas',
  };

  await t.test('in production it does not start over one node and one broker', async (t) => {
    const { service, log } = start({});
    await t.rejects(service, {
      message:
        /^the servers' settings are not acceptable: cassandra\.replication .*; kafka\.replication .*; kafka\.min_insync_replicas .*TAKEMARK_ACCEPT_SERVERS$/,
    });
    t.match(log.join(''), /"event":"server_check","check":"kafka.min_insync_replicas"/);
    const partly = start({ TAKEMARK_ACCEPT_SERVERS: 'cassandra.replication,kafka.replication' });
    await t.rejects(partly.service, { message: /not acceptable: kafka\.min_insync_replicas / });
  });

  await t.test('an undeclared topology is refused when its check is accepted', async (t) => {
    const { service } = start({
      TAKEMARK_ACCEPT_SERVERS: `${accepted.TAKEMARK_ACCEPT_SERVERS},cassandra.topology`,
      TAKEMARK_CASSANDRA_TOPOLOGY: 'all_active',
    });
    await t.rejects(service, { message: /cassandra\.topology/ });
  });

  await t.test('what was accepted by name is a warning, and the service is ready', async (t) => {
    const { service, log } = start(accepted);
    const { operator, stop } = await service;
    t.teardown(stop);
    t.match(log.join(''), /"check":"kafka.replication".*"verdict":"warn"/);
    const response = await fetch(`http://127.0.0.1:${operator.port}/readyz`);
    t.equal(response.status, 200);
    t.match(
      await (await fetch(`http://127.0.0.1:${operator.port}/metrics`)).text(),
      /^takemark_clock_ahead_seconds -?[0-4](\.\d+)?$/m,
    );
  });

  await t.test('without its bus a service is ready, and a process of consumers is not', async (t) => {
    const away = { ...accepted, TAKEMARK_KAFKA: NOWHERE };
    const options = { version: '0', logDestination: { write: () => undefined } };
    const readiness = async ({ operator }: { readonly operator: { readonly port: number } }) => {
      const response = await fetch(`http://127.0.0.1:${operator.port}/readyz`);
      const { reason } = (await response.json()) as { readonly reason?: string };
      return [response.status, reason];
    };
    const service = await start(away).service;
    t.teardown(service.stop);
    t.strictSame(await readiness(service), [200, undefined]);
    const idle = await startConsumers(configOf(away), options);
    t.teardown(idle.stop);
    t.strictSame(await readiness(idle), [503, 'bus_unavailable']);
    const elsewhere = { ...accepted, TAKEMARK_S3_PREFIX: `other-${randomUUID()}/` };
    const unkeyed = await startConsumers(configOf(elsewhere), options);
    t.teardown(unkeyed.stop);
    t.strictSame(await readiness(unkeyed), [503, 'content_keys_lost'], 'another bucket');
    const working = await startConsumers(configOf(accepted), options);
    t.teardown(working.stop);
    // Until it is connected.
    while ((await readiness(working))[0] !== 200) await delay(100);
    t.strictSame(await readiness(working), [200, undefined]);
  });

  await t.test('with a clock that is off it says so, is not ready and has it in its metrics', async (t) => {
    for (const [ahead, isReady] of [
      [8000, true],
      [-40_000, false],
      [900_000, false],
    ] as const) {
      const { service, log } = start(accepted, ahead);
      const { operator, stop } = await service;
      const response = await fetch(`http://127.0.0.1:${operator.port}/readyz`);
      const body = await response.text();
      t.equal(response.status, isReady ? 200 : 503, `${ahead} ms`);
      if (!isReady) t.match(body, /The clock differs from the store's by more than 20 seconds/);
      const metrics = await (await fetch(`http://127.0.0.1:${operator.port}/metrics`)).text();
      const [, seconds = ''] = /^takemark_clock_ahead_seconds (\S+)$/m.exec(metrics) ?? [];
      t.ok(Math.abs(Number(seconds) - ahead / 1000) < 3, `${seconds} s in the metrics`);
      // The line may come after the start.
      while (!/"event":"clock_wrong","seconds":-?\d/.test(log.join(''))) await delay(10);
      await stop();
    }
  });
});
