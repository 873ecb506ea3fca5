/** A run: a cluster on a set of servers, partners at work, faults, and the checks afterwards. */
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

/**
 * The time to wait for outboxes and consumers, in milliseconds. The service leaves the remains of a crash
 * alone for a much shorter time.
 */
const CATCH_UP_MS = 300_000;

/**
 * The most consecutive failed starts of a process while the servers are available. A busy machine delays
 * servers too.
 */
const STARTS_GIVEN_UP = 4;

/** The units left in a month that clients contend for. */
const UNITS_LEFT = 10;
/** The time in which one month is used up, in milliseconds. */
const MONTH_MS = 120_000;
const FEWEST_MONTHS = 2;
const MOST_MONTHS = 10;
/**
 * The approximate limit of the proofs of a run, and of its reviews. Every process is asked for each of them at the
 * end, which takes 0.1 to 0.2 s for a proof.
 */
const MOST_PROOFS = 3600;

export interface Run {
  readonly cluster: Cluster;
  readonly servers: Servers;
  readonly calls: Calls;
  readonly ledger: Ledger;
  readonly workload: Workload;
  readonly partners: readonly KnownPartner[];
  readonly contention: Contention;
  /** The months with few units left, each of its own partner, that were not played yet. */
  readonly months: Month[];
  /** Counts of the ledger that must not be zero. Otherwise the run has shown nothing. */
  readonly demanded: Set<string>;
  readonly say: (line: string) => void;
  /** Whether a process may fail to start any number of times. */
  outage: boolean;
}

export interface RunOptions extends Pick<Run, 'servers' | 'ledger' | 'say'> {
  readonly seed: number;
  /** The number of concurrent partners. Each has three lanes. */
  readonly width: number;
  /** The longest duration of the run, in milliseconds. */
  readonly lasts: number;
  /** Whether to keep the logs and data directories of the processes. */
  readonly keep: boolean;
  /** Whether the clocks of processes can be set. */
  readonly clocks?: boolean;
  /** The network in which each process has its own namespace. */
  readonly network?: Network | undefined;
  /** The settings that replace those of the servers. */
  readonly over?: Readonly<Record<string, string>>;
}

/** Returns the settings of a cluster on these servers. Its keyspace, topics and objects have unique names. */
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

/** Starts a cluster, and ends it when `work` has returned or thrown. */
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
      const workload = new Workload(calls, ledger, seeded(seed + 1), (lasts * width) / MOST_PROOFS);
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

/**
 * Starts the work of the partners, and the contention for the things of one of them. Resolves after `stop`.
 */
function work({ workload, contention, partners, months }: Run, when: Omit<Months, 'months'>): Promise<void> {
  return workload.run(partners, (isOver) => contention.run(partners[0]!, { months, ...when }, isOver));
}

/**
 * Lets partners work while `disturb` runs. Resolves when all their calls are finished.
 * @param kept how many of the months later steps need
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
 * The time after the last fault until everything is served and caught up, in milliseconds. The remains of a
 * dead process are found after 20 s, a time bucket of 15 s, and the 10 s between two sweeps.
 */
const RECOVERED_MS = 60_000;

/**
 * Lets partners work while `disturb` runs. A minute after its end everything must have recovered: every
 * process is ready and answers, and no event waits.
 * @param lasts milliseconds that `disturb` takes
 */
export async function recovered(run: Run, lasts: number, disturb: () => Promise<void>): Promise<number> {
  const { workload, partners, cluster, calls, ledger, say } = run;
  const everyMs = lasts / run.months.length;
  // Each month is played in the first half of its share, so that it meets the faults.
  const working = work(run, { kept: 0, firstMs: everyMs / 4, everyMs });
  try {
    await disturb();
  } catch (error) {
    // Calls that outlive the network of the processes would be answered by other programs.
    workload.stop();
    await working;
    throw error;
  }
  const healed = performance.now();
  say('the last fault is over');
  workload.stop();
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
    const behind = await caughtUp(ledger, observers, CATCH_UP_MS, say, {
      behindNow: () => (behindMs = since()),
    });
    if (behind !== undefined) ledger.violation(`not caught up: ${behind}`);
  } finally {
    await tables.close();
    await topics.close();
  }
  const caughtUpMs = since();
  say(
    `all is caught up: something was seen to wait until ${behindMs} ms, and nothing by a look that ended after ${caughtUpMs} ms`,
  );
  // The check reads all results of the run. What it finds done may have been done long before.
  const tookMs = Math.max(served, behindMs);
  if (tookMs > RECOVERED_MS)
    ledger.violation(
      `recovery took ${tookMs} ms, ${served} of them until everything was served; ${RECOVERED_MS} are right`,
    );
  return caughtUpMs;
}

/**
 * Waits for outboxes and consumers, reads the whole state, and adds each fault to the ledger's violations.
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
