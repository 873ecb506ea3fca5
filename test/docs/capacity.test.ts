import { readFile } from 'node:fs/promises';
import t from 'tap';
import { pageOf } from '../../bench/capacity/page.js';
import { type Inputs, type Load, planOf } from '../../bench/capacity/plan.js';
import { MADE_UP } from '../fixtures/capacity-measurement.js';

const deploy = new URL('../../../deploy/', import.meta.url);
const read = async (name: string) => readFile(new URL(name, deploy), 'utf8');
type Page = Parameters<typeof pageOf>;

const inputs = JSON.parse(await read('capacity-inputs.json')) as Page[1];
const plans = Object.entries(inputs.plans);

/** Figures of a plan by their names. */
function figures(load: Load, given: Inputs = inputs): ReadonlyMap<string, number> {
  return new Map(planOf(MADE_UP, given, load).map(({ name, value }) => [name, value]));
}

/** Names of the figures that another load or other inputs change. */
function changed(load: Load, over: Partial<Load>, given: Inputs = inputs): readonly string[] {
  const [before, after] = [figures(load), figures({ ...load, ...over }, given)];
  return [...after.keys()].filter((name) => before.get(name) !== after.get(name));
}

const isClose = (one: number, other: number): boolean => Math.abs(one - other) <= 1e-9 * Math.abs(other);

void t.test('the page of capacity is what the measurement and the inputs give', async (t) => {
  const measured = JSON.parse(await read('capacity-measured.json')) as Page[0];
  t.equal(await read('capacity.md'), pageOf(measured, inputs), 'npm run build:capacity');
});

void t.test('every input has a unit, and every unit an input', async (t) => {
  const named = [
    ...Object.keys(inputs.prices),
    ...Object.keys(inputs.assumed),
    ...new Set(plans.flatMap(([, load]) => Object.keys(load))),
  ];
  t.strictSame(Object.keys(inputs.units).toSorted(), named.toSorted());
});

void t.test('a thousand verifies more cost a thousand times one, on every replica', async (t) => {
  const [[, load]] = plans as [(typeof plans)[number]];
  const given = { ...inputs, assumed: { ...inputs.assumed, keyMissShare: 0 } };
  const cores = (verifies: number) => figures({ ...load, verifies }, given).get('Cassandra, calls')!;
  const perCall = MADE_UP.costs.find(({ name }) => name === 'verify, embedded')!.cpu.cassandra;
  t.ok(
    Math.abs(
      cores(1100) -
        cores(100) -
        (1000 * perCall * inputs.assumed.replicas) / 1e6 / inputs.assumed.busyShare.cassandra,
    ) < 1e-6,
  );
});

void t.test('sums are those of their parts', async (t) => {
  for (const [name, load] of plans) {
    const figure = figures(load);
    const sum = (...names: readonly string[]) => names.reduce((added, each) => added + figure.get(each)!, 0);
    const cores = planOf(MADE_UP, inputs, load).filter(({ unit }) => unit === 'cores');
    t.ok(
      isClose(
        sum(...cores.map((each) => each.name).filter((each) => each !== 'all cores')),
        figure.get('all cores')!,
      ),
      `${name}: cores`,
    );
    const months = [
      'cores a month',
      'disks a month',
      'network a month',
      'requests to the bucket a month',
    ] as const;
    t.ok(
      isClose(sum(...months, 'bucket a month, all at hand'), figure.get('**a month, all at hand**')!),
      `${name}: money`,
    );
    t.ok(
      isClose(
        sum(...months, 'bucket a month, with the policy below'),
        figure.get('**a month, with the policy**')!,
      ),
      `${name}: money with the policy`,
    );
    t.ok(
      figure.get('of cores and requests: the auditor')! < sum('cores a month', months[3]),
      `${name}: auditor`,
    );
  }
});

void t.test('an input changes what is made of it, and nothing else', async (t) => {
  const [[, load]] = plans as [(typeof plans)[number]];
  const figure = figures(load);
  const doubled = (over: Partial<Load>, name: string): number =>
    figures({ ...load, ...over }).get(name)! / figure.get(name)!;

  t.ok(isClose(doubled({ proofs: 2 * load.proofs }, 'deliverables'), 2), 'twice the proofs, twice the files');
  t.ok(isClose(doubled({ proofs: 2 * load.proofs }, 'content keys'), 2), 'and twice the keys');
  t.ok(
    isClose(doubled({ auditRate: 2 * load.auditRate }, 'auditor: a pass at its rate'), 1 / 2),
    'twice the rate of the auditor, half the time',
  );
  t.strictSame(
    changed(load, { auditRate: 2 * load.auditRate }),
    [
      'service, the auditor (one process)',
      'Cassandra, the auditor',
      'all cores',
      'bucket: reads',
      'auditor: a pass at its rate',
      'cores a month',
      'requests to the bucket a month',
      'of cores and requests: the auditor',
      '**a month, all at hand**',
      '**a month, with the policy**',
    ],
    'the rate of the auditor costs cores and reads of the bucket',
  );
  t.ok(
    figures({ ...load, deliverableBytes: 2 * load.deliverableBytes }).get('service, calls and bodies')! >
      figure.get('service, calls and bodies')!,
    'the bytes of what is issued take CPU',
  );
  t.strictSame(
    ['journal of erasures, five years', 'bucket: writes and lists', 'bucket: removals'].filter(
      (name) => !changed(load, { erasures: 2 * load.erasures }).includes(name),
    ),
    [],
    'erasures are noted in the bucket, and overwrite and remove',
  );
  t.strictSame(
    ['service, calls and bodies', 'Cassandra disk: proofs, evidence, index, log', 'traces'].filter(
      (name) => !changed(load, { tracedShare: load.tracedShare + 0.1 }).includes(name),
    ),
    [],
    'issuings with a trace take CPU, rows and objects',
  );
  const { putThousand } = inputs.prices;
  t.strictSame(
    changed(load, {}, { ...inputs, prices: { ...inputs.prices, putThousand: 2 * putThousand } }),
    ['requests to the bucket a month', '**a month, all at hand**', '**a month, with the policy**'],
    'the price of a write is that of requests alone',
  );
});

void t.test('no alert waits for the end of a pass of the auditor', async (t) => {
  const alerts = await readFile(new URL('prometheus/alerts.yml', deploy), 'utf8');
  const [, expr = '', seconds] =
    /alert: TakemarkAuditorStill\n(?: *#.*\n)* *expr: (.*> (\d+) \* 3600)\n/.exec(alerts) ?? [];
  t.notMatch(expr, /pass_ended/);
  t.match(expr, 'takemark_audit_step_ended_seconds');
  t.ok(Number(seconds) > 1, 'longer than the rest between two passes');
});

void t.test('the pass of the auditor ends in the time that is planned for it', async (t) => {
  for (const [name, load] of plans)
    t.ok(figures(load).get('auditor: a pass at its rate')! <= inputs.assumed.auditPassDays, name);
});
