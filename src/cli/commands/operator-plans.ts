import { defined } from '../../core/domain/defined.js';
import { RuntimeError, UsageError } from '../command.js';
import type { BodyAt, ResponseAt } from '../operator-client.js';
import { formatTime, printable, type Terminal, table } from '../terminal.js';
import { operatorCall } from './call-command.js';
import { planText } from './operator-accounts.js';

type PlanLimits = Omit<BodyAt<'POST plans'>, 'name'>;

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
const PLAN_JSON = 'print the plan as one line of JSON';
const NO_LIMIT =
  'give at least one limit: --monthly-quota, --requests-per-second, --burst, --concurrent-uploads or --rotations-per-day';

const listPlans = operatorCall({
  name: 'operator plan list',
  summary: 'List the plans and their limits',
  json: 'print one line of JSON per plan',
  call: () => (client) => client.list('GET plans', 'plans'),
  print: printPlans,
});

const createPlan = operatorCall({
  name: 'operator plan create',
  summary: 'Create a plan; repeating the command changes nothing',
  details: [
    'A name starts with a lower-case letter, followed by lower-case letters, digits and hyphens. A plan',
    'cannot be deleted.',
  ],
  operands: ['<name>'],
  options: {
    'monthly-quota': { ...LIMITS['monthly-quota'], required: true },
    'requests-per-second': { ...LIMITS['requests-per-second'], required: true },
    burst: { ...LIMITS.burst, required: true },
    'concurrent-uploads': { ...LIMITS['concurrent-uploads'], required: true },
    'rotations-per-day': { ...LIMITS['rotations-per-day'], help: `${LIMITS['rotations-per-day'].help} (5)` },
  },
  json: PLAN_JSON,
  call:
    ([name], { rotationsPerDay = 5, ...limits }) =>
    (client) =>
      client.call('POST plans', { json: { name, ...limitsOf({ ...limits, rotationsPerDay }) } }),
  print: printPlans,
});

const setPlan = operatorCall({
  name: 'operator plan set',
  summary: 'Change limits of a plan for every partner on that plan',
  details: [
    'Limits that you omit keep their current values. A scheduled change that has not taken effect yet is',
    'replaced.',
  ],
  operands: ['<name>'],
  options: { ...LIMITS, 'next-month': NEXT_MONTH },
  json: PLAN_JSON,
  call([plan], options) {
    const { monthlyQuota, requestsPerSecond, burst, concurrentUploads, rotationsPerDay } = options;
    const given = defined({
      monthlyQuota,
      requestsPerSecond,
      burst,
      concurrentUploads,
      rotationsPerDay,
    });
    if (Object.keys(given).length === 0) throw new UsageError(NO_LIMIT);
    return async (client) => {
      const known = (await client.list('GET plans', 'plans')).find(({ name }) => name === plan);
      if (known === undefined) throw new RuntimeError(`no such plan: ${plan}`);
      const json = { ...limitsOf(known), ...given, effect: effectOf(options.nextMonth) };
      return client.call('PUT plans/{plan}', { path: { plan }, json });
    };
  },
  print: printPlans,
});

const assignPlan = operatorCall({
  name: 'operator plan assign',
  summary: 'Give a partner another plan',
  details: [
    'Without --next-month, the usage of the current month counts towards the new plan. A scheduled',
    'assignment that has not taken effect yet is replaced.',
  ],
  operands: ['<plan>'],
  options: {
    partner: { value: 'partnerId', required: true, help: 'partner that gets the plan' },
    'next-month': NEXT_MONTH,
  },
  json: 'print the partner as one line of JSON',
  call:
    ([plan], { partner: partnerId, nextMonth }) =>
    (client) =>
      client.call('PUT partners/{partnerId}/plan', {
        path: { partnerId },
        json: { plan, effect: effectOf(nextMonth) },
      }),
  columns: (partner) => [partner.partnerId, planText(partner)],
});

export const PLAN_COMMANDS = [listPlans, createPlan, setPlan, assignPlan];

/** Returns only the limits of a plan. A later service may send more members. */
function limitsOf(plan: PlanLimits): PlanLimits {
  const { monthlyQuota, requestsPerSecond, burst, concurrentUploads, rotationsPerDay } = plan;
  return { monthlyQuota, requestsPerSecond, burst, concurrentUploads, rotationsPerDay };
}

function effectOf(isNextMonth: boolean): 'next_month' | 'at_once' {
  return isNextMonth ? 'next_month' : 'at_once';
}

/** Prints plans as a table. A scheduled change is a row below its plan. */
function printPlans(plans: readonly ResponseAt<'POST plans'>[], terminal: Terminal): void {
  const rows = plans.flatMap((plan) => [
    cellsOf(plan.name, plan),
    ...(plan.next === undefined ? [] : [cellsOf(`from ${formatTime(plan.next.from)}`, plan.next)]),
  ]);
  for (const line of table(HEADINGS, rows, (cell) => cell)) terminal.print(line);
}

function cellsOf(name: string, limits: PlanLimits): readonly string[] {
  return [name, ...Object.values(limitsOf(limits))].map((cell) => printable(String(cell)));
}
