import { createClient } from '../../client/index.js';
import { defineCommand, EXIT } from '../command.js';
import { serviceAccess } from '../service-access.js';
import { formatTime, printable, table } from '../terminal.js';
import { partnerCall } from './call-command.js';
import { commonClientOptions } from './partner-account.js';

const showHealth = defineCommand({
  name: 'health',
  service: 'partner',
  summary: 'Show whether the service is up, and its version and environment',
  environment: [
    'Needs no key and sends none. Exit code 1: the service is not up. TAKEMARK_URL is the address of the',
    'service (http://127.0.0.1:8080). TAKEMARK_CA is a PEM file of its certificate authority, if Node does',
    'not trust it already.',
  ],
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

const showUsage = partnerCall({
  name: 'usage',
  summary: "Show this month's used and remaining units, and the units of each day",
  options: { days: { value: 'n', range: [1, 92], help: 'days to show, 1 to 92 (30)' } },
  json: 'print the report as one line of JSON',
  call:
    (_operands, { days }, { signal }) =>
    (client) =>
      client.readUsage({ days, signal }),
  print([report], terminal) {
    const { plan, used, limit, remaining, period, days } = report!;
    terminal.print(
      printable(
        `plan ${plan}: ${used} of ${limit} units used, ${remaining} left until ${formatTime(period.end)}`,
      ),
    );
    // A service of an earlier version sends no other limits.
    const limits: NonNullable<typeof report>['limits'] | undefined = report!.limits;
    if (limits !== undefined)
      terminal.print(
        `limits: ${limits.requestsPerSecond} requests per second, bursts of ${limits.burst}, ${limits.concurrentUploads} uploads at a time, ${limits.rotationsPerDay} key rotations per day`,
      );
    const rows = days
      .map(({ day, units, operations }) => ({
        cells: [day, String(units)],
        counts: Object.entries(operations).filter(([, count]) => count > 0),
      }))
      .filter(({ counts }) => counts.length > 0)
      .map(({ cells, counts }) =>
        [...cells, counts.map(([name, count]) => `${name} ${count}`).join(', ')].map(printable),
      );
    if (rows.length === 0) return;
    for (const line of table(['day', 'units', 'operations'], rows, (cell) => cell)) terminal.print(line);
  },
});

export const REPORT_COMMANDS = [showUsage, showHealth];
