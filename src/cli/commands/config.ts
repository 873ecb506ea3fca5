import type { ServerCheck } from '../../service/domain/server-check.js';
import { printCheck } from '../check-lines.js';
import { defineCommand, EXIT } from '../command.js';
import { printable } from '../terminal.js';
import { CHECK_MARKS } from './operator-doctor.js';

const SOURCE_WIDTH = 'environment'.length;

export const showConfig = defineCommand({
  name: 'config',
  summary: 'Print every setting of the service with its value and source, or check the settings',
  details: [
    'Reads the environment variables of this shell. Secret values are not printed. --check tries what a start',
    'needs from this machine: names, files, the data directory and the ports. It starts and creates nothing.',
    'takemark operator doctor checks the servers of a cluster.',
    'Exit code 1: with --check, at least one check is REFUSE.',
  ],
  options: {
    check: { help: 'check the settings instead of printing them' },
    json: { help: 'print one line of JSON' },
  },
  async run(_operands, options, { terminal, cluster }) {
    if (options.check) {
      const checks = await cluster.checkConfig();
      const refused = checks.filter(({ verdict }) => verdict === 'refuse').length;
      if (options.json) terminal.printJson({ checks, refused });
      else
        for (const check of checks) printCheck(terminal, CHECK_MARKS[check.verdict], check, adviceOf(check));
      return refused === 0 ? EXIT.good : EXIT.notGood;
    }
    const settings = cluster.listSettings();
    if (options.json) terminal.printJson({ settings });
    else {
      const width = Math.max(...settings.map(({ name }) => name.length));
      for (const { name, source, value = 'not set' } of settings)
        terminal.print(printable(`${name.padEnd(width)}  ${source.padEnd(SOURCE_WIDTH)}  ${value}`));
    }
    return EXIT.good;
  },
});

function adviceOf({ wanted, verdict, reason }: ServerCheck): string | undefined {
  if (verdict === 'ok') return undefined;
  return `wanted: ${wanted}${reason === undefined ? '' : `; ${reason}`}`;
}
