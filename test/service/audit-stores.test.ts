/** Tests that the auditor finds each planted fault and no other, and no fault in stores under load. */
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { PutObjectCommand } from '@aws-sdk/client-s3';
import type { Client } from 'cassandra-driver';
import t, { type Test } from 'tap';
import { RecordCodec } from '../../src/core/codec/record.js';
import { defined } from '../../src/core/domain/defined.js';
import type { Finding } from '../../src/core/domain/finding.js';
import { connectBucket } from '../../src/service/adapters/assets/bucket-connection.js';
import { openBucketKeys } from '../../src/service/adapters/assets/bucket-keys.js';
import { openAssetDirectory } from '../../src/service/adapters/assets/directory.js';
import { openAssetBucket } from '../../src/service/adapters/assets/s3.js';
import { migrate } from '../../src/service/adapters/cassandra/driver/migrations.js';
import { RowCodes } from '../../src/service/adapters/cassandra/driver/row-codes.js';
import { monthKey, proofKey, reminderKey, type SourceRow } from '../../src/service/adapters/embedded/keys.js';
import { type EmbeddedStore, openEmbeddedStore } from '../../src/service/adapters/embedded/store.js';
import { encryptedAssets } from '../../src/service/adapters/encryption/encrypted-assets.js';
import { encryptedStores } from '../../src/service/adapters/encryption/encrypted-stores.js';
import { openKeyDirectory } from '../../src/service/adapters/encryption/key-directory.js';
import { Auditor } from '../../src/service/background/auditor.js';
import { listen } from '../../src/service/consumers/listen.js';
import {
  type ReviewReminder,
  remindersOf,
  reviewCreated,
  type Topic,
} from '../../src/service/domain/events.js';
import type { ErasedProof, IssuedProof } from '../../src/service/domain/proof.js';
import { monthOf } from '../../src/service/domain/usage-window.js';
import { auditStores } from '../../src/service/operations/system/audit-stores.js';
import type { AssetStore } from '../../src/service/ports/assets.js';
import type { AuditedStore } from '../../src/service/ports/audited-store.js';
import type { EventHandler } from '../../src/service/ports/bus.js';
import type { ContentKeys } from '../../src/service/ports/content-keys.js';
import type { Stores } from '../../src/service/ports/stores.js';
import type { Clock } from '../../src/service/ports/system.js';
import {
  ADDRESSES,
  connection,
  dropKeyspace,
  KEY,
  memoryHeads,
  openStore,
  withClient,
} from '../adapters/cassandra-under-test.js';
import { withLevel } from '../adapters/embedded-process.js';
import { authenticator } from '../fixtures/authentication.js';
import { TestClock, TestService } from '../fixtures/service.js';
import { wav } from '../fixtures/wav.js';
import { call } from '../fixtures/wire.js';
import { publish } from '../store-contract/asset-contract.js';
import { audit, issuedProof, partner, reviewCase, usageCharge } from '../store-contract/samples.js';

/** A pass without a pause before the second look, for a house without running operations. */
const AT_ONCE = { secondLookMs: 0 };
/** The offset of a later clock in milliseconds. It is longer than any operation may run. */
const LATER_MS = 27 * 3_600_000;

const BYTES = Buffer.from('a credentialed file');

/** A store under audit, with functions that damage it directly. */
interface House {
  /** Returns the stores as the auditor has them, which decrypt their content. */
  readonly stores: () => Stores & { readonly audited: AuditedStore };
  readonly assets: AssetStore;
  readonly keys: ContentKeys;
  /** The encrypted files as they are stored. A file that is removed here keeps its key. */
  readonly files: AssetStore;
  /** Changes a bit of a proof's record. */
  readonly damage: (proofId: string) => Promise<void>;
  /** Writes a new key of a proof, over an existing one. */
  readonly plantKey: (proofId: string) => Promise<unknown>;
  /** Removes the confirmation of an erasure. */
  readonly unconfirm: (erased: ErasedProof) => Promise<void>;
  readonly addUnits: (partnerId: string, month: string, units: number) => Promise<void>;
  readonly removeReminder: (reminder: ReviewReminder) => Promise<void>;
}

