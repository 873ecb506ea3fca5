import { createClient } from '../../client/index.js';
import { defineCommand, EXIT, UsageError } from '../command.js';
import { serviceAccess } from '../service-access.js';
import { formatTime, printable, table } from '../terminal.js';
import { PARTNER_DETAILS, withPartner } from './partner-account.js';

export const listProofs = defineCommand({
  name: 'proofs list',
  summary: 'List your proofs, newest first',
  details: PARTNER_DETAILS,
  operands: [],
  options: {
    'issued-after': { value: 'time', help: '2026-01-31, 2026-01-31T12:00:00Z, or unix seconds' },
    'issued-before': { value: 'time', help: 'the same' },
    json: { help: 'one line of JSON for each proof' },
  },
  async run(_operands, options, context) {
    const { terminal, signal } = context;
    const issuedAfter = timeOf('--issued-after', options.issuedAfter);
    const issuedBefore = timeOf('--issued-before', options.issuedBefore);
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

/** @returns unix seconds. @throws UsageError */
function timeOf(option: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (/^\d{1,10}$/.test(text)) return Number(text);
  // A date alone is its first second in UTC, as RFC 3339 has no time without an offset.
  const time = /^\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}:\d{2}(?:Z|[+-]\d{2}:\d{2}))?$/.test(text)
    ? Date.parse(text)
    : NaN;
  if (Number.isNaN(time) || time < 0)
    throw new UsageError(`${option} is a time, such as 2026-01-31, 2026-01-31T12:00:00Z or unix seconds`);
  return Math.floor(time / 1000);
}

export const showHealth = defineCommand({
  name: 'health',
  summary: 'Ask the service whether it is up, and for its version and environment',
  details: ['Needs no key and sends none. Exit code 1: it is not.', '', ...PARTNER_DETAILS],
  operands: [],
  options: { json: { help: 'the answer as one line of JSON' } },
  async run(_operands, { json }, { terminal, signal, config }) {
    const client = createClient({ baseUrl: config.url, ...(await serviceAccess(config, config.url)) });
    try {
      const health = await client.health({ signal });
      const { ok, version, environment, contract, deployedAt } = health;
      if (json) terminal.printJson(health);
      else
        terminal.print(
          printable(
            `${ok ? 'up' : 'not up'}: takemark ${version}, ${environment}, contract ${contract}, deployed ${formatTime(deployedAt)}`,
          ),
        );
      return ok ? EXIT.good : EXIT.notGood;
    } finally {
      client.close();
    }
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
