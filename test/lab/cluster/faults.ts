/** Faults under load: processes are killed at random moments, and servers stop and start again. */
import { setTimeout as delay } from 'node:timers/promises';
import { type Calls, describe } from './calls.js';
import { isBroker } from './composition.js';
import type { Refusal } from './ledger.js';
import type { Service } from './members.js';
import { waitingOfAll } from './observe.js';
import type { Run } from './run.js';
import type { Servers } from './servers.js';

/** The limits of the pause between kills, in milliseconds. A start takes longer than the shortest pause. */
const SHORTEST_PAUSE_MS = 300;
const LONGEST_PAUSE_MS = 2700;
/** The time after kills until restarted processes answer normally, in milliseconds. */
const SETTLED_MS = 3000;
const METRIC_MS = 60_000;
const FILL_MS = 120_000;
const DRAIN_MS = 240_000;
/**
 * How often a fault that callers must not notice is played. On a busy machine the remaining nodes hang for
 * seconds too, so the first rounds may fail.
 */
const ROUNDS = 3;
/** The most refusals that a line lists. */
const MAX_REFUSALS_NAMED = 5;

/**
 * How servers go away. A stopped server closes its connections. A frozen server keeps them open and answers
 * nothing.
 */
export type Away = 'stopped' | 'frozen';

const leave = (servers: Servers, away: Away, names: readonly string[]): Promise<void> =>
  away === 'frozen' ? servers.freeze(...names) : servers.down(...names);
const comeBack = (servers: Servers, away: Away, names: readonly string[]): Promise<void> =>
  away === 'frozen' ? servers.thaw(...names) : servers.up(...names);

/** Kills processes. `random` selects the process and the time. */
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
 * Takes Cassandra away and brings it back. Meanwhile calls that need it get 503 with Retry-After within the
 * time limit. Health and liveness succeed, and readiness fails. Afterwards the same processes serve again.
 */
export async function cassandraOutage(
  run: Run,
  names: readonly string[],
  seconds: number,
  away: Away = 'stopped',
): Promise<void> {
  const { cluster, servers, calls, ledger, partners, say } = run;
  // Waits for all processes, because a starting process would give up. The test is about running ones.
  await cluster.ready();
  run.outage = true;
  const isOver = ledger.disturb('servers');
  await leave(servers, away, names);
  say(`${away}: ${names.join(', ')}`);
  const until = Date.now() + seconds * 1000;
  let refusals = 0;
  do {
    for (const service of calls.services) {
      // A process that is starting does not answer. Only answers are checked.
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

/**
 * Returns the number of refusals, and the first few of them.
 * @param began the time at which the fault began
 */
function described(refusals: readonly Refusal[], began: number): readonly string[] {
  return refusals.length === 0
    ? []
    : [
        `${refusals.length} calls were refused or not answered`,
        ...refusals
          .slice(0, MAX_REFUSALS_NAMED)
          .map(({ what, at }) => `${what}, ${((at - began) / 1000).toFixed(1)} s after the beginning`),
      ];
}

/**
 * Plays a fault that callers must not notice. A call that depends on the missing server would fail in every
 * round.
 * @param round returns what callers noticed
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

/** Kills one node of three and starts it again. Callers must notice nothing. */
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
    return described(ledger.refusals.slice(before), began);
  });
}

/**
 * Freezes one node of three. The other nodes need about 20 s to detect it. Until then calls wait, and a few
 * are refused. All calls are answered within the time limit.
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
 * Takes Kafka away and brings it back. Partners notice nothing, services stay ready, and consumers do not.
 * The metric shows that the outbox fills and drains.
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
  // A killed process leaves calls without an answer, which says nothing about Kafka.
  const refused = ledger.refusals.slice(refusedBefore).filter(({ answered }) => answered);
  for (const fault of described(refused, left)) noticed.add(fault);
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

/** @returns the unexpected answers */
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
