import t from 'tap';
import {
  createEventRelay,
  type EventRelay,
  type EventRelayDeps,
} from '../../../src/service/background/relay.js';
import { sized } from '../../fixtures/sampling.js';
import { testSigning } from '../../fixtures/signing.js';
import { type Request, ResultRow } from './database.js';
import { type HistoryResult, migrated, runHistory, type Stage } from './history.js';
import { Machine } from './machine.js';
import type { Parts, Surroundings } from './member.js';
import { FAULTS, type Fault } from './weather.js';

/** All kinds of faults except a partition that acknowledges nothing. */
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

/** Plays histories from seed 1 on, until one of them has a violation of this kind. */
function firstWith(
  words: RegExp,
  {
    faults,
    takesAll = false,
    isCrowded = false,
    aheadMs = 0,
    spoil,
    most,
  }: {
    readonly faults: readonly Fault[];
    readonly takesAll?: boolean;
    readonly isCrowded?: boolean;
    readonly aheadMs?: number;
    readonly spoil: (around: Surroundings) => Surroundings;
    readonly most: number;
  },
): Promise<HistoryResult | undefined> {
  return onStage(async (stage) => {
    for (let seed = 1; seed <= most; seed += 1) {
      const result = await runHistory(stage, seed, { faults, takesAll, isCrowded, aheadMs, spoil });
      if (result.violations.some((violation) => words.test(violation))) return result;
    }
    return undefined;
  });
}

/** Returns surroundings with a database that executes some statements differently. */
function spoilt(change: (request: Request) => readonly ResultRow[] | undefined) {
  return (around: Surroundings): Surroundings => {
    const { database } = around;
    const execute = database.execute.bind(database);
    database.execute = (request, moment) => change(request) ?? execute(request, moment);
    return around;
  };
}

/**
 * Returns surroundings with a database that repeats the first result of some reads. It repeats every result,
 * or every third.
 */
function stale(reads: RegExp, { every = 3 } = {}) {
  let count = 0;
  return (around: Surroundings): Surroundings => {
    const { database } = around;
    const execute = database.execute.bind(database);
    const first = new Map<string, readonly ResultRow[]>();
    database.execute = (request, moment) => {
      const rows = execute(request, moment);
      if (!reads.test(request.query)) return rows;
      const name = JSON.stringify([request.query, request.params]);
      const former = first.get(name);
      // An empty result does not count as the first.
      if (former === undefined && rows.length > 0) first.set(name, rows);
      count += 1;
      return former !== undefined && count % every === 0 ? former : rows;
    };
    return around;
  };
}

/** Returns surroundings with defective parts. */
function replaced(parts: Partial<Parts>) {
  return (around: Surroundings): Surroundings => ({ ...around, parts: { ...around.parts, ...parts } });
}

t.test('the same seed gives the same history, line by line', async (t) => {
  const once = () => onStage((stage) => runHistory(stage, 11));
  const [first, second] = [await once(), await once()];
  t.ok(first.lines.length > 50);
  t.strictSame(second, first);
});

