/** `npm run chaos [-- --kills n] [--seed n] [--out file] [--keep]`: a cluster at work while its processes are killed and its servers stopped. */
import { randomInt, randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { seeded } from '../fixtures/service.js';
import { Calls } from './calls.js';
import { cassandraOutage, killProcesses } from './faults.js';
import { judge } from './judge.js';
import { Ledger } from './ledger.js';
import { Cluster } from './members.js';
import { caughtUp, observe, verifyAgain } from './observe.js';
import { startServers } from './servers.js';
import { Tables } from './tables.js';
import { Workload } from './workload.js';

const PARTNERS = 3;
const CATCH_UP_MS = 240_000;

const { values } = parseArgs({ options: { kills: { type: 'string', default: '200' }, seed: { type: 'string' }, out: { type: 'string' }, keep: { type: 'boolean', default: false } } });
const kills = Number(values.kills);
const seed = Number(values.seed ?? randomInt(1 << 30));
const began = performance.now();
const say = (line: string): void => console.log(`${((performance.now() - began) / 1_000).toFixed(1).padStart(6)} s  ${line}`);

say(`seed ${seed}, ${kills} kills`);
const random = seeded(seed);
const servers = await startServers({ nodes: 1, say });
const ledger = new Ledger(values.out === undefined ? undefined : `${values.out}.ledger`);
let outage = false;
const cluster = await Cluster.start({
  settings: { ...servers.settings, TAKEMARK_CASSANDRA_KEYSPACE: `takemark_${randomUUID().slice(0, 8)}`, TAKEMARK_S3_PREFIX: `chaos-${randomUUID()}/` },
  services: 3,
  consumers: 0,
  onDeath: (name, how) => {
    // Without Cassandra a process that starts gives up, and is started again.
    if (outage && how === 'exit code 1') ledger.count('starts given up in an outage');
    else ledger.violation(`${name} ended by itself: ${how}`);
  },
});
say('cluster ready');
const calls = new Calls(cluster, ledger);
const workload = new Workload(calls, ledger, seeded(seed + 1));
const partners = [];
for (let index = 0; index < PARTNERS; index += 1) partners.push(await workload.partner());
const working = workload.run(partners);

const kill = (share: number) => killProcesses(cluster, Math.round(kills * share), random);
await kill(0.4);
outage = true;
await cassandraOutage({ cluster, servers, calls, ledger, apiKey: partners[0]!.apiKey, say }, { names: ['cassandra-1'], seconds: 6 });
outage = false;
await kill(0.6);
say('stopping the work');
workload.stop();
await working;
await cluster.ready();

const tables = await Tables.open(cluster.settings);
const observers = { calls, workload, tables, topics: undefined };
const verdicts = await verifyAgain(ledger, observers);
const behind = await caughtUp(ledger, observers, CATCH_UP_MS);
if (behind !== undefined) ledger.violation(`not caught up: ${behind}`);
say('looking at everything');
for (const violation of judge(ledger, await observe(ledger, observers, verdicts))) ledger.violation(violation);
await tables.close();
await cluster.stop({ keep: values.keep });
await servers.remove();

const summary = { seed, kills: cluster.kills, counts: ledger.counts, violations: ledger.violations, seconds: Math.round((performance.now() - began) / 1_000) };
if (values.out !== undefined) await writeFile(values.out, `${JSON.stringify(summary, undefined, 2)}\n`);
for (const [what, count] of Object.entries(summary.counts)) console.log(`${String(count).padStart(8)}  ${what}`);
say(`kills ${JSON.stringify(cluster.kills)}`);
for (const violation of ledger.violations.slice(0, 50)) console.log(`VIOLATION ${violation}`);
if (values.keep) say(`kept ${join(cluster.directory)}`);
say(`${ledger.violations.length} violations (seed ${seed})`);
process.exitCode = ledger.violations.length === 0 ? 0 : 1;
