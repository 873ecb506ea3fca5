import { defined } from '../../domain/defined.js';
import { defineCommand, EXIT, RuntimeError, UsageError } from '../command.js';
import type { Plan, PlanEffect, PlanLimits } from '../operator-client.js';
import { formatTime, printable, type Terminal, table } from '../terminal.js';
import { OPERATOR_DETAILS, planText, withOperator } from './operator-accounts.js';

const HEADINGS = [
  'plan',
  'units a month',
  'requests a second',
  'burst',
  'uploads at once',
  'rotations a day',
];

const LIMITS = {
  'monthly-quota': { value: 'n', range: [0, 1_000_000_000_000], help: 'units of a UTC month' },
  'requests-per-second': { value: 'n', range: [1, 1_000_000], help: 'requests that come back each second' },
  burst: { value: 'n', range: [1, 1_000_000], help: 'requests at once, after a pause' },
  'concurrent-uploads': { value: 'n', range: [1, 10_000], help: 'uploads at a time' },
  'rotations-per-day': { value: 'n', range: [1, 10_000], help: 'key rotations of 24 hours' },
} as const;
const NEXT_MONTH = { help: 'from the beginning of the next UTC month on (at once)' } as const;
const PLAN_JSON = { help: 'the plan as one line of JSON' } as const;
const NO_LIMIT =
  'give a limit to change: --monthly-quota, --requests-per-second, --burst, --concurrent-uploads or --rotations-per-day';

export const listPlans = defineCommand({
  name: 'operator plan list',
  service: 'operator',
  summary: 'List the plans and their limits',
  details: OPERATOR_DETAILS,
  operands: [],
  options: { json: { help: 'one line of JSON for each plan' } },
  async run(_operands, options, context) {
    showPlans(await withOperator(context, (client) => client.listPlans()), options.json, context.terminal);
    return EXIT.good;
  },
});

export const createPlan = defineCommand({
  name: 'operator plan create',
  service: 'operator',
  summary: 'Create a plan; the same again changes nothing',
  details: [
    'A name is a small letter, then small letters, digits and hyphens. A plan is never removed.',
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
  summary: 'Change limits of a plan, for every partner that has it',
  details: [
    'Limits that are not named stay as they are now. A change that has not come yet is replaced.',
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
      if (known === undefined) throw new RuntimeError(`there is no plan ${name}`);
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
    'At once, what the partner used of the month counts for the new plan as well. An assignment that has',
    'not come yet is replaced.',
    '',
    ...OPERATOR_DETAILS,
  ],
  operands: ['<plan>'],
  options: {
    partner: { value: 'partnerId', required: true, help: 'whose plan it becomes' },
    'next-month': NEXT_MONTH,
    json: { help: 'the partner as one line of JSON' },
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

/** Limits alone of a plan, which a later service may tell more of. */
function limitsOf(plan: PlanLimits): PlanLimits {
  const { monthlyQuota, requestsPerSecond, burst, concurrentUploads, rotationsPerDay } = plan;
  return { monthlyQuota, requestsPerSecond, burst, concurrentUploads, rotationsPerDay };
}

function effectOf(isNextMonth: boolean): PlanEffect {
  return { effect: isNextMonth ? 'next_month' : 'at_once' };
}

/** Prints plans as a table, each change that is to come as a line of its own under its plan. */
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