/** Returns the bytes with one changed bit near their end. */
function flipped(bytes: Uint8Array): Uint8Array {
  const changed = Uint8Array.from(bytes);
  changed[changed.length - 1]! ^= 1;
  return changed;
}

/** Lets the consumers take the waiting events. */
async function deliver(
  { stores, assets }: House,
  clock: Clock,
  isHeldBack = (_topic: Topic) => false,
): Promise<void> {
  const handlers = new Map<Topic, EventHandler>();
  listen(
    { handle: (topic, handler) => void handlers.set(topic, handler) },
    {
      stores: stores(),
      assets,
      journal: { record: async () => undefined },
      clock,
      observer: { events: () => undefined },
    },
  );
  for (;;) {
    const waiting = await stores().waitingEvents(100, ({ topic }) => isHeldBack(topic));
    if (waiting.length === 0) return;
    for (const { event } of waiting) await handlers.get(event.topic)!([event]);
    await stores().markPublished(waiting);
  }
}

/** Runs a whole pass in steps. */
async function pass(
  house: House,
  clock: Clock,
  { limit = 500, secondLookMs }: { readonly limit?: number; readonly secondLookMs?: number } = {},
): Promise<readonly string[]> {
  const findings: Finding[] = [];
  for (let from: string | undefined, isFirst = true; isFirst || from !== undefined; isFirst = false) {
    const { stores, assets, keys } = house;
    const step = await auditStores(
      { stores: stores(), assets, keys, audited: stores().audited, clock },
      defined({ from, limit, secondLookMs }),
    );
    findings.push(...step.findings);
    from = step.next;
  }
  return findings.map(({ kind, subject }) => `${kind} ${subject}`).sort();
}

