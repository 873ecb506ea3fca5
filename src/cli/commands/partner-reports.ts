import { type Command, EXIT } from '../command.js';
import { formatTime, printable, table } from '../terminal.js';
import { PARTNER_DETAILS, withPartner } from './partner-account.js';

const SECONDS = { min: 0, max: 9_999_999_999 };

export const listProofs: Command = {
  name: 'proofs list',
  summary: 'List your proofs, newest first',
  details: PARTNER_DETAILS,
  operands: [],
  options: {
    'issued-after': { value: 'seconds', help: 'unix seconds' },
    'issued-before': { value: 'seconds', help: 'unix seconds' },
    json: { help: 'one line of JSON for each proof' },
  },
  async run(given, surroundings) {
    const { terminal, signal } = surroundings;
    const filter = {
      issuedAfter: given.count('issued-after', SECONDS),
      issuedBefore: given.count('issued-before', SECONDS),
    };
    await withPartner(surroundings, async (client) => {
      for await (const proof of client.listProofs({ ...filter, signal })) {
        if (given.flag('json')) terminal.printJson(proof);
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
};

export const showUsage: Command = {
  name: 'usage',
  summary: 'Show what is used and left of the month, and the units of each day',
  details: PARTNER_DETAILS,
  operands: [],
  options: {
    days: { value: 'n', help: '1 to 92 (30)' },
    json: { help: 'the report as one line of JSON' },
  },
  async run(given, surroundings) {
    const { terminal, signal } = surroundings;
    const report = await withPartner(surroundings, (client) =>
      client.readUsage({ days: given.count('days', { min: 1, max: 92 }), signal }),
    );
    if (given.flag('json')) {
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
};
