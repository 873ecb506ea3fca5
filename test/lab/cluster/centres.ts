/**
 * `npm run lab -- centres`, or `node dist/test/lab/cluster/centres.js [--keep]`: a keyspace over two data centres of one
 * node each. A topology that is not stated is refused. With both centres active, no erased proof is read, and no key
 * gets two successors. Without the topology the same questions show both, so the checks can fail.
 */
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Client } from 'cassandra-driver';
import { DomainError } from '../../../src/core/domain/errors.js';
import { migrate } from '../../../src/service/adapters/cassandra/driver/migrations.js';
import {
  connect,
  type Session,
  type TopologyKind,
} from '../../../src/service/adapters/cassandra/driver/session.js';
import { type CassandraStore, openCassandraStore } from '../../../src/service/adapters/cassandra/store.js';
import { again } from '../../fixtures/again.js';
import { authenticator } from '../../fixtures/authentication.js';
import { audit, issuedProof, NOW, partnerKey, rotation } from '../../store-contract/samples.js';
import { startAlone, takemark } from './members.js';
import { startServers } from './servers.js';

const ROUNDS = 100;
const AT_ONCE = 4;
const CONTROL_ROUNDS = 200;

const began = performance.now();
const violations: string[] = [];
const say = (line: string): void =>
  console.log(`${((performance.now() - began) / 1000).toFixed(1).padStart(6)} s  ${line}`);
const expect = (holds: boolean, words: string): void => {
  if (!holds) violations.push(words);
  say(`${holds ? 'holds' : 'VIOLATION'}: ${words}`);
};

const servers = await startServers({ nodes: 1, names: ['cassandra-dc1', 'cassandra-dc2'], say });
const directory = await mkdtemp(join(tmpdir(), 'takemark-centres-'));
try {
  const [first = '', second = ''] = servers.settings['TAKEMARK_CENTRES_CASSANDRA']!.split(',');
  const keyspace = `takemark_${randomUUID().slice(0, 8)}`;
  const centre = (number: 1 | 2) => ({
    contactPoints: [number === 1 ? first : second],
    localDataCenter: `dc${number}`,
    keyspace,
    replication: 1,
  });
  const open = (number: 1 | 2, topology: TopologyKind): Promise<CassandraStore> =>
    openCassandraStore({
      ...centre(number),
      topology,
      authenticator,
      audit: { key: Buffer.alloc(32, 7) },
    });
  const refusal = (opened: Promise<CassandraStore>): Promise<string> =>
    opened.then(
      async (stores) => {
        await stores.close();
        return '';
      },
      (error: Error) => error.message,
    );

  await migrate(centre(1));
  say('migrated in dc1');
  await alterKeyspace(first, keyspace);
  const settings = {
    TAKEMARK_ENVIRONMENT: 'beta',
    TAKEMARK_CASSANDRA: first,
    TAKEMARK_CASSANDRA_DC: 'dc1',
    TAKEMARK_CASSANDRA_KEYSPACE: keyspace,
    TAKEMARK_CASSANDRA_REPLICATION: '1',
    TAKEMARK_SECRETS_FILE: join(directory, 'bundle.json'),
    TAKEMARK_DATA_DIR: join(directory, 'data'),
  };
  await takemark(settings, 'operator', 'secrets', 'init', '--out', settings.TAKEMARK_SECRETS_FILE);

  // Not stated: refused, by the store, by the doctor and by a process.
  expect(
    /several data centres \(dc1, dc2\)/.test(await refusal(open(1, 'one_data_centre'))),
    'not stated: dc1 refuses',
  );
  expect(/several data centres/.test(await refusal(open(2, 'one_data_centre'))), 'not stated: dc2 refuses');
  const printed = await takemark(settings, 'operator', 'doctor').catch(
    ({ stdout }: { readonly stdout: string }) => stdout,
  );
  expect(/REFUSE\s+cassandra\.topology/.test(printed), 'not stated: the doctor says so');
  const said = await startAlone({ ...settings, TAKEMARK_STORE: 'cassandra' }, {});
  expect(
    /cassandra\.topology/.test(said),
    `not stated: a process does not start, in beta either (${said.slice(0, 80).trim()})`,
  );

  // With one active centre the other one's processes are refused.
  await migrate({ ...centre(1), topology: 'one_active', changeTopology: true });
  const only = await open(1, 'one_active');
  await only.ping();
  await only.close();
  expect(
    /one_active with dc1, but this process is configured with one_active with dc2/.test(
      await refusal(open(2, 'one_active')),
    ),
    'one active: dc2 refuses',
  );

  // All active.
  await migrate({ ...centre(1), topology: 'all_active', changeTopology: true });
  const one = await open(1, 'all_active');
  const two = await open(2, 'all_active');
  await erasures(one, two);
  await rotations(one, two);
  await one.close();
  await two.close();

  // The same over sessions that decide in their own centre: so the questions above can fail.
  await control(await connect(centre(1), keyspace), await connect(centre(2), keyspace));
} catch (error) {
  violations.push(`the run ended early: ${error instanceof Error ? error.stack : String(error)}`);
} finally {
  await servers.remove();
  await rm(directory, { recursive: true, force: true });
}
for (const violation of violations) console.log(`VIOLATION ${violation}`);
say(`${violations.length} violations (centres)`);
process.exit(violations.length === 0 ? 0 : 1);

