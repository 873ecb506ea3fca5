import type { ServerCheck } from '../../domain/server-check.js';
import { printCheck } from '../check-lines.js';
import { defineCommand, EXIT } from '../command.js';

const MARKS: Readonly<Record<ServerCheck['verdict'], string>> = {
  ok: 'ok',
  warn: 'warn',
  refuse: 'REFUSE',
  not_checked: 'not checked',
};

export const examineServers = defineCommand({
  name: 'operator doctor',
  summary: "Look whether the cluster's servers are set up as the service needs them",
  details: [
    'Reads settings of Cassandra, Kafka and the bucket, whichever are configured, and changes nothing.',
    'Every process of a cluster does the same at its start: in production it does not start where a check',
    'refuses, unless TAKEMARK_ACCEPT_SERVERS names the check; in beta a refusal is a warning. "not checked"',
    'is what a server does not tell, or not this user: look for yourself. Exit code 1: a check refuses.',
  ],
  operands: [],
  options: { json: { help: 'the checks as one line of JSON' } },
  async run(_operands, options, { terminal, cluster }) {
    const checks = await cluster.examineServers();
    const refused = checks.filter(({ verdict }) => verdict === 'refuse').length;
    if (options.json) terminal.printJson({ checks, refused });
    else
      for (const check of checks) {
        const { wanted, verdict, reason } = check;
        const more = `wanted: ${wanted}${reason === undefined ? '' : `; ${reason}`}`;
        printCheck(terminal, MARKS[verdict], check, verdict === 'ok' ? undefined : more);
      }
    return refused === 0 ? EXIT.good : EXIT.notGood;
  },
});
