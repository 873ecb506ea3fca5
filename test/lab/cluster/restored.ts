/**
 * Restores an older backup of Cassandra while clients call, by the page for operators. Then compares the
 * state with the answers that the clients got.
 */
import { mkdir, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { openAssetBucket } from '../../../src/service/adapters/assets/s3.js';
import { readConfig } from '../../../src/service/config/config.js';
import { seeded } from '../../fixtures/service.js';
import { describe, reasonOf } from './calls.js';
import { judge } from './judge.js';
import { type Acknowledged, judgeRestored } from './judge-restored.js';
import { Ledger } from './ledger.js';
import { takemark } from './members.js';
import { caughtUp, observe, verifyAgain } from './observe.js';
import { RestoreClients } from './restore-clients.js';
import type { Run } from './run.js';
import type { Servers } from './servers.js';
import { SNAPSHOTS } from './snapshots.js';
import { Tables } from './tables.js';
import { Topics } from './topics.js';
import { Workload } from './workload.js';

const PARTNERS = 3;
/** The number of calls of each kind that the run waits for. */
const DEEDS = 10;
const DEEDS_MS = 600_000;
const CATCH_UP_MS = 600_000;
/** The number of kept files of each kind that are verified at the end. */
const VERIFIED = 12;

/** @param nodes names of Cassandra's nodes */
export async function restoreBackup(run: Run, nodes: readonly string[], seed: number): Promise<void> {
  const { cluster, servers, calls, ledger, say } = run;
  const settings = { ...cluster.settings, TAKEMARK_DATA_DIR: join(cluster.directory, 'operator') };
  const keyspace = cluster.settings['TAKEMARK_CASSANDRA_KEYSPACE']!;
  const partners = await Promise.all(Array.from({ length: PARTNERS }, () => run.workload.partner()));
  const clients = new RestoreClients(calls, ledger, seeded(seed + 3), partners);
  await clients.know(ledger);
  const after = new Ledger();
  const workload = new Workload(calls, after, seeded(seed + 4));
  const working = clients.run();
  let workingAfter = Promise.resolve();
  const backup = { began: 0, ended: 0 };
  let closedAt = 0;
  let openedAt = 0;
  try {
    await clients.until(DEEDS, DEEDS_MS);
    const beat = await beatOf(cluster.settings);
    backup.began = ledger.now();
    for (const [tag, tables] of Object.entries(SNAPSHOTS)) {
      const among = tables.map((table) => `${keyspace}.${table}`).join(',');
      for (const node of nodes)
        await servers.nodetool(node, 'snapshot', '-t', tag, ...(among === '' ? [keyspace] : ['-kt', among]));
    }
    backup.ended = ledger.now();
    say(`a backup was made within ${Math.round(backup.ended - backup.began)} ms`);
    await clients.eraseBackedUp(DEEDS_MS);
    await clients.until(DEEDS, DEEDS_MS);
    // A restart advances the installation's counter, which reveals that the backup is older.
    for (const { name } of cluster.services.slice(0, 2)) cluster.kill(name);
    while ((await beatOf(cluster.settings)) < beat + 2) await delay(100);
    await clients.until(DEEDS, DEEDS_MS);

    say('putting the backup back');
    run.outage = true;
    await Promise.all(cluster.names.map((name) => cluster.hold(name)));
    closedAt = ledger.now();
    for (const node of nodes) await servers.nodetool(node, 'drain');
    await servers.down(...nodes);
    for (const node of nodes) await putBack(servers, node, keyspace);
    await servers.up(...nodes);
    for (const node of nodes) await servers.nodetool(node, 'repair', '-full', '-pr', keyspace);
    for (const name of cluster.names) cluster.release(name);
    await gateIsClosed(run);
    say('every process refuses what the backup brought back');
    await Promise.all(cluster.names.map((name) => cluster.hold(name)));
    say((await takemark(settings, 'operator', 'restore')).trim());
    openedAt = ledger.now();
    for (const name of cluster.names) cluster.release(name);
    await cluster.ready();
    run.outage = false;
    say('all processes are ready');

    const newcomers = [await workload.partner(), await workload.partner()];
    workingAfter = workload.run(newcomers);
    await clients.until(DEEDS, DEEDS_MS);
    for (const deadline = Date.now() + DEEDS_MS; after.issued.length < DEEDS; await delay(200))
      if (Date.now() > deadline) throw new Error('new partners issue nothing');
  } finally {
    say('stopping the work');
    workload.stop();
    clients.stop();
    await Promise.all([working, workingAfter]);
  }
  await cluster.ready();
  const acknowledged: Acknowledged = { ...clients.acknowledged, backup, closedAt, openedAt };
  await lookAt(run, acknowledged, clients, after, workload);
  ledger.count('backups put back');
}

async function beatOf(settings: Readonly<Record<string, string>>): Promise<number> {
  const tables = await Tables.open(settings);
  try {
    return await tables.beat();
  } finally {
    await tables.close();
  }
}

/**
 * Restores the keyspace's files on a stopped node. Deletes what would replay later writes: the commit log,
 * hints, batches and the state of Paxos.
 */
async function putBack({ directory }: Servers, node: string, keyspace: string): Promise<void> {
  const home = join(directory, node);
  for (const name of ['commitlog', 'hints', 'saved_caches']) {
    await rm(join(home, name), { recursive: true, force: true });
    await mkdir(join(home, name), { mode: 0o700 });
  }
  const system = join(home, 'data', 'system');
  for (const name of await readdir(system))
    if (/^(paxos-|_paxos_repair_state$|batches-)/.test(name))
      await rm(join(system, name), { recursive: true });
  const tables = join(home, 'data', keyspace);
  for (const table of await readdir(tables)) {
    const place = join(tables, table);
    for (const name of await readdir(place))
      if (name !== 'snapshots') await rm(join(place, name), { recursive: true });
    const made = await readdir(join(place, 'snapshots'));
    const saved = join(place, 'snapshots', Object.keys(SNAPSHOTS).find((tag) => made.includes(tag))!);
    for (const name of await readdir(saved))
      if (name !== 'manifest.json' && name !== 'schema.cql')
        await rename(join(saved, name), join(place, name));
  }
}

/** Checks that every process names the reason for not being ready, and refuses partners and operators. */
async function gateIsClosed({ cluster, calls, ledger, partners }: Run): Promise<void> {
  const { apiKey, partnerId } = partners[0]!;
  const refused = [
    { method: 'GET', path: '/v1/proofs?limit=1', apiKey },
    { method: 'GET', path: `/operator/v1/partners/${partnerId}/audit/verification`, listener: 'operator' },
  ] as const;
  for (const service of cluster.services) {
    for (const deadline = Date.now() + DEEDS_MS; ; await delay(200)) {
      const answer = await calls.send({ method: 'GET', path: '/readyz', listener: 'operator' }, service);
      if (answer?.status === 200)
        ledger.violation(`${service.name} is ready with a backup that was put back`);
      if (answer?.status === 200 || (answer?.status === 503 && reasonOf(answer) === 'restoring')) break;
      if (Date.now() > deadline) throw new Error(`${service.name} does not say that it is restoring`);
    }
    for (const call of refused) {
      const answer = await calls.send(call, service);
      if (answer?.status !== 503 || reasonOf(answer) !== 'restoring')
        ledger.violation(
          `${call.path} before the restore is answered ${answer === undefined ? 'nothing' : `${answer.status} ${describe(answer)}`}`,
        );
    }
  }
}

async function lookAt(
  { cluster, calls, ledger, say }: Run,
  acknowledged: Acknowledged,
  clients: RestoreClients,
  after: Ledger,
  workload: Workload,
): Promise<void> {
  const tables = await Tables.open(cluster.settings);
  const topics = await Topics.open(cluster.settings);
  const observers = { calls, workload, tables, topics };
  try {
    const verdictsAfter = await verifyAgain(after, observers);
    const verdicts = await clients.verifyAgain(VERIFIED);
    say('waiting for outboxes and consumers');
    // Erasures of proofs from during or after the backup are checked below.
    const known = new Set(
      acknowledged.issued
        .filter(({ at }) => at < acknowledged.backup.began || at > acknowledged.openedAt)
        .map(({ proofId }) => proofId),
    );
    const awaited = new Ledger();
    awaited.erased.push(...acknowledged.erased.filter(({ proofId }) => known.has(proofId)), ...after.erased);
    awaited.billed.push(...after.billed);
    awaited.reviews.push(...after.reviews);
    const behind = await caughtUp(awaited, observers, CATCH_UP_MS, say, { afterRestore: true });
    if (behind !== undefined) ledger.violation(`not caught up after a restore: ${behind}`);

    say('looking at everything');
    const before = new Ledger();
    before.partners.push(...acknowledged.partners);
    before.issued.push(...acknowledged.issued);
    const observed = await observe(before, observers, verdicts);
    const lost = [...observed.proofs].filter(([, { state }]) => state !== 'issued' && state !== 'erased');
    const lostIds = new Set(lost.map(([proofId]) => proofId));
    ledger.count('proofs that the backup lacked', lostIds.size);
    ledger.count('rows that name them', observed.rows.filter(({ proofId }) => lostIds.has(proofId)).length);
    const files = await filesOf({
      ...cluster.settings,
      TAKEMARK_DATA_DIR: join(cluster.directory, 'operator'),
    });
    for (const fault of judgeRestored(acknowledged, { ...observed, files }))
      ledger.violation(`restored: ${fault}`);

    const newcomers = new Set(after.partners.map(({ partnerId }) => partnerId));
    const observedAfter = await observe(after, observers, verdictsAfter);
    const ofNewcomers = observedAfter.events.filter(({ data }) => newcomers.has(data.partnerId));
    for (const violation of [...after.violations, ...judge(after, { ...observedAfter, events: ofNewcomers })])
      ledger.violation(`after a restore: ${violation}`);
    for (const [what, count] of Object.entries(after.counts)) ledger.count(`after a restore, ${what}`, count);
  } finally {
    await tables.close();
    await topics.close();
  }
}

/** Returns the ids of proofs that have files in the bucket. */
async function filesOf(settings: Readonly<Record<string, string>>): Promise<ReadonlySet<string>> {
  const { assetBucket, dataDirectory } = readConfig(settings);
  const assets = await openAssetBucket({ ...assetBucket!, spoolDirectory: join(dataDirectory, 'spool') });
  try {
    const files = new Set<string>();
    let after: string | undefined;
    do {
      const page = await assets.list(after, 1000);
      for (const { proofId } of page.items) files.add(proofId);
      after = page.next;
    } while (after !== undefined);
    return files;
  } finally {
    assets.close();
  }
}