function auditorContract(t: Test, name: string, options: object, open: (t: Test) => Promise<House>): void {
  void t.test(name, options, async (t) => {
    const house = await open(t);
    const { assets, files, keys, stores } = house;
    const run = randomUUID().slice(0, 8);
    const at = Math.floor(Date.now() / 1000);
    const month = monthOf(at);
    const present: Clock = { now: () => Date.now() };
    const later: Clock = { now: () => Date.now() + LATER_MS };
    const partnerId = `ptr_${run}`;
    const id = (which: string) => `prf_${run}.${which}`;
    await stores().createPartner(partner(partnerId), audit(partnerId, 'partner_created'));

    const issue = async (proofId: string, over: Partial<IssuedProof> = {}): Promise<void> => {
      await stores().reserveProof(proofId, partnerId, at);
      await publish(assets, proofId, BYTES);
      const asset = { bytes: BYTES.length, sha256: 'ab', fileName: 'song.wav', mediaType: 'audio/wav' };
      await stores().issueProof(
        issuedProof(proofId, partnerId, { createdAt: at, asset, ...over }),
        audit(partnerId, 'proof_issued', proofId),
      );
    };
    const review = (reviewId: string, proofId: string) =>
      reviewCase(reviewId, partnerId, proofId, { createdAt: at });
    const charge = (key: string) =>
      stores().charge(usageCharge(partnerId, key, { at, dedupeUntil: at + 3600 }));

    for (const which of ['1', '2', '3', '4', '6', '7']) await issue(id(which));
    const parts = [
      { part: 'trace', bytes: BYTES.length, sha256: 'ab'.repeat(32), place: 'objects' },
    ] as const;
    await publish(assets, id('8'), BYTES, 'trace');
    await issue(id('8'), { evidence: { engineVersion: 1, traceSha256: 'fe'.repeat(32), parts } });
    await stores().eraseProof(id('4'), partnerId, at, audit(partnerId, 'proof_erased', id('4')));
    const announced = review(`rvw_${run}.1`, id('1'));
    await stores().createReview(
      announced,
      announced.createdAt,
      audit(partnerId, 'review_created', announced.reviewId),
    );
    for (let i = 0; i < 5; i += 1) await charge(`${run}.${i}`);

    await t.test('the auditor reports nothing young and nothing finished', async (t) => {
      t.strictSame(await pass(house, present), [], 'what waits is young');
      await deliver(house, present);
      for (let i = 5; i < 8; i += 1) await charge(`${run}.${i}`);
      t.strictSame(await pass(house, later), [], 'units that wait to be added are no finding');
      t.strictSame(await pass(house, later, { limit: 1 }), [], 'in steps of one as well');
    });

    await t.test('the auditor reports unpublished events and unscheduled reminders', async (t) => {
      const waiting = review(`rvw_${run}.2`, id('2'));
      await stores().createReview(
        waiting,
        waiting.createdAt,
        audit(partnerId, 'review_created', waiting.reviewId),
      );
      await issue(id('5'));
      await stores().eraseProof(id('5'), partnerId, at, audit(partnerId, 'proof_erased', id('5')));
      await assets.delete(id('5'));
      t.strictSame(await pass(house, later), [
        `erasure_unfinished ${id('5')}`,
        `review_unannounced ${waiting.reviewId}`,
      ]);
      await deliver(house, present);
      t.strictSame(await pass(house, later), [], 'and nothing of it afterwards');
    });

    await t.test('faults that are planted', async (t) => {
      const findings: string[] = [];
      const finds = async (finding: string, what: string): Promise<void> => {
        findings.push(finding);
        t.strictSame(await pass(house, later, AT_ONCE), findings.toSorted(), what);
      };
      await files.delete(id('1'));
      await finds(`object_missing ${id('1')}`, 'a deliverable that was deleted');

      await files.delete(id('2'));
      await publish(assets, id('2'), BYTES.subarray(1));
      await finds(`object_missing ${id('2')}`, 'one that was cut off');

      await files.delete(id('8'));
      await publish(assets, id('8'), BYTES);
      await finds(`object_missing ${id('8')}`, 'a trace that was deleted beside its deliverable');

      await house.damage(id('6'));
      await finds(`record_damaged ${id('6')}`, 'a record with a changed bit');

      await keys.destroy(id('7'));
      await finds(`record_damaged ${id('7')}`, 'a record without its key');

      await publish(assets, id('9'), BYTES);
      await finds(`object_left ${id('9')}`, 'a file of no proof');
      t.notOk(
        (await pass(house, present, AT_ONCE)).includes(`object_left ${id('9')}`),
        'which may be of an issuing',
      );

      await publish(files, id('4'), BYTES);
      await finds(`object_left ${id('4')}`, 'a file of an erased proof');
      await assets.delete(id('4'));
      findings.pop();

      await house.plantKey(id('4'));
      await finds(`key_left ${id('4')}`, 'a key of an erased proof');
      await assets.delete(id('4'));
      findings.pop();

      await house.unconfirm((await stores().getProof(id('4'))) as ErasedProof);
      await finds(`erasure_unfinished ${id('4')}`, 'an erasure whose confirmation was removed');

      for (const reminder of remindersOf(reviewCreated(announced)).slice(1))
        await house.removeReminder(reminder);
      await finds(`review_unannounced ${announced.reviewId}`, 'a review without its reminders');

      await deliver(house, present);
      for (const units of [1, -1]) {
        await house.addUnits(partnerId, month, units);
        await finds(`month_differs ${partnerId}/${month}`, `${units} units in the month`);
        findings.pop();
        await house.addUnits(partnerId, month, -units);
      }
      t.strictSame(await pass(house, later, AT_ONCE), findings.toSorted(), 'nothing was mended');
    });

    await t.test('the auditor in the background counts the same', async (t) => {
      const counted: string[] = [];
      const auditor = new Auditor({
        stores: stores(),
        assets,
        keys,
        audited: stores().audited,
        clock: later,
        rate: 100,
        onFindings: (kind, count) => counted.push(`${count} ${kind}`),
      });
      t.equal(auditor.report, undefined);
      await auditor.run(1, undefined, () => false);
      t.strictSame(
        [counted, auditor.report?.steppedAt],
        [[], undefined],
        'a step with a wrong clock is dropped',
      );
      await auditor.run(0.01);
      t.equal(auditor.report?.endedAt, undefined, 'a look is a step, and no pass');
      t.ok(auditor.report?.steppedAt);
      for (let i = 0; i < 50 && auditor.report?.endedAt === undefined; i += 1) await auditor.run(1);
      t.strictSame(
        Object.fromEntries(auditor.report?.findings ?? []),
        {
          object_missing: 3,
          object_left: 1,
          erasure_unfinished: 1,
          review_unannounced: 1,
          record_damaged: 2,
        },
        counted.join(', '),
      );
      const calls = counted.length;
      await auditor.run(1);
      t.equal(counted.length, calls, 'and rests after a pass');
      const none = new Auditor({
        stores: stores(),
        assets,
        keys,
        audited: { ...stores().audited, lease: async () => false },
        clock: later,
        rate: 100,
        onFindings: () => t.fail('another process has the lease'),
      });
      await none.run(1);
      t.equal(none.report, undefined);
    });
    await assets.delete(id('9'));
  });

  void t.test(`${name}: the auditor reports nothing while calls run`, options, async (t) => {
    const house = await open(t);
    const { assets, stores } = house;
    const run = randomUUID().slice(0, 8);
    const at = Math.floor(Date.now() / 1000);
    const present: Clock = { now: () => Date.now() };
    const partnerId = `ptr_${run}`;
    await stores().createPartner(partner(partnerId), audit(partnerId, 'partner_created'));
    let isOver = false;
    let calls = 0;
    const proof = async (proofId: string): Promise<void> => {
      await stores().reserveProof(proofId, partnerId, at);
      await publish(assets, proofId, BYTES);
      const asset = { bytes: BYTES.length, sha256: 'ab', fileName: 'song.wav', mediaType: 'audio/wav' };
      await stores().issueProof(
        issuedProof(proofId, partnerId, { createdAt: at, asset }),
        audit(partnerId, 'proof_issued', proofId),
      );
      const reviewId = proofId.replace('prf', 'rvw');
      const review = reviewCase(reviewId, partnerId, proofId, { createdAt: at });
      await stores().createReview(review, review.createdAt, audit(partnerId, 'review_created', reviewId));
      await stores().eraseProof(proofId, partnerId, at, audit(partnerId, 'proof_erased', proofId));
    };
    const loop = async (work: (i: number) => Promise<unknown>): Promise<void> => {
      // Paced, so that a pass comes to its end.
      for (let i = 0; !isOver; i += 1, calls += 1) {
        await work(i);
        await delay(20);
      }
    };
    const load = [
      ...['a', 'b', 'c', 'd'].map((who) =>
        loop((i) =>
          stores().charge(usageCharge(partnerId, `${run}.${who}.${i}`, { at, dedupeUntil: at + 3600 })),
        ),
      ),
      loop((i) => proof(`prf_${run}.${i}`)),
      loop(() => deliver(house, present)),
    ];
    try {
      for (let i = 0; i < 5 || calls < 200; i += 1)
        t.strictSame(await pass(house, present, { limit: 100 }), []);
    } finally {
      isOver = true;
      await Promise.all(load);
    }
    await deliver(house, present);
    t.strictSame(await pass(house, { now: () => Date.now() + LATER_MS }), [], 'nor when all has ended');
  });
}

