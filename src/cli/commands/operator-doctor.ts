import type { ServerCheck } from '../../service/domain/server-check.js';
import { printCheck } from '../check-lines.js';
import { defineCommand, EXIT } from '../command.js';

/** The words of the verdicts of checks. */
export const CHECK_MARKS: Readonly<Record<ServerCheck['verdict'], string>> = {
  ok: 'ok',
  warn: 'warn',
  refuse: 'REFUSE',
  not_checked: 'not checked',
};

export const examineInstallation = defineCommand({
  name: 'operator doctor',
  summary: 'Check this machine and the servers of the cluster for what the service needs',
  details: [
    'Looks at the data directory of this machine (disk, inodes, permissions, clock, certificate, content',
    'keys), and reads the settings of Cassandra, Kafka and the bucket, as far as they are configured. It',
    'changes nothing. Every process of a cluster runs the checks of the servers when it starts. In',
    'production, a process does not start after a REFUSE, unless TAKEMARK_ACCEPT_SERVERS names the check.',
    'In beta, a REFUSE is only a warning. "not checked" means that the setting is not reported, or not to',
    'this user: check it yourself. Exit code 1: at least one check is REFUSE.',
  ],
  options: { json: { help: 'print the checks as one line of JSON' } },
  async run(_operands, options, { terminal, cluster }) {
    const checks = await cluster.examineInstallation();
    const refused = checks.filter(({ verdict }) => verdict === 'refuse').length;
    if (options.json) terminal.printJson({ checks, refused });
    else
      for (const check of checks) {
        const { wanted, verdict, reason } = check;
        const more = `wanted: ${wanted}${reason === undefined ? '' : `; ${reason}`}`;
        printCheck(terminal, CHECK_MARKS[verdict], check, verdict === 'ok' ? undefined : more);
      }
    return refused === 0 ? EXIT.good : EXIT.notGood;
  },
});
