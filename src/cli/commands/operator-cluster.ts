import { readFile } from 'node:fs/promises';
import { defineCommand, EXIT, UsageError } from '../command.js';
import { planOutput, writeOutput } from '../output-file.js';
import { printable } from '../terminal.js';

export const migrateStore = defineCommand({
  name: 'operator migrate',
  summary: "Make the cluster's keyspace and topics, and bring its schema up to date",
  details: [
    'Works with the service running or stopped, again and from several machines at once.',
    'TAKEMARK_CASSANDRA, TAKEMARK_CASSANDRA_DC and their kin say where the store is, and TAKEMARK_KAFKA',
    'and its kin where the bus is; what is not set is left out.',
    '--change-topology states another TAKEMARK_CASSANDRA_TOPOLOGY, or another active data centre, than the',
    'keyspace has: stop every process first, one that runs on would decide beside the others.',
  ],
  operands: [],
  options: {
    'change-topology': { help: 'take the data centres that were stated out of use' },
    json: { help: 'what was applied and made as one line of JSON' },
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
      terminal.print(topics.length === 0 ? 'the topics are there' : printable(`made ${topics.join(', ')}`));
    return EXIT.good;
  },
});

const BUNDLE_HELP = 'where the bundle goes, mode 0600; never over a file that exists';

export const initSecrets = defineCommand({
  name: 'operator secrets init',
  summary: 'Write a bundle of secrets that all processes of a cluster share',
  details: [
    'Signing identity, operator token and every secret, for TAKEMARK_ENVIRONMENT. Each process reads the',
    'file named by TAKEMARK_SECRETS_FILE. Whoever has it is the service: keep it like a private key.',
  ],
  operands: [],
  options: { out: { value: 'file', required: true, help: BUNDLE_HELP } },
  async run(_operands, options, { terminal, cluster }) {
    const output = await planOutput(options.out, false, []);
    await writeOutput(output, [Buffer.from(await cluster.makeSecrets())], 0o600);
    terminal.print(printable(`wrote ${output.path}`));
    return EXIT.good;
  },
});

const NEXT: Readonly<Record<'add' | 'use' | 'drop', string>> = {
  add: 'give it to every process, then take --step use',
  use: 'give it to every process; 25 hours later --step drop forgets the former ones',
  drop: 'give it to every process',
};

export const rotateSecrets = defineCommand({
  name: 'operator secrets rotate',
  summary:
    'Write the next bundle of a rotation: a new secret is known, then used, then the former one dropped',
  details: [
    'Three bundles, one after the other, each given to every process (restart them one by one) before the',
    'next is made. Processes with the bundle before and after a step work side by side.',
    '  add   makes new ones that verify already',
    '  use   makes them the current ones; the former still verify',
    '  drop  forgets the former ones; those of keys, audit logs and signatures',
    '        stay for good',
    '',
    'Purposes: key-pepper, upload-policy, cursor, rotation, audit, signing, operator-token.',
  ],
  operands: [],
  options: {
    in: { value: 'file', required: true, help: 'the bundle that is in use' },
    out: { value: 'file', required: true, help: BUNDLE_HELP },
    step: { value: 'step', required: true, choices: ['add', 'use', 'drop'], help: 'which of the three' },
    purpose: { value: 'list', help: 'what to rotate, joined by commas (all)' },
    early: { help: 'drop what was in use 25 hours ago too; replays of rotations are lost' },
  },
  async run(_operands, options, { terminal, cluster }) {
    const step = options.step;
    const purposes = options.purpose?.split(',');
    const early = options.early;
    if (early && step !== 'drop') throw new UsageError('--early is for --step drop');
    const name = options.in;
    const output = await planOutput(options.out, false, [name]);
    const next = await cluster.rotateSecrets(
      { text: await readFile(name, 'utf8'), name },
      { step, early, purposes },
    );
    await writeOutput(output, [Buffer.from(next)], 0o600);
    terminal.print(printable(`wrote ${output.path}: ${NEXT[step]}`));
    return EXIT.good;
  },
});

export const restore = defineCommand({
  name: 'operator restore',
  summary: 'Make a keyspace that was put back from a backup one that may be served',
  details: [
    'Directly over the servers of a cluster, after the backup was put back, with the services stopped or',
    'running: none of them serves anybody until this command has ended. Erases again what was erased since',
    'the backup, adds usage again that was counted since, and numbers what is counted from now on apart',
    'from what was. Interrupted, it is run again. A single service needs none of it: it replays its journal',
    'at every start. Exit code 1: there are messages or records that nobody can take; the service is open.',
  ],
  operands: [],
  options: { json: { help: 'what was done, as one line of JSON' } },
  async run(_operands, options, { terminal, cluster }) {
    const restored = await cluster.restore();
    const { epoch, erasures, erasedAgain, usage, left, seconds } = restored;
    if (options.json) terminal.printJson(restored);
    else {
      const rate = Math.round(erasures / Math.max(seconds, 0.001));
      terminal.print(
        `${erasures} erasures held against the store, ${rate} a second; ${erasedAgain} erased again`,
      );
      terminal.print(`${usage} counts of usage held against the store; epoch ${epoch} has begun`);
      if (left > 0) terminal.print(`${left} messages or records that nobody can take`);
    }
    return left === 0 ? EXIT.good : EXIT.notGood;
  },
});
