/**
 * Faults that a cluster meets while it works: processes killed at random moments, servers stopped and started
 * again.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { type Calls, describe } from './calls.js';
import { isBroker } from './composition.js';
import type { Refusal } from './ledger.js';
import type { Service } from './members.js';
import { waitingOfAll } from './observe.js';
import type { Run } from './run.js';
import type { Servers } from './servers.js';

/** Between kills: shorter and longer than a process needs to start. */
const SHORTEST_PAUSE_MS = 300;
const LONGEST_PAUSE_MS = 2700;
/** After kills, until processes that started again answer as before. */
const SETTLED_MS = 3000;
const METRIC_MS = 60_000;
const FILL_MS = 120_000;
const DRAIN_MS = 240_000;
/**
 * How often a fault that nobody may notice is done again after somebody did: on a busy machine the other
 * nodes hang for seconds too.
 */
const ROUNDS = 3;
/** Refusals of a round that a line tells of, at most. */
const REFUSALS_TOLD = 5;

/**
 * How servers go and come back: stopped and started, or hung and running on, which no closed connection
 * tells.
 */
export type Away = 'stopped' | 'frozen';

const leave = (servers: Servers, away: Away, names: readonly string[]): Promise<void> =>
  away === 'frozen' ? servers.freeze(...names) : servers.down(...names);
const comeBack = (servers: Servers, away: Away, names: readonly string[]): Promise<void> =>
  away === 'frozen' ? servers.thaw(...names) : servers.up(...names);

/** Kills processes, chosen and timed by `random`. */
export async function killProcesses(
  { cluster, ledger }: Pick<Run, 'cluster' | 'ledger'>,
  count: number,
  random: () => number,
): Promise<void> {
  for (let killed = 0; killed < count; ) {
    await delay(SHORTEST_PAUSE_MS + random() * (LONGEST_PAUSE_MS - SHORTEST_PAUSE_MS));
    const name = cluster.names[Math.floor(random() * cluster.names.length)]!;
    if (!cluster.kill(name)) continue;
    killed += 1;
    ledger.disturb('members')();
  }
}

/**
 * Cassandra goes and comes back. Meanwhile what needs it is 503 with Retry-After within the time limit,
 * health and liveness hold, readiness does not; afterwards the same processes serve again.
 */
export async function cassandraOutage(
  run: Run,
  names: readonly string[],
  seconds: number,
  away: Away = 'stopped',
): Promise<void> {
  const { cluster, servers, calls, ledger, partners, say } = run;
  // A process that is still starting gives up: the question here is what running ones do.
  await cluster.ready();
  run.outage = true;
  const isOver = ledger.disturb('servers');
  await leave(servers, away, names);
  say(`${away}: ${names.join(', ')}`);
  const until = Date.now() + seconds * 1000;
  let refusals = 0;
  do {
    for (const service of calls.services) {
      // A process that is being started answers nothing: only what is answered is held to the rule.
      const answer = await calls.send(
        { method: 'GET', path: '/v1/proofs?limit=1', apiKey: partners[0]!.apiKey },
        service,
      );
      if (answer?.status === 503) refusals += 1;
      else if (answer !== undefined)
        ledger.violation(`a list without Cassandra is answered ${answer.status} ${describe(answer)}`);
      for (const fault of await probe(calls, service, 503)) ledger.violation(fault);
    }
  } while (Date.now() < until);
  if (refusals === 0) ledger.violation('no process answered while Cassandra was down');
  say(`${names.join(', ')} come back; ${refusals} lists were refused meanwhile`);
  await comeBack(servers, away, names);
  isOver();
  const began = Date.now();
  await cluster.ready();
  run.outage = false;
  ledger.count('outages of Cassandra');
  say(`all processes were ready ${Date.now() - began} ms after it`);
}

/** How many refusals there are, and the first few as they were. @param began when the fault did */
function told(refusals: readonly Refusal[], began: number): readonly string[] {
  return refusals.length === 0
    ? []
    : [
        `${refusals.length} calls were refused or not answered`,
        ...refusals
          .slice(0, REFUSALS_TOLD)
          .map(({ what, at }) => `${what}, ${((at - began) / 1000).toFixed(1)} s after the beginning`),
      ];
}

/**
 * Does a fault that callers must not notice: what needed the server that is gone is noticed in every round.
 * @param round says what was
 */
async function unnoticed(
  { ledger, say }: Run,
  what: string,
  round: () => Promise<readonly string[]>,
): Promise<void> {
  for (let rounds = 1; ; rounds += 1) {
    const noticed = await round();
    if (noticed.length === 0) return;
    ledger.count('rounds in which a fault was noticed');
    say(`noticed while ${what}: ${noticed.join('; ')}`);
    if (rounds === ROUNDS)
      return ledger.violation(`noticed each time that ${what}, at last: ${noticed.join('; ')}`);
  }
}

