/** Tests that the seed determines the faults of a run, and that the cluster can recover from all of them. */
import t from 'tap';
import { compose, describePlanned, FAULTS, faultsNamed } from './composition.js';

const parties = {
  members: ['service-1', 'service-2', 'service-3', 'consumer-1', 'consumer-2'],
  servers: ['cassandra-1', 'cassandra-2', 'cassandra-3', 'kafka-1', 'kafka-2', 'kafka-3', 's3-1'],
};
const all = faultsNamed('all');
const planOf = (seed: number, seconds = 600) => compose({ seed, seconds, faults: all, parties });

t.test('one seed gives one plan, and another seed another', async (t) => {
  t.strictSame(planOf(1), planOf(1));
  t.strictNotSame(planOf(1), planOf(2));
});

t.test('faults end before the run does, and no target has two at once', async (t) => {
  for (let seed = 0; seed < 200; seed += 1) {
    const plan = planOf(seed, 5 + seed);
    for (const [index, one] of plan.entries()) {
      const end = one.at + one.seconds;
      if (one.at < 0 || one.seconds < 0.9 || end > 5 + seed + 0.2) t.fail(describePlanned(one));
      const beside = plan.slice(0, index).filter((other) => other.at + other.seconds > one.at);
      if (beside.length >= 3) t.fail(`${beside.length + 1} at once: ${describePlanned(one)}`);
      if (beside.some(({ targets }) => targets.some((target) => one.targets.includes(target))))
        t.fail(`two at once: ${describePlanned(one)}`);
    }
  }
  t.pass('200 plans');
});

t.test('an hour has every fault, every target, overlaps, and durations up to minutes', async (t) => {
  const plan = planOf(5, 3600);
  t.strictSame(new Set(plan.map(({ fault }) => fault)), new Set(all));
  t.strictSame(
    new Set(plan.flatMap(({ targets }) => targets)),
    new Set([...parties.members, ...parties.servers, 'bucket']),
  );
  t.strictSame(
    new Set(plan.flatMap(({ way }) => way ?? [])),
    new Set(['away', 'slow', 'late', 'to', 'from', 'both']),
  );
  t.ok(plan.some((one, index) => (plan[index - 1]?.at ?? 0) + (plan[index - 1]?.seconds ?? 0) > one.at));
  t.ok(Math.max(...plan.map(({ seconds }) => seconds)) > 120);
  const late = plan.flatMap(({ milliseconds }) => milliseconds ?? []);
  t.ok(Math.min(...late) >= 5 && Math.min(...late) < 50 && Math.max(...late) > 1000);
  const off = plan.flatMap(({ ahead }) => ahead ?? []);
  t.ok(Math.max(...off) > 600 && Math.min(...off) < -600 && off.some((ahead) => Math.abs(ahead) < 20));
});

t.test(
  'links are cut between processes and servers, and between servers that talk to each other',
  async (t) => {
    const kindOf = (name: string) => name.split('-')[0]!;
    const between = (servers: readonly string[]) =>
      [
        ...new Set(
          compose({ seed: 7, seconds: 3600, faults: ['links'], parties: { ...parties, servers } }).map(
            ({ targets }) => targets.map(kindOf).join(' '),
          ),
        ),
      ].toSorted();
    const ofProcesses = ['consumer cassandra', 'consumer kafka', 'service cassandra', 'service kafka'];
    t.strictSame(between(parties.servers), [
      'cassandra cassandra',
      ...ofProcesses.slice(0, 2),
      'kafka kafka',
      ...ofProcesses.slice(2),
    ]);
    t.strictSame(between(['cassandra-1', 'kafka-1', 's3-1']), ofProcesses);
  },
);

t.test("a process's clock is off by up to an hour, and a server's by what sweeps bear", async (t) => {
  const plan = compose({ seed: 3, seconds: 3600, faults: ['clock'], parties });
  const ofServers = plan.filter(({ targets }) => parties.servers.includes(targets[0]!));
  t.strictSame(
    new Set(ofServers.map(({ targets }) => targets[0])),
    new Set(parties.servers.filter((name) => name !== 's3-1')),
  );
  const most = (of: typeof plan, sign: 1 | -1) => Math.max(...of.map(({ ahead }) => sign * ahead!));
  for (const sign of [1, -1] as const) {
    t.ok(most(ofServers, sign) > 10 && most(ofServers, sign) <= 20);
    t.ok(most(plan, sign) > 600);
  }
});

t.test('while a node is replaced, no other one has a fault', async (t) => {
  let replaced = 0;
  for (let seed = 0; seed < 200; seed += 1) {
    const plan = planOf(seed);
    for (const one of plan.filter(({ fault }) => fault === 'replace')) {
      replaced += 1;
      const beside = plan.filter(
        (other) => other !== one && other.at < one.at + one.seconds && one.at < other.at + other.seconds,
      );
      if (beside.some(({ targets }) => targets.some((target) => target.startsWith('cassandra'))))
        t.fail(describePlanned(one));
    }
  }
  t.ok(replaced > 50, 'nodes were replaced');
});

t.test('a plan has the faults that were asked for, and unknown ones are refused with the list', async (t) => {
  t.strictSame(faultsNamed('kill,clock'), ['kill', 'clock']);
  const plan = compose({ seed: 1, seconds: 600, faults: ['kill', 'clock'], parties });
  t.strictSame(new Set(plan.map(({ fault }) => fault)), new Set(['kill', 'clock']));
  for (const name of ['', 'kill,', 'Kill', 'kill,fire'])
    t.throws(() => faultsNamed(name), new RegExp(Object.keys(FAULTS).join(', ')), name);
});
