import { randomUUID } from 'node:crypto';
import { join } from 'node:path';

/**
 * Returns the settings of a service, or of an operator's command, on the servers that the environment names.
 * @param name the prefix of the run's names in the bucket and on the bus
 * @param directory the directory for the bundle of secrets, which the caller creates
 */
export function serverSettings({
  name,
  keyspace,
  directory,
}: {
  readonly name: string;
  readonly keyspace: string;
  readonly directory: string;
}) {
  return {
    ...Object.fromEntries(
      Object.entries(process.env).filter(
        (entry): entry is [string, string] =>
          /^TAKEMARK_(CASSANDRA|KAFKA|S3|ACCEPT_SERVERS)/.test(entry[0]) && entry[1] !== undefined,
      ),
    ),
    TAKEMARK_ENVIRONMENT: 'beta',
    TAKEMARK_STORE: 'cassandra',
    TAKEMARK_CASSANDRA_KEYSPACE: keyspace,
    TAKEMARK_CASSANDRA_REPLICATION: '1',
    TAKEMARK_ASSETS: 's3',
    TAKEMARK_S3_PREFIX: `${name}-${randomUUID()}/`,
    TAKEMARK_BUS: 'kafka',
    TAKEMARK_KAFKA_PREFIX: `${name}-${randomUUID().slice(0, 8)}`,
    TAKEMARK_KAFKA_REPLICATION: '1',
    TAKEMARK_KAFKA_PARTITIONS: '1',
    TAKEMARK_SECRETS_FILE: join(directory, 'bundle.json'),
    TAKEMARK_OPERATOR_TOKEN: 'operator-token-of-the-service-under-test',
    TAKEMARK_PUBLIC_URL: 'http://127.0.0.1:1',
  };
}
