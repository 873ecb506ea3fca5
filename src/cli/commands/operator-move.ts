import { defineCommand, EXIT, UsageError } from '../command.js';
import { planOutput, writeOutput } from '../output-file.js';
import { printable } from '../terminal.js';

const exportStore = defineCommand({
  name: 'operator export',
  summary: 'Export one machine for a move to a cluster',
  details: [
    'Runs on the machine of the service, as its user, while the service is stopped. It writes partners, keys,',
    'proofs, tombstones, reviews, uploads, usage, audit logs, content keys, deliverables and secrets to one',
    'file, encrypted under a passphrase of at least 16 characters. The passphrase is read from a pipe or',
    'without echo from the terminal.',
    '',
    'From then on the service on this machine answers every call that needs a key or token with 503, also',
    'after a restart. Otherwise two registries would accept changes. --resume ends this. Use --resume only if',
    'the cluster never served.',
  ],
  options: {
    out: { value: 'file', help: 'file of the export, which must not exist' },
    resume: { help: 'let the service of this machine answer calls again, and export nothing' },
    json: { help: 'print the result as one line of JSON' },
  },
  async run(_operands, { out, resume, json }, { terminal, cluster, readSecret, signal }) {
    if (resume === (out !== undefined)) throw new UsageError('give either --out or --resume');
    if (out === undefined) {
      await cluster.resumeService();
      if (json) terminal.printJson({ resumed: true });
      else terminal.print('the service of this machine answers calls after its next start');
      return EXIT.good;
    }
    const passphrase = (await readSecret('Passphrase of the export (hidden): ')).trim();
    const made = await cluster.exportInstallation(out, passphrase, signal);
    if (json) terminal.printJson(made);
    else {
      terminal.print(
        printable(`wrote ${out}: rows ${made.rows}, proofs ${made.proofs}, erased proofs ${made.erased}`),
      );
      terminal.print('The service of this machine answers no more calls. --resume ends this.');
    }
    return EXIT.good;
  },
});

const importStore = defineCommand({
  name: 'operator import',
  summary: 'Import the export of one machine into an unused cluster',
  details: [
    "Runs directly against a cluster's servers, after takemark operator migrate and before the first start. It",
    'writes every row of the export, reads every row back, and compares both. After an interruption, run it',
    'again: it goes on where it stopped. A keyspace with other data is refused.',
    '',
    'First write the secrets of the machine with --secrets-out, and set TAKEMARK_SECRETS_FILE to this file',
    'for the import and for every process of the cluster.',
  ],
  options: {
    from: { value: 'file', required: true, help: 'file that takemark operator export wrote' },
    'secrets-out': { value: 'file', help: 'bundle of secrets to write, with mode 0600, and import nothing' },
    json: { help: 'print the result as one line of JSON' },
  },
  async run(_operands, { from, secretsOut, json }, { terminal, cluster, readSecret, signal }) {
    const passphrase = (await readSecret('Passphrase of the export (hidden): ')).trim();
    if (secretsOut !== undefined) {
      const output = await planOutput(secretsOut, undefined, [from]);
      await writeOutput(output, [Buffer.from(await cluster.readExportedBundle(from, passphrase))], 0o600);
      if (json) terminal.printJson({ secrets: output.path });
      else terminal.print(printable(`wrote ${output.path}`));
      return EXIT.good;
    }
    const imported = await cluster.importInstallation(from, passphrase, signal);
    if (json) terminal.printJson(imported);
    else if (imported.wasComplete) terminal.print('this export was imported before, and nothing was changed');
    else
      terminal.print(
        `imported and compared: rows ${imported.compared}, erased proofs ${imported.erased}. Start the cluster`,
      );
    return EXIT.good;
  },
});

export const MOVE_COMMANDS = [exportStore, importStore];
