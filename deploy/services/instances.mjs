/** What can be started: one entry an instance, with its address, its files, its command and the question that shows it is ready. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { countPeers } from './cassandra/probe.mjs';

const HERE = fileURLToPath(new URL('.', import.meta.url));
const CASSANDRA_PORT = 9042;
export const DATACENTER = 'datacenter1';

/**
 * @typedef {object} Instance
 * @property {'cassandra' | 'kafka' | 's3'} kind
 * @property {string} name also the name of its directory
 * @property {string} directory
 * @property {string} address what a client connects to
 * @property {string | undefined} after the instance that has to be ready before this one starts for the first time
 * @property {Record<string, string>} files contents by name, written before each start
 * @property {string[]} command
 * @property {() => Promise<unknown>} probe rejects until the instance does its work
 */

/** Where the jars of a kind go. A changed pom.xml is another directory, so an upgrade never mixes versions. */
export function classPath(scratch, kind) {
  const version = createHash('sha256').update(readFileSync(pomOf(kind))).digest('hex').slice(0, 12);
  return join(scratch, 'jars', `${kind}-${version}`);
}

export function pomOf(kind) {
  return join(HERE, kind, 'pom.xml');
}

function template(path, values) {
  return readFileSync(join(HERE, path), 'utf8').replaceAll(/\$\{(\w+)\}/g, (_, name) => {
    if (!Object.hasOwn(values, name)) throw new Error(`${path}: nothing for ${name}`);
    return String(values[name]);
  });
}

/** Node `number` (from 1) of the ring. @returns {Instance} */
export function cassandraNode({ scratch, number }) {
  const name = `cassandra-${number}`;
  const directory = join(scratch, name);
  const jars = classPath(scratch, 'cassandra');
  const address = `127.0.0.${number}`;
  return {
    kind: 'cassandra',
    name,
    directory,
    address: `${address}:${CASSANDRA_PORT}`,
    after: number === 1 ? undefined : `cassandra-${number - 1}`,
    files: {
      'cassandra.yaml': template('cassandra/cassandra.yaml', { cluster: 'takemark', address, storagePort: 7000, port: CASSANDRA_PORT, directory, security: '' }),
      'jvm.options': template('cassandra/jvm.options', {}),
      'logback.xml': template('cassandra/logback.xml', {}),
    },
    command: [
      'java',
      `@${join(directory, 'jvm.options')}`,
      `-javaagent:${join(jars, 'jamm-0.4.0.jar')}`,
      `-Dcassandra.config=file://${join(directory, 'cassandra.yaml')}`,
      `-Dcassandra.storagedir=${directory}`,
      `-Dlogback.configurationFile=file://${join(directory, 'logback.xml')}`,
      `-Dcassandra.jmx.local.port=${17_198 + number}`,
      '-cp',
      `${directory}:${join(jars, '*')}`,
      'org.apache.cassandra.service.CassandraDaemon',
    ],
    // A node that answers but has not found the others yet would fail the first statement that needs them.
    probe: async () => {
      const peers = await countPeers({ address, port: CASSANDRA_PORT });
      if (peers < number - 1) throw new Error(`it knows ${peers} other nodes`);
    },
  };
}
