import { createClient } from '../../client/index.js';
import { defineCommand, EXIT } from '../command.js';
import { serviceAccess } from '../service-access.js';
import { formatTime, printable, table } from '../terminal.js';
import { parseTime } from '../time-option.js';
import { commonClientOptions, PARTNER_DETAILS, withPartner } from './partner-account.js';

export const listProofs = defineCommand({
  name: 'proofs list',
  service: 'partner',
  summary: 'List your proofs, newest first',
  details: PARTNER_DETAILS,
  operands: [],
  options: {
    'issued-after': { value: 'time', help: '2026-01-31, 2026-01-31T12:00:00Z, or unix seconds' },
    'issued-before': { value: 'time', help: 'a time in the same formats' },
    json: { help: 'print one line of JSON per proof' },
  },
  async run(_operands, options, context) {
    const { terminal, signal } = context;
    const issuedAfter =
      options.issuedAfter === undefined ? undefined : parseTime('--issued-after', options.issuedAfter);
    const issuedBefore =
      options.issuedBefore === undefined ? undefined : parseTime('--issued-before', options.issuedBefore);
    await withPartner(context, async (client) => {
      let isEmpty = true;
      for await (const proof of client.listProofs({ issuedAfter, issuedBefore, signal })) {
        isEmpty = false;
        if (options.json) terminal.printJson(proof);
        else
          terminal.print(
            printable(
              `${proof.proofId}  ${formatTime(proof.issuedAt)}  ${proof.carrier.padEnd(8)}  ${proof.song.title}`,
            ),
          );
      }
      if (isEmpty) terminal.note('no proofs');
    });
    return EXIT.good;
  },
});

export const showHealth = defineCommand({
  name: 'health',
  service: 'partner',
  summary: 'Show whether the service is up, and its version and environment',
  details: [
    'Needs no key and sends none. Exit code 1: the service is not up. TAKEMARK_URL is the address of the',
    'service (http://127.0.0.1:8080). TAKEMARK_CA is a PEM file of its certificate authority, if Node does',
    'not trust it already.',
  ],
  operands: [],
  options: { json: { help: 'print the response as one line of JSON' } },
  async run(_operands, { json }, context) {
    const { terminal, signal, config } = context;
    // No secret is sent, so plain HTTP exposes none.
    const access = await serviceAccess({ ...config, allowPlainHttp: true }, config.url);
    const client = createClient({ baseUrl: config.url, ...commonClientOptions(context), ...access });
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
  service: 'partner',
  summary: "Show this month's used and remaining units, and the units of each day",
  details: PARTNER_DETAILS,
  operands: [],
  options: {
    days: { value: 'n', range: [1, 92], help: 'days to show, 1 to 92 (30)' },
    json: { help: 'print the report as one line of JSON' },
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
    // A service of an earlier version sends no other limits.
    const limits: typeof report.limits | undefined = report.limits;
    if (limits !== undefined)
      terminal.print(
        `limits: ${limits.requestsPerSecond} requests per second, bursts of ${limits.burst}, ${limits.concurrentUploads} uploads at a time, ${limits.rotationsPerDay} key rotations per day`,
      );
    const used = report.days.filter(({ operations }) => Object.values(operations).some((count) => count > 0));
    if (used.length === 0) return EXIT.good;
    const rows = used.map(({ day, units, operations }) =>
      [
        day,
        String(units),
        Object.entries(operations)
          .filter(([, count]) => count > 0)
          .map(([name, count]) => `${name} ${count}`)
          .join(', '),
      ].map(printable),
    );
    for (const line of table(['day', 'units', 'operations'], rows, (cell) => cell)) terminal.print(line);
    return EXIT.good;
  },
});
