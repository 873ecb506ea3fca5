/**
 * A run: a cluster of its own on a set of servers, partners at work, a fault or several, and the checks
 * afterwards.
 */
import { randomUUID } from 'node:crypto';
import { defined } from '../../../src/core/domain/defined.js';
import { seeded } from '../../fixtures/service.js';
import { Calls } from './calls.js';
import { Contention, type Months } from './contention.js';
import { judge, judgeCounts, PLAYED } from './judge.js';
import type { KnownPartner, Ledger } from './ledger.js';
import { Cluster } from './members.js';
import { type Month, nearEndOfMonth } from './month.js';
import type { Network } from './network.js';
import { caughtUp, observe, verifyAgain } from './observe.js';
import { Pulse } from './pulse.js';
import type { Servers } from './servers.js';
import { Tables } from './tables.js';
import { Topics } from './topics.js';
import { Workload } from './workload.js';

/** Much longer than what a crash leaves is left alone for. */
const CATCH_UP_MS = 300_000;

/**
 * Starts of one process that may be given up one after the other while the servers are there: a busy machine
 * keeps them waiting too.
 */
const STARTS_GIVEN_UP = 4;

/** Units that are left of a month that clients contend for. */
const UNITS_LEFT = 10;
/** Months that come near their end in a run: one in this time. */
const MONTH_MS = 120_000;
const FEWEST_MONTHS = 2;
const MOST_MONTHS = 10;

export interface Run {
  readonly cluster: Cluster;
  readonly servers: Servers;
  readonly calls: Calls;
  readonly ledger: Ledger;
  readonly workload: Workload;
  readonly partners: readonly KnownPartner[];
  readonly contention: Contention;
  /** Months in which few units are left, of a partner each, and which have not been played yet. */
  readonly months: Month[];
  /** Counts of the ledger of which the run must have some: else it has shown nothing. */
  readonly demanded: Set<string>;
  readonly say: (line: string) => void;
  /** While it is set, a process may give up starting as often as it likes. */
  outage: boolean;
}

export interface RunOptions extends Pick<Run, 'servers' | 'ledger' | 'say'> {
  readonly seed: number;
  /** Partners at work at the same time, with three lanes each. */
  readonly width: number;
  /** Milliseconds that the run may last. */
  readonly lasts: number;
  /** Tells whether logs and data directories of the processes stay. */
  readonly keep: boolean;
  /** Tells whether clocks of processes can be set. */
  readonly clocks?: boolean;
  /** In which each process has a namespace of its own. */
  readonly network?: Network | undefined;
  /** Settings in place of those that name the servers. */
  readonly over?: Readonly<Record<string, string>>;
}

/** Returns the settings of a cluster on these servers. Its keyspace, topics and objects have names of its own. */
export function settingsOnServers({ settings }: Servers): Readonly<Record<string, string>> {
  const name = randomUUID().slice(0, 8);
  return {
    ...settings,
    TAKEMARK_CASSANDRA_KEYSPACE: `takemark_${name}`,
    TAKEMARK_S3_PREFIX: `run-${name}/`,
    TAKEMARK_BUS: 'kafka',
    TAKEMARK_KAFKA_PREFIX: `run-${name}`,
    TAKEMARK_KAFKA_PARTITIONS: '4',
  };
}

/** Starts a cluster, and ends it whatever `work` comes to. */
export async function withRun<Result>(
  { servers, seed, ledger, say, width, lasts, keep, clocks = false, network, over = {} }: RunOptions,
  work: (run: Run) => Promise<Result>,
): Promise<Result> {
  let run: Run | undefined;
  const cluster = await Cluster.start({
    settings: { ...settingsOnServers(servers), ...over },
    clocks,
    ...defined({ network }),
    services: 3,
    consumers: 2,
    onDeath: (member, { how, served, gaveUp, inARow }) => {
      if (served || !gaveUp) ledger.violation(`${member} ended by itself: ${how}`);
      else if (run?.outage === true) ledger.count('starts given up in an outage');
      else if (inARow > STARTS_GIVEN_UP)
        ledger.violation(`${member} was started ${inARow} times and gave up each time: ${how}`);
      else {
        ledger.count('starts given up');
        say(`${member} gave up starting: ${how}`);
      }
    },
  });
  try {
    await cluster.ready();
    say('all processes are ready');
    const pulse = new Pulse(cluster.services, (member, since) => cluster.wasDisturbed(member, since));
    try {
      const calls = new Calls(cluster, ledger, pulse);
      const workload = new Workload(calls, ledger, seeded(seed + 1));
      const partners: KnownPartner[] = [];
      for (let index = 0; index < width; index += 1) partners.push(await workload.partner());
      const contention = new Contention(calls, ledger, workload, seeded(seed + 2));
      const months = await nearEndOfMonth(
        { cluster, workload, ledger },
        {
          months: Math.min(MOST_MONTHS, Math.max(FEWEST_MONTHS, Math.ceil(lasts / MONTH_MS))),
          unitsLeft: UNITS_LEFT,
        },
      );
      const demanded = new Set(PLAYED);
      run = {
        cluster,
        servers,
        calls,
        ledger,
        workload,
        partners,
        contention,
        months,
        demanded,
        say,
        outage: false,
      };
      return await work(run);
    } finally {
      pulse.stop();
    }
  } finally {
    await cluster.stop({ keep });
  }
}