auditorContract(t, 'embedded store and directory', {}, async (t) => {
  const directory = t.testdir();
  const heads = memoryHeads();
  const codec = new RecordCodec(authenticator);
  const openIt = () =>
    openEmbeddedStore({ directory: join(directory, 'store'), audit: { key: KEY, heads }, authenticator });
  let inner: EmbeddedStore = await openIt();
  t.teardown(() => inner.close());
  const rewrite = async (
    key: string,
    change: (bytes: Uint8Array) => Uint8Array | undefined,
  ): Promise<void> => {
    await inner.close();
    await withLevel(join(directory, 'store'), async (level) => {
      const bytes = change((await level.get(key))!);
      await (bytes === undefined ? level.del(key) : level.put(key, bytes));
    });
    inner = await openIt();
  };
  const edit = (key: string, change: (row: unknown) => unknown): Promise<void> =>
    rewrite(key, (bytes) => {
      const row = change(codec.decode(key, bytes));
      return row === undefined ? undefined : codec.encode(key, row);
    });
  const keys = await openKeyDirectory({ directory: join(directory, 'keys') });
  const files = await openAssetDirectory({ directory: join(directory, 'assets') });
  return {
    stores: () => ({ ...encryptedStores(inner, keys), audited: inner.audited }),
    assets: encryptedAssets(files, keys),
    keys,
    files,
    damage: (proofId) => rewrite(proofKey(proofId), flipped),
    plantKey: (proofId) => keys.obtain(proofId),
    unconfirm: ({ proofId }) =>
      edit(proofKey(proofId), (row) => ({ ...(row as ErasedProof), confirmedAt: undefined })),
    addUnits: (partnerId, month, units) =>
      edit(monthKey(partnerId, month), (row) => ({
        ...(row as SourceRow),
        used: (row as SourceRow).used + units,
      })),
    removeReminder: (reminder) => edit(reminderKey(reminder), () => undefined),
  };
});

