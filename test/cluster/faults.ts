/** What is done to a cluster while it works: processes killed at random moments, servers stopped and started again. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Calls } from './calls.js';
import { describe } from './calls.js';
import type { Ledger } from './ledger.js';
import type { Cluster } from './members.js';
import type { Servers } from './servers.js';

/** Between kills: shorter and longer than a process needs to start. */
const SHORTEST_PAUSE_MS = 300;
const LONGEST_PAUSE_MS = 2_700;

/** Kills processes, chosen and timed by `random`. */
export async function killProcesses(cluster: Cluster, count: number, random: () => number): Promise<void> {
  for (let killed = 0; killed < count; ) {
    await delay(SHORTEST_PAUSE_MS + random() * (LONGEST_PAUSE_MS - SHORTEST_PAUSE_MS));
    const name = cluster.names[Math.floor(random() * cluster.names.length)]!;
    if (cluster.kill(name)) killed += 1;
  }
}

export interface Outage {
  readonly cluster: Cluster;
  readonly servers: Servers;
  readonly calls: Calls;
  readonly ledger: Ledger;
  readonly apiKey: string;
  readonly say: (line: string) => void;
}

/**
 * Cassandra goes and comes back. Meanwhile what needs it is 503 with Retry-After within the time limit, health and liveness hold,
 * readiness does not; afterwards the same processes serve again.
 */
export async function cassandraOutage({ cluster, servers, calls, ledger, apiKey, say }: Outage, { names, seconds }: { readonly names: readonly string[]; readonly seconds: number }): Promise<void> {
  say(`cassandra: stopping ${names.join(', ')}`);
  await servers.down(...names);
  const until = Date.now() + seconds * 1_000;
  let refusals = 0;
  do {
    for (const service of calls.services) {
      // A process that is being started answers nothing: only what is answered is held to the rule.
      const partner = await calls.send({ method: 'GET', path: '/v1/proofs?limit=1', apiKey }, service);
      if (partner !== undefined) {
        if (partner.status !== 503) ledger.violation(`a list without Cassandra is answered ${partner.status} ${describe(partner)}`);
        else refusals += 1;
      }
      await expectProbe(calls, service, { ready: 503 }, ledger);
    }
  } while (Date.now() < until);
  say(`cassandra: starting; ${refusals} calls were refused meanwhile`);
  if (refusals === 0) ledger.violation('no process answered while Cassandra was down');
  await servers.up(...names);
  const began = Date.now();
  await cluster.ready();
  ledger.count('outages of cassandra');
  say(`cassandra: all processes ready ${Date.now() - began} ms after it`);
}

async function expectProbe(calls: Calls, service: Calls['services'][number], { ready }: { readonly ready: 200 | 503 }, ledger: Ledger): Promise<void> {
  const probes = [
    { path: '/v1/health', listener: 'partner', status: 200 },
    { path: '/livez', listener: 'operator', status: 200 },
    { path: '/readyz', listener: 'operator', status: ready },
  ] as const;
  for (const { path, listener, status } of probes) {
    const answer = await calls.send({ method: 'GET', path, listener }, service);
    if (answer !== undefined && answer.status !== status) ledger.violation(`${path} of ${service.name} is answered ${answer.status}, expected ${status}`);
  }
}
