import { defineCommand, EXIT } from '../command.js';
import { formatTime, printable, table } from '../terminal.js';
import { PARTNER_DETAILS, withPartner } from './partner-account.js';

const SECONDS = [0, 9_999_999_999] as const;

export const listProofs = defineCommand({
  name: 'proofs list',
  summary: 'List your proofs, newest first',
  details: PARTNER_DETAILS,
  operands: [],
  options: {
    'issued-after': { value: 'seconds', range: SECONDS, help: 'unix seconds' },
    'issued-before': { value: 'seconds', range: SECONDS, help: 'unix seconds' },
    json: { help: 'one line of JSON for each proof' },
  },
  async run(_operands, options, context) {
    const { terminal, signal } = context;
    const { issuedAfter, issuedBefore } = options;
    await withPartner(context, async (client) => {
      for await (const proof of client.listProofs({ issuedAfter, issuedBefore, signal })) {
        if (options.json) terminal.printJson(proof);
        else
          terminal.print(
            printable(
              `${proof.proofId}  ${formatTime(proof.issuedAt)}  ${proof.carrier.padEnd(8)}  ${proof.song.title}`,
            ),
          );
      }
    });
    return EXIT.good;
  },
});

export const showUsage = defineCommand({
  name: 'usage',
  summary: 'Show what is used and left of the month, and the units of each day',
  details: PARTNER_DETAILS,
  operands: [],
  options: {
    days: { value: 'n', range: [1, 92], help: '1 to 92 (30)' },
    json: { help: 'the report as one line of JSON' },
  },
  async run(_operands, options, context) {
    const { terminal, signal } = context;
    const report = await withPartner(context, (client) => client.readUsage({ days: options.days, signal }));
    if (options.json) {
      terminal.printJson(report);
      return EXIT.good;
    }
    terminal.print(
      printable(
        `plan ${report.plan}: ${report.used} of ${report.limit} units used, ${report.remaining} left until ${formatTime(report.period.end)}`,
      ),
    );
    const rows = report.days.map(({ day, units, operations }) =>
      [
        day,
        String(units),
        Object.entries(operations)
          .map(([name, count]) => `${name} ${count}`)
          .join(', '),
      ].map(printable),
    );
    for (const line of table(['day', 'units', 'operations'], rows, (cell) => cell)) terminal.print(line);
    return EXIT.good;
  },
});
