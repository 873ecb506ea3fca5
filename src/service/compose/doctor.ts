import { defined } from '../../core/domain/defined.js';
import { examineBucket } from '../adapters/assets/s3-doctor.js';
import { examineCassandra } from '../adapters/cassandra/doctor.js';
import { examineKafka } from '../adapters/kafka/doctor.js';
import { OPERATOR_TOKEN_FILE } from '../adapters/signing/operator-token.js';
import { SECRETS_FILE } from '../adapters/signing/secrets.js';
import { examineMachine } from '../adapters/system/machine-doctor.js';
import type { Config } from '../config/config.js';
import { countedChecks, type ServerCheck } from '../domain/server-check.js';
import type { Telemetry } from '../telemetry/telemetry.js';

/**
 * Checks this machine and every configured server for `takemark operator doctor`, and changes nothing. It
 * works whether or not the service is running.
 */
export async function examineInstallation(config: Config): Promise<readonly ServerCheck[]> {
  const { dataDirectory, journalDirectory, contentKeysDirectory, mirror, assetBucket, partner } = config;
  const machine = examineMachine(
    defined({
      dataDirectory,
      journalDirectory,
      contentKeysDirectory: assetBucket === undefined ? contentKeysDirectory : undefined,
      mirrorDirectory: mirror?.directory,
      secretFiles: [SECRETS_FILE, OPERATOR_TOKEN_FILE],
      certificate: partner.tls?.certificate,
      now: Date.now(),
    }),
  );
  return [...(await machine), ...(await examineServers(config))];
}

/** Checks every configured server, and changes nothing. */
async function examineServers(config: Config): Promise<readonly ServerCheck[]> {
  const { cassandra, kafka, assetBucket, environment, acceptedChecks } = config;
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
 * Checks the servers before a process of a cluster uses them (rule 16.5). An unreachable server is ignored
 * here and left to the code that opens it, because a bus may be down for a while.
 * @throws Error with a message for the operator if a check refuses
 */
export async function admitServers(config: Config, telemetry: Pick<Telemetry, 'warn'>): Promise<void> {
  const checks = (await examineServers(config)).filter(({ name }) => !name.endsWith('.reachable'));
  for (const { name, found, wanted, verdict, reason = '' } of checks)
    if (verdict === 'warn' || verdict === 'refuse')
      telemetry.warn('server_check', { check: name, found, wanted, verdict, reason });
  const refused = checks.filter(({ verdict }) => verdict === 'refuse');
  if (refused.length > 0)
    throw new Error(
      `the servers' settings are not acceptable: ${refused
        .map(({ name, reason }) => `${name} (${reason})`)
        .join(
          '; ',
        )}. takemark operator doctor shows all checks; list the checks that you accept in TAKEMARK_ACCEPT_SERVERS`,
    );
}