t.test('histories of mixed faults have no violation, and calls that succeed', async (t) => {
  const results = await onStage(async (stage) => {
    const all: HistoryResult[] = [];
    for (let seed = 1; seed <= 4; seed += 1) all.push(await runHistory(stage, seed, { faults: MIXED }));
    return all;
  });
  for (const { seed, violations, lines } of results)
    t.strictSame(violations, [], `seed ${seed}`, violations.length > 0 ? { history: lines } : {});
  // A history in which nothing succeeds would have no violation either.
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
  const found = await firstWith(/is not listed/, { faults: ['reorder'], spoil: forgets, most: 3 });
  t.ok(found);
  t.ok(
    found?.lines.some((line) => line.includes('VIOLATION')),
    'the history has the violation',
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
    around.broker.append = (...message) => ((count += 1) % 3 === 0 ? 0 : append(...message));
    return around;
  };
  t.ok(
    await firstWith(/has no event|was never announced|events report/, {
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
    await firstWith(/is not listed|not in the audit log|has no event/, {
      faults: ['late'],
      spoil: opens,
      most: 60,
    }),
  );
});

for (const { what, reads, words } of [
  {
    what: 'a proof',
    reads: /FROM record WHERE proof_id = \? AND part = ''$/,
    words: /^the proof .*not linearizable/,
  },
  {
    what: 'a review',
    reads: /FROM record WHERE proof_id = \? AND part IN/,
    words: /^the review .*not linearizable/,
  },
  { what: 'a key', reads: /FROM api_key WHERE/, words: /^the key .*not linearizable/ },
  { what: 'a month', reads: /FROM charge WHERE .* item IN/, words: /^the quota .*not linearizable/ },
] as const)
  t.test(`old states of ${what} are found in the order of the calls`, async (t) => {
    const found = await firstWith(words, { faults: ['reorder'], spoil: stale(reads), most: 20 });
    t.ok(found);
    t.comment(`${what}: history ${found?.seed}`);
  });

t.test('an Idempotency-Key that is forgotten is found in the order of the calls', async (t) => {
  const forgets = spoilt(({ query }) =>
    /^INSERT INTO issuing_replay /.test(query) ? [new ResultRow([['[applied]', true]])] : undefined,
  );
  const found = await firstWith(/^the issuing .*not linearizable/, {
    faults: ['reorder'],
    spoil: forgets,
    most: 20,
  });
  t.ok(found);
  t.comment(`history ${found?.seed}`);
});

t.test('a place that is given to two reviews is found in the order of the calls', async (t) => {
  let count = 0;
  const wrapStores: Parts['wrapStores'] = (stores) => ({
    ...stores,
    createReview: (review, ...rest) => {
      const submissionId = `submission-${(count += 1)}`;
      return stores.createReview({ ...review, bindings: { ...review.bindings, submissionId } }, ...rest);
    },
  });
  const found = await firstWith(/^the place .*not linearizable/, {
    faults: ['reorder'],
    spoil: replaced({ wrapStores }),
    most: 20,
  });
  t.ok(found);
  t.comment(`history ${found?.seed}`);
});

t.test('a store that looks at other keys before it revokes is found by partners without a key', async (t) => {
  const wrapStores: Parts['wrapStores'] = (stores) => ({
    ...stores,
    async revokeKey({ callingKeyId, ...revocation }) {
      const keys = await stores.listKeys(revocation.partnerId);
      if (callingKeyId !== undefined && keys.filter(({ revokedAt }) => revokedAt === undefined).length < 2)
        return { outcome: 'last_active_key' };
      return stores.revokeKey(revocation);
    },
  });
  const found = await firstWith(/has revoked its last active key/, {
    faults: ['reorder'],
    spoil: replaced({ wrapStores }),
    most: 40,
  });
  t.ok(found);
  t.comment(`history ${found?.seed}`);
});

t.test('a revocation that forgets successors is found by a successor that lives', async (t) => {
  const wrapStores: Parts['wrapStores'] = (stores) => ({
    ...stores,
    revokeKey: ({ withSuccessors: _, ...revocation }) => stores.revokeKey(revocation),
  });
  const found = await firstWith(/is valid after the revocation of both/, {
    faults: ['reorder'],
    spoil: replaced({ wrapStores }),
    most: 60,
  });
  t.ok(found);
  t.comment(`history ${found?.seed}`);
});

t.test('a bucket that loses entries of the journal is found', async (t) => {
  const loses = (around: Surroundings): Surroundings => {
    const { notes } = around.bucket;
    const set = notes.set.bind(notes);
    notes.set = (name, text) => (name.startsWith('erasures/') ? notes : set(name, text));
    return around;
  };
  t.ok(await firstWith(/before the journal had it/, { faults: ['reorder'], spoil: loses, most: 5 }));
  t.ok(await firstWith(/is over and not in the journal/, { faults: ['reorder'], spoil: loses, most: 5 }));
});

t.test(
  'a registry that forgets which reservations were made is found by objects in the bucket',
  async (t) => {
    const forgets = spoilt(({ query, params }) =>
      /^INSERT INTO pointer /.test(query) && params[3] === 'proof_issued' ? [] : undefined,
    );
    t.ok(
      await firstWith(/is unknown and has no pointer/, {
        faults: ['kill'],
        spoil: forgets,
        most: 60,
      }),
    );
  },
);

t.test('a store that was put back closes the gate', async (t) => {
  const lags = stale(/FROM installation /, { every: 1 });
  t.ok(await firstWith(/a restore that was never begun/, { faults: ['reorder'], spoil: lags, most: 3 }));
});

/**
 * Returns a relay of an earlier design. It marks a batch when all of it is confirmed, and otherwise sends all
 * of it again.
 */
function batchRelay({ stores, bus }: EventRelayDeps): EventRelay {
  const publish = async (): Promise<void> => {
    const batch = await stores.waitingEvents(500, () => false);
    if (batch.length === 0) return;
    const confirmed = bus
      .publish(
        batch.map(({ event }) => event),
        () => undefined,
      )
      .then(() => true);
    const late = new Promise<boolean>((resolve) => setTimeout(() => resolve(false), 10_000));
    if (await Promise.race([confirmed, late])) await stores.markPublished(batch);
  };
  const begin = (): void =>
    void publish()
      .catch(() => undefined)
      .then(() => setTimeout(begin, 1000));
  return { start: begin, stop: async () => undefined, oldestAt: () => undefined };
}

t.test('a relay that waits for all of a batch is found when a partition is stuck', async (t) => {
  const found = await firstWith(/was sent \d+ times|waits for another partition/, {
    faults: ['stuck'],
    spoil: replaced({ createRelay: batchRelay }),
    most: 20,
  });
  t.ok(found);
  t.comment(`history ${found?.seed}`);
});

/**
 * Returns relays that wait for a minute while processes are killed, so killed processes leave events
 * unpublished.
 */
function patient(around: Surroundings): Surroundings {
  const { weather, world } = around;
  const createRelay: Parts['createRelay'] = (deps) =>
    createEventRelay({
      ...deps,
      bus: {
        async publish(...sending) {
          if (weather.has('kill')) await world.sleep(60_000);
          await deps.bus.publish(...sending);
        },
      },
    });
  return replaced({ createRelay })(around);
}

t.test('partitions that stay unread are found by unconfirmed erasures', async (t) => {
  const found = await firstWith(/was acknowledged and was never confirmed/, {
    faults: ['bus'],
    spoil: (around) => {
      around.broker.answersOffsets = false;
      return around;
    },
    most: 20,
  });
  t.ok(found);
  t.comment(`history ${found?.seed}`);
});

const HOUR_MS = 3_600_000;

t.test('a watch that takes a wrong clock for right is found by what killed processes left', async (t) => {
  const found = await firstWith(/has no event|was never announced|events report/, {
    faults: ['kill'],
    aheadMs: HOUR_MS,
    spoil: (around) => replaced({ watchedClock: { now: () => around.world.now } })(patient(around)),
    most: 40,
  });
  t.ok(found);
  t.comment(`history ${found?.seed}`);
});

t.test('a process whose clock is wrong when it starts harms nothing, the first one of all too', async (t) => {
  const results = await onStage(async (stage) => {
    const all: HistoryResult[] = [];
    for (let seed = 1; seed <= sized(10, 3); seed += 1)
      all.push(await runHistory(stage, seed, { faults: ['kill'], aheadMs: HOUR_MS, spoil: patient }));
    return all;
  });
  for (const { seed, violations } of results) t.strictSame(violations, [], `seed ${seed}`);
});

t.test('an erasure that removes cases one by one is found by a partner that makes them', async (t) => {
  const held = (around: Surroundings): Surroundings => {
    const { database, world } = around;
    const wrapStores: Parts['wrapStores'] = (stores) => ({
      ...stores,
      eraseProof: async (proofId, ...rest) => {
        for (;;) {
          const [found] = database.execute(
            {
              query:
                "SELECT part FROM record WHERE proof_id = ? AND part >= 'case/' AND part < 'case0' LIMIT 1",
              params: [proofId],
            },
            { nodeMs: world.now },
          );
          if (found === undefined) return stores.eraseProof(proofId, ...rest);
          // The time of two decisions of the servers.
          await world.sleep(8);
          database.execute(
            { query: 'DELETE FROM record WHERE proof_id = ? AND part = ?', params: [proofId, found['part']] },
            { nodeMs: world.now },
          );
        }
      },
    });
    return replaced({ wrapStores })(around);
  };
  const found = await firstWith(/was held up by cases/, {
    faults: ['reorder'],
    isCrowded: true,
    spoil: held,
    most: 2,
  });
  t.ok(found);
  t.comment(`history ${found?.seed}`);
});

t.test('a partner that makes cases holds up no erasure', async (t) => {
  const results = await onStage(async (stage) => {
    const all: HistoryResult[] = [];
    for (let seed = 1; seed <= 3; seed += 1) all.push(await runHistory(stage, seed, { isCrowded: true }));
    return all;
  });
  for (const { seed, violations } of results) t.strictSame(violations, [], `seed ${seed}`);
});
