import { type Context, defineCommand, EXIT, UsageError } from '../command.js';
import { formatTime, printable } from '../terminal.js';
import { withOperator } from './call-command.js';

const backup = defineCommand({
  name: 'operator backup',
  service: 'operator',
  summary: 'Back up one machine while its service runs',
  details: [
    'Runs on the machine of the service, as the user of the service. It reads the rows of the store from the',
    'running service, and copies deliverables, signing keys and secrets from TAKEMARK_DATA_DIR. Protect the',
    'backup like a private key. Content keys and journals are not copied, because an erasure must outlive',
    'every backup: keep them on a second disk with TAKEMARK_MIRROR_DIR. takemark operator restore --from',
    'restores the backup.',
  ],
  options: {
    out: { value: 'directory', required: true, help: 'directory of the backup, which is empty or absent' },
    json: { help: 'print the result as one line of JSON' },
  },
  async run(_operands, { out, json }, context) {
    const { terminal, cluster, signal } = context;
    const made = await withOperator(context, (client) =>
      cluster.makeBackup(out, (receive) => client.readSnapshot(receive), signal),
    );
    if (json) terminal.printJson(made);
    else {
      terminal.print(printable(`wrote ${out}: ${made.rows} rows, ${made.files} files, ${made.bytes} bytes`));
      if (made.isBesideStore)
        terminal.note(
          'takemark: the backup is on the disk of the data directory. Copy it to another disk or machine.',
        );
    }
    return EXIT.good;
  },
});

const restore = defineCommand({
  name: 'operator restore',
  summary: 'Restore a backup of one machine, or make a restored keyspace of a cluster safe to serve',
  details: [
    'With --from it restores a backup of one machine into TAKEMARK_DATA_DIR, which may hold nothing but',
    'content-keys and journals. The service must be stopped. Every file is compared with its digest. After an',
    'interruption, run it again: until it has ended, the service does not start.',
    '',
    "Without --from it runs directly against a cluster's servers after you have restored their backup.",
    'Services may be stopped or running: running services refuse every call until this command has ended. It',
    'repeats the erasures and adds the usage since the backup, and starts a new epoch for later usage counts.',
    'After an interruption, run it again. Exit code 1: some messages or records could not be processed; the',
    'service is open again.',
  ],
  options: {
    from: { value: 'directory', help: 'directory that takemark operator backup wrote' },
    'accept-lost-journals': { help: 'restore although no journal of erasures is left' },
    json: { help: 'print the result as one line of JSON' },
  },
  async run(_operands, { from, acceptLostJournals, json }, context) {
    if (from !== undefined) return restoreFrom(from, { acceptLostJournals, json }, context);
    if (acceptLostJournals) throw new UsageError('--accept-lost-journals works only with --from');
    const { terminal, cluster } = context;
    const restored = await cluster.restore();
    const { epoch, erasures, erasedAgain, usage, left, seconds } = restored;
    if (json) terminal.printJson(restored);
    else {
      const rate = Math.round(erasures / Math.max(seconds, 0.001));
      terminal.print(
        `${erasures} erasures compared with the store, ${rate} per second; ${erasedAgain} erased again`,
      );
      terminal.print(`${usage} usage counts compared with the store; epoch ${epoch} has begun`);
      if (left > 0) terminal.print(`${left} messages or records could not be processed`);
    }
    return left === 0 ? EXIT.good : EXIT.notGood;
  },
});

async function restoreFrom(
  from: string,
  { acceptLostJournals, json }: { readonly acceptLostJournals: boolean; readonly json: boolean },
  { terminal, cluster, signal, config }: Context,
): Promise<number> {
  const restored = await cluster.restoreBackup(from, { acceptLostJournals, signal });
  if (json) terminal.printJson(restored);
  else {
    const { takenAt, rows, files, bytes } = restored;
    terminal.print(
      printable(
        `restored ${config.dataDirectory} from the backup of ${formatTime(takenAt)}: ${rows} rows, ${files} files, ${bytes} bytes`,
      ),
    );
    terminal.print(
      'Start the service. If something changed after the backup, the first start prints a code.',
    );
  }
  return EXIT.good;
}

export const BACKUP_COMMANDS = [backup, restore];
