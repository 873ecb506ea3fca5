/** A run's faults follow from its seed, and are such that it can be healed. */
import t from 'tap';
import { compose, describePlanned, FAULTS, faultsNamed } from './composition.js';

const parties = {
  members: ['service-1', 'service-2', 'service-3', 'consumer-1', 'consumer-2'],
  servers: ['cassandra-1', 'cassandra-2', 'cassandra-3', 'kafka-1', 's3-1'],
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
  const off = plan.flatMap(({ ahead }) => ahead ?? []);
  t.ok(Math.max(...off) > 600 && Math.min(...off) < -600 && off.some((ahead) => Math.abs(ahead) < 20));
});

t.test('a plan has the faults that were asked for, and unknown ones are refused with the list', async (t) => {
  t.strictSame(faultsNamed('kill,clock'), ['kill', 'clock']);
  const plan = compose({ seed: 1, seconds: 600, faults: ['kill', 'clock'], parties });
  t.strictSame(new Set(plan.map(({ fault }) => fault)), new Set(['kill', 'clock']));
  for (const name of ['', 'kill,', 'Kill', 'kill,fire'])
    t.throws(() => faultsNamed(name), new RegExp(Object.keys(FAULTS).join(', ')), name);
});