const { TAKEMARK_S3_ENDPOINT: endpoint, TAKEMARK_S3_REGION: region = 'us-east-1' } = process.env;
const { TAKEMARK_S3_BUCKET: bucket = 'takemark-assets' } = process.env;
const { TAKEMARK_S3_ACCESS_KEY: accessKey = '', TAKEMARK_S3_SECRET_KEY: secretKey = '' } = process.env;

auditorContract(
  t,
  'Cassandra and a bucket',
  ADDRESSES === undefined || endpoint === undefined
    ? { skip: 'needs TAKEMARK_CASSANDRA and TAKEMARK_S3_ENDPOINT' }
    : {},
  async (t) => {
    const keyspace = `${connection.keyspace}_${randomUUID().slice(0, 4)}`;
    await migrate({ ...connection, keyspace });
    t.teardown(() => dropKeyspace(keyspace));
    const inner = await openStore({ keyspace });
    t.teardown(() => inner.close());
    const connected = {
      ...defined({ endpoint }),
      region,
      bucket,
      prefix: `audit-${randomUUID()}/`,
      credentials: { accessKey, secretKey },
    };
    const files = await openAssetBucket({ ...connected, spoolDirectory: join(t.testdir(), 'spool') });
    t.teardown(() => files.close());
    const keys = openBucketKeys(connected);
    t.teardown(() => keys.close());
    const raw = connectBucket(connected);
    t.teardown(() => raw.destroy());
    const stores = { ...encryptedStores(inner, keys), audited: inner.audited };
    const inKeyspace = <Value>(work: (client: Client) => Promise<Value>) => withClient(work, keyspace);
    const prepared = { prepare: true };
    return {
      stores: () => stores,
      assets: encryptedAssets(files, keys),
      keys,
      files,
      plantKey: (proofId) =>
        raw.send(
          new PutObjectCommand({
            Bucket: bucket,
            Key: `${connected.prefix}keys/${proofId}`,
            Body: Buffer.alloc(32, 1),
          }),
        ),
      damage: (proofId) =>
        inKeyspace(async (client) => {
          const { rows } = await client.execute(
            "SELECT body FROM record WHERE proof_id = ? AND part = ''",
            [proofId],
            prepared,
          );
          await client.execute(
            "UPDATE record SET body = ? WHERE proof_id = ? AND part = ''",
            [Buffer.from(flipped(rows[0]!['body'] as Buffer)), proofId],
            prepared,
          );
        }),
      unconfirm: ({ proofId, partnerId, erasedAt }) =>
        inKeyspace(async (client) => {
          const { rows } = await client.execute(
            "SELECT erase_op FROM record WHERE proof_id = ? AND part = ''",
            [proofId],
            prepared,
          );
          const mac = new RowCodes(authenticator).make('record', proofId, [
            partnerId,
            'erased',
            undefined,
            erasedAt,
            rows[0]!['erase_op'] as string,
            undefined,
            undefined,
          ]);
          await client.execute(
            "UPDATE record SET confirmed_at = null, confirm_op = null, mac = ? WHERE proof_id = ? AND part = ''",
            [mac, proofId],
            prepared,
          );
        }),
      addUnits: (partnerId, month, units) =>
        inKeyspace(async (client) => {
          const key = [partnerId, `month/${month}`];
          const { rows } = await client.execute(
            'SELECT used FROM charge WHERE partner_id = ? AND item = ?',
            key,
            prepared,
          );
          const used = (rows[0]!['used'] as number) + units;
          await client.execute(
            'UPDATE charge SET used = ? WHERE partner_id = ? AND item = ?',
            [used, ...key],
            prepared,
          );
        }),
      removeReminder: ({ kind, reviewId }) =>
        inKeyspace(async (client) => {
          const { rows } = await client.execute(
            'SELECT hour, shard, due_at, review_id, kind FROM due_notice',
          );
          const row = rows.find((each) => each['kind'] === kind && each['review_id'] === reviewId)!;
          await client.execute(
            'DELETE FROM due_notice WHERE hour = ? AND shard = ? AND due_at = ? AND review_id = ? AND kind = ?',
            ['hour', 'shard', 'due_at', 'review_id', 'kind'].map((column) => row[column] as unknown),
            prepared,
          );
        }),
    };
  },
);