/** Has the partners work, and contend for what one of them has. Resolves after `stop`. */
function work({ workload, contention, partners, months }: Run, when: Omit<Months, 'months'>): Promise<void> {
  return workload.run(partners, (isOver) => contention.run(partners[0]!, { months, ...when }, isOver));
}

/**
 * Partners work while `disturb` runs; all that they began is finished when this resolves.
 * @param kept how many of the months are left for what follows
 */
export async function atWork(run: Run, disturb: () => Promise<void>, kept = 0): Promise<void> {
  const { workload, cluster, say } = run;
  const working = work(run, { kept, firstMs: 0, everyMs: MONTH_MS });
  try {
    await disturb();
  } finally {
    say('stopping the work');
    workload.stop();
    await working;
  }
  await cluster.ready();
}

/**
 * Within this time after the last fault all is served and caught up. Milliseconds; finding what a dead process
 * left takes 20 s, a time bucket of 15 s and the 10 s between two sweeps.
 */
const RECOVERED_MS = 60_000;

/**
 * Partners work while `disturb` runs, and stop when it is over. From then on everything is there again within a
 * minute: every process is ready and answers, and nothing waits.
 * @param lasts milliseconds that `disturb` takes
 */
export async function recovered(run: Run, lasts: number, disturb: () => Promise<void>): Promise<number> {
  const { workload, partners, cluster, calls, ledger, say } = run;
  const everyMs = lasts / run.months.length;
  // Each in the first half of its share, so that it meets the faults.
  const working = work(run, { kept: 0, firstMs: everyMs / 4, everyMs });
  let healed = 0;
  try {
    await disturb();
  } finally {
    healed = performance.now();
    say('the last fault is over');
    workload.stop();
  }
  const since = (): number => Math.round(performance.now() - healed);
  await cluster.ready();
  for (const { name } of calls.services) calls.putBack(name);
  run.outage = false;
  for (const service of calls.services)
    await calls.settle({ method: 'GET', path: '/v1/proofs?limit=1', apiKey: partners[0]!.apiKey }, [200], {
      service,
    });
  const served = since();
  say(`everything is served after ${served} ms`);
  await working;
  say(`the work is done after ${since()} ms`);
  let behindMs = 0;
  const tables = await Tables.open(cluster.settings);
  const topics = await Topics.open(cluster.settings);
  try {
    const observers = { calls, workload, tables, topics };
    const behind = await caughtUp(ledger, observers, CATCH_UP_MS, say, () => (behindMs = since()));
    if (behind !== undefined) ledger.violation(`not caught up: ${behind}`);
  } finally {
    await tables.close();
    await topics.close();
  }
  const caughtUpMs = since();
  say(
    `all is caught up: something was seen to wait until ${behindMs} ms, and nothing by a look that ended after ${caughtUpMs} ms`,
  );
  // A look goes through all that the run has done, and what it finds done may have been so long before.
  const tookMs = Math.max(served, behindMs);
  if (tookMs > RECOVERED_MS)
    ledger.violation(
      `recovery took ${tookMs} ms, ${served} of them until everything was served; ${RECOVERED_MS} are right`,
    );
  return caughtUpMs;
}

/**
 * Waits for outboxes and consumers, looks at everything and adds what is wrong to the ledger's violations.
 */
export async function check({ cluster, calls, ledger, workload, demanded, say }: Run): Promise<void> {
  const tables = await Tables.open(cluster.settings);
  const topics = await Topics.open(cluster.settings);
  try {
    const observers = { calls, workload, tables, topics };
    const verdicts = await verifyAgain(ledger, observers);
    say('waiting for outboxes and consumers');
    const behind = await caughtUp(ledger, observers, CATCH_UP_MS, say);
    if (behind !== undefined) ledger.violation(`not caught up: ${behind}`);
    say('looking at everything');
    const observed = await observe(ledger, observers, verdicts);
    say('judging');
    for (const violation of [...judge(ledger, observed), ...judgeCounts(ledger.counts, demanded)])
      ledger.violation(violation);
    ledger.count('events in the topics', observed.events.length);
    ledger.count('events in the topics, distinct', new Set(observed.events.map(({ id }) => id)).size);
  } finally {
    await tables.close();
    await topics.close();
  }
}
