import { examineBucket } from '../adapters/assets/s3-doctor.js';
import { examineCassandra } from '../adapters/cassandra/doctor.js';
import { examineKafka } from '../adapters/kafka/doctor.js';
import type { Config } from '../config/config.js';
import { countedChecks, type ServerCheck } from '../domain/server-check.js';
import type { Telemetry } from '../telemetry/telemetry.js';

/** Behind `takemark operator doctor`: looks at every server that is configured, and changes nothing. */
export async function examineServers(config: Config): Promise<readonly ServerCheck[]> {
  const { cassandra, kafka, assetBucket, environment, acceptedChecks } = config;
  if (cassandra === undefined && kafka === undefined && assetBucket === undefined)
    throw new Error(
      'no servers are configured: TAKEMARK_CASSANDRA and TAKEMARK_CASSANDRA_DC, TAKEMARK_KAFKA, TAKEMARK_ASSETS=s3',
    );
  const found = await Promise.all([
    cassandra === undefined ? [] : examineCassandra(cassandra),
    kafka === undefined ? [] : examineKafka(kafka),
    assetBucket === undefined ? [] : examineBucket(assetBucket),
  ]);
  return countedChecks(found.flat(), {
    isProduction: environment === 'production',
    accepted: acceptedChecks,
  });
}

/**
 * The look at the servers before a process of a cluster uses them (rule 16.5). A server that is not reached is left to
 * what opens it: a bus may be away for a while.
 * @throws Error with a message for the operator where a check refuses
 */
export async function admitServers(config: Config, telemetry: Pick<Telemetry, 'warn'>): Promise<void> {
  const checks = (await examineServers(config)).filter(({ name }) => !name.endsWith('.reachable'));
  for (const { name, found, wanted, verdict, reason = '' } of checks)
    if (verdict === 'warn' || verdict === 'refuse')
      telemetry.warn('server_check', { check: name, found, wanted, verdict, reason });
  const refused = checks.filter(({ verdict }) => verdict === 'refuse');
  if (refused.length > 0)
    throw new Error(
      `the servers are not as they must be: ${refused
        .map(({ name, reason }) => `${name} (${reason})`)
        .join(
          '; ',
        )}. takemark operator doctor shows all of it; what you accept goes into TAKEMARK_ACCEPT_SERVERS`,
    );
}