t.test('a service reports findings in its metrics and its log', async (t) => {
  const directory = t.testdir();
  const settings = { TAKEMARK_DATA_DIR: directory, TAKEMARK_AUDIT_RATE: '1000' };
  const clock = new TestClock();
  const before = await TestService.start(settings, clock);
  const { partnerId } = await before.partner();
  const [whole, lost] = [await before.issue(partnerId, wav(1000)), await before.issue(partnerId, wav(1000))];
  await before.stop({ keep: true });
  await (await openAssetDirectory({ directory: join(directory, 'assets') })).delete(lost.proofId);
  clock.advance(LATER_MS / 1000);

  const service = await TestService.start(settings, clock);
  t.teardown(() => service.stop({ keep: true }));
  const { operator } = service.service.operations;
  const found: string[] = [];
  for (let from: string | undefined, isFirst = true; isFirst || from !== undefined; isFirst = false) {
    const step = await operator.auditStores({ from, limit: 100 });
    found.push(...step.findings.map(({ kind, subject }) => `${kind} ${subject}`));
    from = step.next;
  }
  t.strictSame(found, [`object_missing ${lost.proofId}`], `not of ${whole.proofId}`);
  let metrics = '';
  while (!metrics.includes('takemark_audit_pass_ended_seconds{')) {
    await delay(500);
    metrics = (await call(service.operatorUrl, 'GET', '/metrics')).body.toString();
  }
  t.match(metrics, /^takemark_audit_step_ended_seconds\{pass="any"\} \d/m);
  t.strictSame(
    [...metrics.matchAll(/^takemark_audit_findings\{kind="(\w+)"\} (\d+)$/gm)]
      .filter(([, , count]) => count !== '0')
      .map(([, kind, count]) => [kind, count]),
    [['object_missing', '1']],
  );
  const lines = service.log.filter((line) => line.includes('"audit_finding"'));
  t.match(
    lines.map((line) => JSON.parse(line) as object),
    [{ level: 40, event: 'audit_finding', kind: 'object_missing', count: 1 }],
  );
  t.notOk(lines.join('').includes(lost.proofId), 'no id in the log');
});
