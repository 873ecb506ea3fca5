import { readFile } from 'node:fs/promises';
import { defineCommand, EXIT, UsageError } from '../command.js';
import { planOutput, writeOutput } from '../output-file.js';
import { printable } from '../terminal.js';

const migrateStore = defineCommand({
  name: 'operator migrate',
  summary: "Create the cluster's keyspace and topics, and update its schema",
  details: [
    'Works while the service is running or stopped. You can repeat it. Except for the first migrate of a',
    'keyspace, you can run it on several machines at once. It uses TAKEMARK_CASSANDRA and',
    'TAKEMARK_CASSANDRA_* for the store, and TAKEMARK_KAFKA and TAKEMARK_KAFKA_* for the bus. If one of the',
    'two is not configured, it is skipped.',
    '--change-topology replaces the TAKEMARK_CASSANDRA_TOPOLOGY or the active data centre of an existing',
    'keyspace. Stop every process first: a process that keeps running would decide independently of the',
    'others.',
  ],
  options: {
    'change-topology': { help: 'replace the topology of the keyspace' },
    json: { help: 'print the applied migrations and the created topics as one line of JSON' },
  },
  async run(_operands, options, { terminal, cluster }) {
    const { applied, topics } = await cluster.migrate({ changeTopology: options.changeTopology });
    if (options.json) {
      terminal.printJson({ applied, topics });
      return EXIT.good;
    }
    if (applied !== undefined)
      terminal.print(
        applied.length === 0 ? 'the schema is up to date' : printable(`applied ${applied.join(', ')}`),
      );
    if (topics !== undefined)
      terminal.print(topics.length === 0 ? 'the topics exist' : printable(`created ${topics.join(', ')}`));
    return EXIT.good;
  },
});

const BUNDLE_HELP = 'bundle to write, with mode 0600; an existing file is never replaced';

const initSecrets = defineCommand({
  name: 'operator secrets init',
  summary: 'Write the bundle of secrets that all processes of a cluster share',
  details: [
    'The bundle holds the signing identity, the operator token and every other secret for',
    'TAKEMARK_ENVIRONMENT. Each process reads the bundle from TAKEMARK_SECRETS_FILE. Any holder of the',
    'bundle can act as the service, so protect it like a private key.',
  ],
  options: { out: { value: 'file', required: true, help: BUNDLE_HELP } },
  async run(_operands, options, { terminal, cluster }) {
    const output = await planOutput(options.out, undefined, []);
    await writeOutput(output, [Buffer.from(await cluster.makeSecrets())], 0o600);
    terminal.print(printable(`wrote ${output.path}`));
    return EXIT.good;
  },
});

const NEXT: Readonly<Record<'add' | 'use' | 'drop', string>> = {
  add: 'deploy it to every process, then run --step use',
  use: 'deploy it to every process; after 25 hours --step drop removes the old secrets',
  drop: 'deploy it to every process',
};

const rotateSecrets = defineCommand({
  name: 'operator secrets rotate',
  summary: 'Rotate secrets in three steps: add new secrets, use them, drop the old secrets',
  details: [
    'Each step writes one bundle. Deploy the bundle to every process (restart them one by one) before the',
    'next step. Processes with the bundles before and after a step work side by side.',
    '  add   creates new secrets, which already verify',
    '  use   makes the new secrets current; the old secrets still verify',
    '  drop  removes the old secrets; old secrets of keys, rows, events, audit logs',
    '        and signatures are kept permanently',
    '',
    'Purposes: key-pepper, upload-policy, cursor, rotation, audit, event, row, signing, operator-token.',
  ],
  options: {
    in: { value: 'file', required: true, help: 'current bundle' },
    out: { value: 'file', required: true, help: BUNDLE_HELP },
    step: { value: 'step', required: true, choices: ['add', 'use', 'drop'], help: 'step to perform' },
    purpose: { value: 'list', help: 'comma-separated purposes to rotate (all)' },
    early: {
      help: 'drop even secrets replaced less than 25 hours ago; interrupted key rotations cannot be replayed then',
    },
  },
  async run(_operands, options, { terminal, cluster }) {
    const step = options.step;
    const purposes = options.purpose?.split(',');
    const early = options.early;
    if (early && step !== 'drop') throw new UsageError('--early works only with --step drop');
    const name = options.in;
    const output = await planOutput(options.out, undefined, [name]);
    const next = await cluster.rotateSecrets(
      { text: await readFile(name, 'utf8'), name },
      { step, early, purposes },
    );
    await writeOutput(output, [Buffer.from(next)], 0o600);
    terminal.print(printable(`wrote ${output.path}: ${NEXT[step]}`));
    return EXIT.good;
  },
});

export const CLUSTER_COMMANDS = [initSecrets, rotateSecrets, migrateStore];
