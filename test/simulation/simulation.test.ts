import t from 'tap';
import { testSigning } from '../fixtures/signing.js';
import { type Request, ResultRow } from './database.js';
import { type HistoryResult, migrated, runHistory, type Stage } from './history.js';
import { Machine } from './machine.js';
import type { Surroundings } from './member.js';
import { FAULTS, type Fault } from './weather.js';

/** All but a partition that acknowledges nothing. */
const MIXED = FAULTS.filter((fault) => fault !== 'stuck');

async function onStage<Value>(play: (stage: Stage) => Promise<Value>): Promise<Value> {
  const signing = testSigning({ notBefore: Date.UTC(2026, 0, 1), notAfter: Date.UTC(2036, 0, 1) });
  const database = await migrated();
  const machine = Machine.install();
  try {
    return await play({ machine, database, signing });
  } finally {
    machine.uninstall();
  }
}

/** Histories from seed 1 on, until one of them has a violation of this kind. */
function firstWith(
  words: RegExp,
  {
    faults,
    spoil,
    most,
  }: {
    readonly faults: readonly Fault[];
    readonly spoil: (around: Surroundings) => Surroundings;
    readonly most: number;
  },
): Promise<HistoryResult | undefined> {
  return onStage(async (stage) => {
    for (let seed = 1; seed <= most; seed += 1) {
      const result = await runHistory(stage, seed, { faults, spoil });
      if (result.violations.some((violation) => words.test(violation))) return result;
    }
    return undefined;
  });
}

/** A database that carries some statements out in another way. */
function spoilt(change: (request: Request) => readonly ResultRow[] | undefined) {
  return (around: Surroundings): Surroundings => {
    const { database } = around;
    const execute = database.execute.bind(database);
    database.execute = (request, moment) => change(request) ?? execute(request, moment);
    return around;
  };
}

t.test('the same seed gives the same history, line by line', async (t) => {
  const once = () => onStage((stage) => runHistory(stage, 11));
  const [first, second] = [await once(), await once()];
  t.ok(first.lines.length > 50);
  t.strictSame(second, first);
});

t.test('twenty histories of mixed faults have no violation', async (t) => {
  const results = await onStage(async (stage) => {
    const all: HistoryResult[] = [];
    for (let seed = 1; seed <= 20; seed += 1) all.push(await runHistory(stage, seed, { faults: MIXED }));
    return all;
  });
  for (const { seed, violations, lines } of results)
    t.strictSame(violations, [], `seed ${seed}`, violations.length > 0 ? { history: lines } : {});
  // Histories in which nothing succeeds would have no violation either.
  for (const { seed, answered } of results) t.ok(answered > 10, `${answered} calls of seed ${seed} succeed`);
});

t.test('another seed gives another history', async (t) => {
  const [first, second] = await onStage(async (stage) => [
    await runHistory(stage, 11),
    await runHistory(stage, 12),
  ]);
  t.strictNotSame(first!.lines.slice(1), second!.lines.slice(1));
});

t.test('a database that forgets rows is found', async (t) => {
  let count = 0;
  const forgets = spoilt(({ query }) => {
    if (!/^INSERT INTO \w+_by_\w+ /.test(query)) return undefined;
    count += 1;
    return count % 3 === 0 ? [] : undefined;
  });
  const found = await firstWith(/is in no list/, { faults: ['reorder'], spoil: forgets, most: 3 });
  t.ok(found);
  t.ok(
    found?.lines.some((line) => line.includes('VIOLATION')),
    'and told in the history',
  );
});

t.test('a bucket that loses objects is found', async (t) => {
  const loses = (around: Surroundings): Surroundings => {
    const { set } = around.bucket.objects;
    let count = 0;
    around.bucket.objects.set = (name, kept) =>
      (count += 1) % 3 === 0 ? around.bucket.objects : set.call(around.bucket.objects, name, kept);
    return around;
  };
  t.ok(await firstWith(/has no asset/, { faults: ['reorder'], spoil: loses, most: 3 }));
});

t.test('a bus that loses acknowledged messages is found', async (t) => {
  const loses = (around: Surroundings): Surroundings => {
    const append = around.broker.append.bind(around.broker);
    let count = 0;
    around.broker.append = (...message) => ((count += 1) % 3 === 0 ? undefined : append(...message));
    return around;
  };
  t.ok(
    await firstWith(/has no event|was never announced|events tell of/, {
      faults: ['reorder'],
      spoil: loses,
      most: 3,
    }),
  );
});

t.test('a fence that does not hold is found by decisions that come late', async (t) => {
  const opens = spoilt(({ query }) =>
    /^UPDATE record SET gen|^INSERT INTO record .*'void'/.test(query)
      ? [new ResultRow([['[applied]', true]])]
      : undefined,
  );
  t.ok(
    await firstWith(/is in no list|not in the audit log|has no event/, {
      faults: ['late'],
      spoil: opens,
      most: 60,
    }),
  );
});
