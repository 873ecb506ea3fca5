import { defined } from '../../core/domain/defined.js';
import { defineCommand, EXIT, RuntimeError, UsageError } from '../command.js';
import type { Plan, PlanLimits } from '../operator-client.js';
import { formatTime, printable, type Terminal, table } from '../terminal.js';
import { OPERATOR_DETAILS, planText, withOperator } from './operator-accounts.js';

const HEADINGS = [
  'plan',
  'units per month',
  'requests per second',
  'burst',
  'concurrent uploads',
  'rotations per day',
];

const LIMITS = {
  'monthly-quota': { value: 'n', range: [0, 1_000_000_000_000], help: 'units per UTC month' },
  'requests-per-second': {
    value: 'n',
    range: [1, 1_000_000],
    help: 'sustained request rate, in requests per second',
  },
  burst: {
    value: 'n',
    range: [1, 1_000_000],
    help: 'maximum number of requests accepted at once after an idle period',
  },
  'concurrent-uploads': { value: 'n', range: [1, 10_000], help: 'maximum number of concurrent uploads' },
  'rotations-per-day': {
    value: 'n',
    range: [1, 10_000],
    help: 'key rotations per 24 hours, and the largest burst of rotations',
  },
} as const;
const NEXT_MONTH = { help: 'apply from the start of the next UTC month instead of immediately' } as const;
const PLAN_JSON = { help: 'print the plan as one line of JSON' } as const;
const NO_LIMIT =
  'give at least one limit: --monthly-quota, --requests-per-second, --burst, --concurrent-uploads or --rotations-per-day';

export const listPlans = defineCommand({
  name: 'operator plan list',
  service: 'operator',
  summary: 'List the plans and their limits',
  details: OPERATOR_DETAILS,
  operands: [],
  options: { json: { help: 'print one line of JSON per plan' } },
  async run(_operands, options, context) {
    showPlans(await withOperator(context, (client) => client.listPlans()), options.json, context.terminal);
    return EXIT.good;
  },
});

export const createPlan = defineCommand({
  name: 'operator plan create',
  service: 'operator',
  summary: 'Create a plan; repeating the command changes nothing',
  details: [
    'A name starts with a lower-case letter, followed by lower-case letters, digits and hyphens. A plan',
    'cannot be deleted.',
    '',
    ...OPERATOR_DETAILS,
  ],
  operands: ['<name>'],
  options: {
    'monthly-quota': { ...LIMITS['monthly-quota'], required: true },
    'requests-per-second': { ...LIMITS['requests-per-second'], required: true },
    burst: { ...LIMITS.burst, required: true },
    'concurrent-uploads': { ...LIMITS['concurrent-uploads'], required: true },
    'rotations-per-day': { ...LIMITS['rotations-per-day'], help: `${LIMITS['rotations-per-day'].help} (5)` },
    json: PLAN_JSON,
  },
  async run([name], options, context) {
    const { monthlyQuota, requestsPerSecond, burst, concurrentUploads, rotationsPerDay = 5 } = options;
    const plan = { name, monthlyQuota, requestsPerSecond, burst, concurrentUploads, rotationsPerDay };
    showPlans(
      [await withOperator(context, (client) => client.createPlan(plan))],
      options.json,
      context.terminal,
    );
    return EXIT.good;
  },
});

export const setPlan = defineCommand({
  name: 'operator plan set',
  service: 'operator',
  summary: 'Change limits of a plan for every partner on that plan',
  details: [
    'Limits that you omit keep their current values. A scheduled change that has not taken effect yet is',
    'replaced.',
    '',
    ...OPERATOR_DETAILS,
  ],
  operands: ['<name>'],
  options: { ...LIMITS, 'next-month': NEXT_MONTH, json: PLAN_JSON },
  async run([name], options, context) {
    const { monthlyQuota, requestsPerSecond, burst, concurrentUploads, rotationsPerDay } = options;
    const given = defined({
      monthlyQuota,
      requestsPerSecond,
      burst,
      concurrentUploads,
      rotationsPerDay,
    });
    if (Object.keys(given).length === 0) throw new UsageError(NO_LIMIT);
    const plan = await withOperator(context, async (client) => {
      const known = (await client.listPlans()).find((plan) => plan.name === name);
      if (known === undefined) throw new RuntimeError(`no such plan: ${name}`);
      return client.setPlan(name, { ...limitsOf(known), ...given, ...effectOf(options.nextMonth) });
    });
    showPlans([plan], options.json, context.terminal);
    return EXIT.good;
  },
});

export const assignPlan = defineCommand({
  name: 'operator plan assign',
  service: 'operator',
  summary: 'Give a partner another plan',
  details: [
    'Without --next-month, the usage of the current month counts towards the new plan. A scheduled',
    'assignment that has not taken effect yet is replaced.',
    '',
    ...OPERATOR_DETAILS,
  ],
  operands: ['<plan>'],
  options: {
    partner: { value: 'partnerId', required: true, help: 'partner that gets the plan' },
    'next-month': NEXT_MONTH,
    json: { help: 'print the partner as one line of JSON' },
  },
  async run([plan], options, context) {
    const { terminal } = context;
    const change = { plan, ...effectOf(options.nextMonth) };
    const partner = await withOperator(context, (client) => client.assignPlan(options.partner, change));
    if (options.json) terminal.printJson(partner);
    else terminal.print(printable(`${partner.partnerId}  ${partner.name} (${planText(partner)})`));
    return EXIT.good;
  },
});

/** Returns only the limits of a plan. A later service may send more members. */
function limitsOf(plan: PlanLimits): PlanLimits {
  const { monthlyQuota, requestsPerSecond, burst, concurrentUploads, rotationsPerDay } = plan;
  return { monthlyQuota, requestsPerSecond, burst, concurrentUploads, rotationsPerDay };
}

function effectOf(isNextMonth: boolean) {
  return { effect: isNextMonth ? 'next_month' : 'at_once' } as const;
}

/** Prints plans as a table. A scheduled change is a row below its plan. */
function showPlans(plans: readonly Plan[], json: boolean, terminal: Terminal): void {
  if (json) {
    for (const plan of plans) terminal.printJson(plan);
    return;
  }
  const rows = plans.flatMap((plan) => [
    cellsOf(plan.name, plan),
    ...(plan.next === undefined ? [] : [cellsOf(`from ${formatTime(plan.next.from)}`, plan.next)]),
  ]);
  for (const line of table(HEADINGS, rows, (cell) => cell)) terminal.print(line);
}

function cellsOf(name: string, limits: PlanLimits): readonly string[] {
  return [name, ...Object.values(limitsOf(limits))].map((cell) => printable(String(cell)));
}