/** Does the steps of an operator who adds a data centre. */
async function alterKeyspace(address: string, name: string): Promise<void> {
  const client = new Client({ contactPoints: [address], localDataCenter: 'dc1' });
  await client.execute(
    `ALTER KEYSPACE ${name} WITH replication = {'class': 'NetworkTopologyStrategy', 'dc1': 1, 'dc2': 1}`,
  );
  await client.shutdown();
  await servers.nodetool('cassandra-dc2', 'rebuild', '-ks', name, '--', 'dc1');
}

/** Repeats a call whose outcome is not known. All of these calls may be repeated. */
async function settled<Value>(call: () => Promise<Value>): Promise<Value> {
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (!(error instanceof DomainError) || error.reason !== 'store_unavailable') throw error;
      await delay(50);
    }
  }
}

/** Issues proofs in one centre and erases them in the other. After each answer the other centre reads the proof. */
async function erasures(one: CassandraStore, two: CassandraStore): Promise<void> {
  let stale = 0;
  const latencies: number[] = [];
  await rounds(ROUNDS, async (round) => {
    const proofId = `prf_centres-${round}`;
    const [here, there] = round % 2 === 0 ? [one, two] : [two, one];
    const issued = issuedProof(proofId, 'ptr_centres');
    await settled(() => here.reserveProof(proofId, 'ptr_centres', NOW));
    await settled(() => here.issueProof(issued, audit('ptr_centres', 'proof_issued', proofId)));
    if ((await settled(() => there.getProof(proofId)))?.state !== 'issued') stale += 1;
    const begun = performance.now();
    await settled(() =>
      there.eraseProof(proofId, 'ptr_centres', NOW, audit('ptr_centres', 'proof_erased', proofId)),
    );
    latencies.push(performance.now() - begun);
    if ((await settled(() => here.getProof(proofId)))?.state !== 'erased') stale += 1;
  });
  expect(
    stale === 0,
    `all active: ${ROUNDS} proofs issued in one centre and erased in the other, ${stale} stale reads`,
  );
  say(`all active: an erasure takes ${median(latencies).toFixed(0)} ms (median)`);
}

/** Rotates each key in both centres at once. */
async function rotations(one: CassandraStore, two: CassandraStore): Promise<void> {
  let split = 0;
  await rounds(ROUNDS, async (round) => {
    const key = partnerKey(`key_centres-${round}`, 'ptr_centres');
    await settled(() => one.createKey(key, audit('ptr_centres', 'key_created', key.keyId)));
    const [left, right] = await Promise.all(
      [one, two].map((stores, side) => {
        const successor = partnerKey(`${key.keyId}-${side}`, 'ptr_centres');
        return settled(() =>
          stores.rotateKey(
            rotation(key, successor.keyId, side),
            successor,
            audit('ptr_centres', 'key_rotated', key.keyId),
          ),
        );
      }),
    );
    if (left === undefined || left.newKeyId !== right?.newKeyId) split += 1;
  });
  expect(
    split === 0,
    `all active: ${ROUNDS} keys rotated in both centres at once, ${split} with two successors`,
  );
}

/** Decides in each centre by itself, past the checks of the store, so that two centres make one decision twice. */
async function control(one: Session, two: Session): Promise<void> {
  await again(() => one.define('CREATE TABLE IF NOT EXISTS control (id int PRIMARY KEY, centre text)'));
  await delay(2000);
  let both = 0;
  await rounds(CONTROL_ROUNDS, async (round) => {
    const outcomes = await Promise.all(
      [one, two].map((session, side) =>
        session.lightweightTransaction({
          query: 'INSERT INTO control (id, centre) VALUES (?, ?) IF NOT EXISTS',
          params: [round, `dc${side + 1}`],
        }),
      ),
    );
    if (outcomes.every(({ applied }) => applied)) both += 1;
  });
  expect(
    both > 0,
    `each centre for itself: of ${CONTROL_ROUNDS} decisions ${both} were made twice, as they must be able to`,
  );
  await one.close();
  await two.close();
}

async function rounds(count: number, work: (round: number) => Promise<void>): Promise<void> {
  for (let from = 0; from < count; from += AT_ONCE)
    await Promise.all(Array.from({ length: Math.min(AT_ONCE, count - from) }, (_, i) => work(from + i)));
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
}