/** A node of three is killed and started again: nobody who calls notices. */
export function loseNode(run: Run, name: string, seconds: number): Promise<void> {
  const { servers, ledger, say } = run;
  return unnoticed(run, 'one node of three was gone', async () => {
    await delay(seconds * 1000);
    const before = ledger.refusals.length;
    const began = ledger.now();
    say(`killing ${name}`);
    const isOver = ledger.disturb('servers');
    await servers.kill(name);
    await delay(seconds * 2000);
    say(`starting ${name}`);
    await servers.up(name);
    isOver();
    await delay(seconds * 1000);
    ledger.count('nodes lost');
    return told(ledger.refusals.slice(before), began);
  });
}

/**
 * A node of three hangs. Until the others take it for dead, some 20 s, calls wait for it, and one or the
 * other is refused; all are answered within the time limit, as ever.
 */
export async function freezeNode(
  { servers, ledger, say }: Run,
  name: string,
  seconds: number,
): Promise<void> {
  const before = ledger.refusals.length;
  const isOver = ledger.disturb('servers');
  await servers.freeze(name);
  say(`frozen: ${name}`);
  await delay(seconds * 1000);
  await servers.thaw(name);
  isOver();
  say(`${name} comes back; ${ledger.refusals.length - before} calls were refused or not answered meanwhile`);
  ledger.count('nodes frozen');
}

/**
 * Kafka goes and comes back. Nothing that partners call notices, the readiness of services holds, and that of
 * consumers does not; the outbox fills and empties again, as its metric says.
 */
export function kafkaOutage(run: Run, seconds: number, away: Away = 'stopped'): Promise<void> {
  return unnoticed(run, `Kafka was ${away}`, () => withoutKafka(run, seconds, away));
}

/** @returns what callers noticed */
async function withoutKafka(
  { cluster, servers, calls, ledger, say }: Run,
  seconds: number,
  away: Away,
): Promise<readonly string[]> {
  const waiting = () => waitingOfAll(calls.services, METRIC_MS);
  await cluster.ready();
  await delay(SETTLED_MS);
  const refusedBefore = ledger.refusals.length;
  const usual = await waiting();
  const isOver = ledger.disturb('servers');
  const left = ledger.now();
  const brokers = servers.names.filter(isBroker);
  await leave(servers, away, brokers);
  const before = await waiting();
  say(`${away}: ${brokers.join(', ')}; ${before} events waited`);
  const began = Date.now();
  const noticed = new Set<string>();
  const idle = new Set<string>();
  let most = 0;
  do {
    for (const service of calls.services)
      for (const fault of await probe(calls, service, 200)) noticed.add(fault);
    for (const name of cluster.consumers)
      if ((await cluster.unreadyBy(name)) === 'bus_unavailable') idle.add(name);
    most = Math.max(most, await waiting());
    await delay(300);
  } while (Date.now() < began + seconds * 1000 || (most <= before && Date.now() < began + FILL_MS));
  // Whoever is killed meanwhile leaves calls without an answer.
  const refused = ledger.refusals.slice(refusedBefore).filter(({ answered }) => answered);
  for (const fault of told(refused, left)) noticed.add(fault);
  if (most <= before)
    ledger.violation(`the outbox did not fill while Kafka was down: ${before}, then ${most}`);
  for (const name of cluster.consumers)
    if (!idle.has(name)) ledger.violation(`${name} never said that it was not ready while Kafka was ${away}`);
  say(`${brokers.join(', ')} come back; ${most} events wait`);
  await comeBack(servers, away, brokers);
  isOver();
  const back = Date.now();
  const drained = Math.max(usual, most / 4);
  let least = most;
  while (least > drained && Date.now() - back < DRAIN_MS) {
    least = Math.min(least, await waiting());
    await delay(300);
  }
  if (least > drained)
    ledger.violation(`the outbox did not empty after Kafka was back: ${most}, then ${least}`);
  ledger.count('outages of Kafka');
  say(`${least} events wait ${Date.now() - back} ms after it`);
  return [...noticed];
}

/** @returns what is not as expected */
async function probe(calls: Calls, service: Service, ready: 200 | 503): Promise<readonly string[]> {
  const faults: string[] = [];
  const probes = [
    { path: '/v1/health', listener: 'partner', status: 200 },
    { path: '/livez', listener: 'operator', status: 200 },
    { path: '/readyz', listener: 'operator', status: ready },
  ] as const;
  for (const { path, listener, status } of probes) {
    const answer = await calls.send({ method: 'GET', path, listener }, service);
    if (answer !== undefined && answer.status !== status)
      faults.push(`${path} of ${service.name} is answered ${answer.status}, expected ${status}`);
  }
  return faults;
}
