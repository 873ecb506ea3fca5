import { EXIT, type Command } from '../command.js';
import { planOutput, writeOutput } from '../output-file.js';
import { printable } from '../terminal.js';

export const migrateStore: Command = {
  name: 'operator migrate',
  summary: "Make the cluster's keyspace and bring its schema up to date",
  details: ['Works with the service running or stopped, again and from several machines at once.', 'TAKEMARK_CASSANDRA, TAKEMARK_CASSANDRA_DC and their kin say where the cluster is.'],
  operands: [],
  options: { json: { help: 'what was applied as one line of JSON' } },
  async run(given, { terminal, cluster }) {
    const applied = await cluster.migrate();
    if (given.flag('json')) terminal.printJson({ applied });
    else terminal.print(applied.length === 0 ? 'the schema is up to date' : printable(`applied ${applied.join(', ')}`));
    return EXIT.good;
  },
};

export const initSecrets: Command = {
  name: 'operator secrets init',
  summary: 'Write a bundle of secrets that all processes of a cluster share',
  details: ['Signing identity, operator token and every secret, for TAKEMARK_ENVIRONMENT. Each process reads the', 'file named by TAKEMARK_SECRETS_FILE. Whoever has it is the service: keep it like a private key.'],
  operands: [],
  options: { out: { value: 'file', required: true, help: 'where the bundle goes, mode 0600; never over a file that exists' } },
  async run(given, { terminal, cluster }) {
    const output = await planOutput(given.requiredText('out'), false, []);
    await writeOutput(output, [Buffer.from(await cluster.makeSecrets())], 0o600);
    terminal.print(printable(`wrote ${output.path}`));
    return EXIT.good;
  },
};
