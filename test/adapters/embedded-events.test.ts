import { join } from 'node:path';
import t from 'tap';
import { RecordCodec } from '../../src/core/codec/record.js';
import { Database } from '../../src/service/adapters/embedded/database.js';
import { openEmbeddedStore, STORE_FORMAT } from '../../src/service/adapters/embedded/store.js';
import { replayErasures } from '../../src/service/background/replay-erasures.js';
import { remindersOf, reviewCreated, type UsageEvent } from '../../src/service/domain/events.js';
import { createUsageMeter } from '../../src/service/operations/usage/usage-meter.js';
import type { AssetStore } from '../../src/service/ports/assets.js';
import type { ErasureJournal } from '../../src/service/ports/journals.js';
import type { Stores } from '../../src/service/ports/stores.js';
import { authenticator, formerRecord } from '../fixtures/authentication.js';
import { audit, issuedProof, NOW, nextBatch, reviewCase, usageCharge } from '../store-contract/samples.js';
import { AUDIT_KEY, fileHeads, withLevel } from './embedded-process.js';

function openStore(directory: string): Promise<Stores> {
  return openEmbeddedStore({
    directory,
    authenticator,
    audit: { key: AUDIT_KEY, heads: fileHeads(directory) },
  });
}

void t.test('events and reminders outlive the process', async (t) => {
  const directory = join(t.testdir(), 'store');
  let stores = await openStore(directory);
  const reopen = async () => {
    await stores.close();
    stores = await openStore(directory);
  };
  const reminders = remindersOf(reviewCreated(reviewCase('rev_1', 'ptr_1', 'prf_1')));
  await stores.scheduleReminders(reminders, NOW);
  for (let i = 0; i < 3; i += 1) await stores.charge(usageCharge('ptr_1', `call-${i}`));
  await stores.meter([{ partnerId: 'ptr_1', operation: 'read_record', count: 1 }], NOW, nextBatch());
  const waiting = await stores.waitingEvents(10);
  await reopen();
  t.strictSame(await stores.waitingEvents(10), waiting);
  t.equal(stores.countWaiting(), 4);
  t.strictSame(await stores.dueReminders(reminders[1]!.dueAt, 10), reminders);
  await stores.markPublished(waiting.slice(0, 1));
  await stores.meter([{ partnerId: 'ptr_1', operation: 'read_record', count: 1 }], NOW, nextBatch());
  const later = await stores.waitingEvents(10);
  t.strictSame(later.slice(0, 3), waiting.slice(1), 'new events follow');
  t.not(later[3]!.event.id, waiting[3]!.event.id, 'and counts as another process');
  await stores.markPublished(later);
  await reopen();
  t.equal(stores.countWaiting(), 0);
  t.strictSame(await stores.waitingEvents(10), []);
  t.strictSame(
    await stores.getDailyUsage('ptr_1', '2026-03-31', '2026-03-31'),
    [{ day: '2026-03-31', operations: { verify: 3, read_record: 2 } }],
    'not folded yet',
  );
  await stores.aggregateUsage(
    [...waiting, ...later].map(({ event }) => event).filter((event) => event.topic === 'usage'),
  );
  t.strictSame(await stores.getDailyUsage('ptr_1', '2026-03-31', '2026-03-31'), [
    { day: '2026-03-31', operations: { verify: 3, read_record: 2 } },
  ]);
  await stores.close();
});

void t.test('a start replays the erasures of the journal, however many events wait', async (t) => {
  const directory = join(t.testdir(), 'store');
  const open = () =>
    openEmbeddedStore({
      directory,
      authenticator,
      audit: { key: AUDIT_KEY, heads: fileHeads(directory) },
      outboxLimit: 1,
    });
  let stores = await open();
  const proof = issuedProof('prf_1', 'ptr_1');
  await stores.reserveProof(proof.proofId, proof.partnerId, NOW);
  await stores.issueProof(proof, audit(proof.partnerId, 'proof_issued', proof.proofId));
  await stores.charge(usageCharge('ptr_1', 'a'));
  await stores.close();
  stores = await open();
  t.teardown(() => stores.close());
  t.equal(stores.countWaiting(), 1);
  const deleted: string[] = [];
  const assets = { delete: async (proofId: string) => deleted.push(proofId) > 0 } as unknown as AssetStore;
  const journal = {
    read: async function* () {
      yield { proofId: 'prf_1', partnerId: 'ptr_1', erasedAt: NOW };
    },
  } as unknown as ErasureJournal;
  t.equal(await replayErasures({ stores, assets, journal, observer: { fault: () => undefined } }), 1);
  t.strictSame(deleted, ['prf_1']);
  t.match(await stores.getProof('prf_1'), { state: 'erased' });
  t.equal(stores.countWaiting(), 2);
});

void t.test('a store of the first format keeps its counts', async (t) => {
  const directory = join(t.testdir(), 'store');
  await (await openStore(directory)).close();
  const codec = new RecordCodec(authenticator);
  await withLevel(directory, async (level) => {
    const put = (key: string, row: unknown) => level.put(key, formerRecord(key, row));
    await put('meta/format', { format: 1 });
    await put('usage-month/ptr_1/2026-03', { used: 3 });
    await put('usage-day/ptr_1/2026-03-31', { operations: { verify: 2, identify: 1, list_proofs: 5 } });
    await put('proof/prf_1', { state: 'erased', proofId: 'prf_1', partnerId: 'ptr_1', erasedAt: NOW });
  });
  const stores = await openEmbeddedStore({
    directory,
    authenticator,
    adoptFormerRows: true,
    audit: { key: AUDIT_KEY, heads: fileHeads(directory) },
  });
  const verified = async () =>
    (await stores.getDailyUsage('ptr_1', '2026-03-31', '2026-03-31'))[0]?.operations;
  t.strictSame(await verified(), { verify: 2, identify: 1, list_proofs: 5 });
  t.strictSame(await stores.charge(usageCharge('ptr_1', 'a')), { outcome: 'charged', used: 4 });
  const [waiting] = await stores.waitingEvents(10);
  t.match(waiting?.event, { data: { from: 3, to: 4 } });
  t.strictSame(await verified(), { verify: 3, identify: 1, list_proofs: 5 });
  await stores.aggregateUsage([waiting!.event as UsageEvent]);
  t.strictSame(await verified(), { verify: 3, identify: 1, list_proofs: 5 });
  t.equal(await stores.confirmErasure('prf_1', NOW + 1), 'confirmed');
  await stores.close();
  await withLevel(directory, async (level) => {
    t.strictSame(
      codec.decode('meta/format', (await level.get('meta/format'))!),
      { format: STORE_FORMAT },
      'which older versions refuse from now on',
    );
  });
});

void t.test('confirming an erasure removes a review that is beside its tombstone', async (t) => {
  const directory = join(t.testdir(), 'store');
  const review = reviewCase('rev_1', 'ptr_1', 'prf_1');
  let stores = await openStore(directory);
  await stores.reserveProof('prf_1', 'ptr_1', NOW);
  await stores.issueProof(issuedProof('prf_1', 'ptr_1'), audit('ptr_1', 'proof_issued', 'prf_1'));
  await stores.createReview(review, review.createdAt, audit('ptr_1', 'review_created', 'rev_1'));
  await stores.close();
  const rows: [string, Uint8Array][] = [];
  await withLevel(directory, async (level) => {
    for (const [key, row] of await level.iterator().all())
      if (/^(?:review|proof-review|partner-review|expiry\/\d+\/review)/.test(key)) rows.push([key, row]);
  });
  stores = await openStore(directory);
  await stores.eraseProof('prf_1', 'ptr_1', NOW, audit('ptr_1', 'proof_erased', 'prf_1'));
  t.equal(await stores.confirmErasure('prf_1', NOW), 'confirmed');
  await stores.close();
  await withLevel(directory, async (level) => {
    for (const [key, row] of rows) await level.put(key, row);
  });
  stores = await openStore(directory);
  t.equal(await stores.getReview('ptr_1', 'rev_1', NOW), undefined, 'the tombstone hides it');
  t.equal(await stores.confirmErasure('prf_1', NOW), 'already_confirmed');
  await stores.close();
  await withLevel(directory, async (level) => {
    const left = new Set(await level.keys().all());
    t.strictSame(
      rows.map(([key]) => key).filter((key) => left.has(key)),
      [],
      `of ${rows.length} rows`,
    );
  });
});

void t.test('an erasure with many reviews goes in steps, and goes on after a process ended', async (t) => {
  const directory = join(t.testdir(), 'store');
  const reviewCount = 1000;
  const batches: number[] = [];
  const open = () =>
    openEmbeddedStore({
      directory,
      authenticator,
      audit: { key: AUDIT_KEY, heads: fileHeads(directory) },
      onCommit: ({ rows }) => batches.push(rows),
    });
  let stores = await open();
  for (const proofId of ['prf_1', 'prf_2']) {
    await stores.reserveProof(proofId, 'ptr_1', NOW);
    await stores.issueProof(issuedProof(proofId, 'ptr_1'), audit('ptr_1', 'proof_issued', proofId));
  }
  const make = (i: number, proofId = 'prf_1') =>
    reviewCase(`rev_${i}`, `ptr_${i % 7}`, proofId, {
      bindings: { creatorId: `c${i}`, accountId: 'a', submissionId: 's', trackId: 't' },
    });
  await Promise.all(
    Array.from({ length: reviewCount }, async (_, i) => {
      const review = make(i);
      await stores.createReview(
        review,
        review.createdAt,
        audit(review.partnerId, 'review_created', review.reviewId),
      );
      await stores.scheduleReminders(remindersOf(reviewCreated(review)), NOW);
    }),
  );
  const kept = make(reviewCount, 'prf_2');
  await stores.createReview(kept, kept.createdAt, audit(kept.partnerId, 'review_created', kept.reviewId));
  const rowsOf = async () => {
    let found: readonly string[] = [];
    await stores.close();
    await withLevel(directory, async (level) => {
      found = (await level.keys().all()).filter((key) =>
        /^(?:review|proof-review|partner-review|expiry\/\d+\/review|notice|erasing)/.test(key),
      );
    });
    stores = await open();
    return found;
  };

  batches.length = 0;
  await stores.eraseProof('prf_1', 'ptr_1', NOW, audit('ptr_1', 'proof_erased', 'prf_1'));
  t.ok(
    Math.max(...batches) < 20,
    `one that is asked for writes ${Math.max(...batches)} rows, for any number of reviews`,
  );
  t.equal(await stores.getReview('ptr_1', 'rev_1', NOW), undefined, 'and nothing is there any more');
  const one = make(1, 'prf_2');
  t.strictSame(
    await stores.createReview(
      { ...one, reviewId: 'rev_bounded' },
      one.createdAt,
      audit(one.partnerId, 'review_created', 'rev_bounded'),
      { bounds: { perProof: 1, perPartner: 1 } },
    ),
    { outcome: 'created' },
    'nor does it count',
  );
  const before = await rowsOf();
  t.ok(before.length > 5 * reviewCount);

  // Other calls run between the steps.
  const confirming = stores.confirmErasure('prf_1', NOW).catch((error: unknown) => error);
  let others = 0;
  for (; others < 3; others += 1) await stores.charge(usageCharge('ptr_1', `between-${others}`));
  await stores.close();
  t.match(await confirming, { code: 'unavailable' }, 'a stop cuts it short');
  stores = await open();
  const half = await rowsOf();
  t.ok(
    half.length < before.length && half.some((key) => key === 'erasing/prf_1'),
    `${half.length} of ${before.length} rows are left`,
  );
  t.match(await stores.getProof('prf_1'), { state: 'erased' });
  batches.length = 0;
  t.equal(await stores.confirmErasure('prf_1', NOW + 1), 'confirmed');
  t.ok(
    batches.length > 4 && Math.max(...batches) < 2000,
    `${batches.length} batches, the largest of ${Math.max(...batches)} rows`,
  );
  const left = await rowsOf();
  t.strictSame(
    left.filter((key) => !key.includes('rev_bounded') && !key.includes(`rev_${reviewCount}`)),
    [
      'review-count/ptr_1',
      'review-count/ptr_1/prf_2',
      `review-count/${kept.partnerId}`,
      `review-count/${kept.partnerId}/prf_2`,
      `review-open/prf_2/ptr_1/c1/a/s/t`,
      `review-open/prf_2/${kept.partnerId}/c${reviewCount}/a/s/t`,
    ].toSorted(),
    'only the reviews of other proofs',
  );
  await stores.close();
});

void t.test('a store of the second format gets its indexes of reviews', async (t) => {
  const directory = join(t.testdir(), 'store');
  let stores = await openStore(directory);
  await stores.reserveProof('prf_1', 'ptr_1', NOW);
  await stores.issueProof(issuedProof('prf_1', 'ptr_1'), audit('ptr_1', 'proof_issued', 'prf_1'));
  const make = (i: number) =>
    reviewCase(`rev_${i}`, `ptr_${i % 2}`, 'prf_1', {
      createdAt: NOW + i,
      bindings: { creatorId: `c${i}`, accountId: 'a', submissionId: 's', trackId: 't' },
    });
  for (let i = 0; i < 300; i += 1)
    await stores.createReview(make(i), NOW + i, audit('ptr_1', 'review_created', `rev_${i}`));
  await stores.close();
  const codec = new RecordCodec(authenticator);
  const rows = async () => {
    const found = new Map<string, unknown>();
    await withLevel(directory, async (level) => {
      for (const [key, row] of await level.iterator().all()) found.set(key, codec.decode(key, row));
    });
    return found;
  };
  const today = await rows();
  await withLevel(directory, async (level) => {
    const put = (key: string, row: unknown) => level.put(key, formerRecord(key, row));
    for (const key of today.keys())
      if (/^(?:proof-review|partner-review|review-count)\//.test(key)) await level.del(key);
    for (let i = 0; i < 300; i += 1) {
      await put(`review/rev_${i}`, { review: make(i), number: i });
      await put(`proof-review/prf_1/${String(i).padStart(12, '0')}`, { reviewId: `rev_${i}` });
    }
    await put('review-count/prf_1', { count: 300 });
    await put('meta/format', { format: 2 });
  });
  await (
    await openEmbeddedStore({
      directory,
      authenticator,
      adoptFormerRows: true,
      audit: { key: AUDIT_KEY, heads: fileHeads(directory) },
    })
  ).close();
  const again = await rows();
  t.strictSame([...again.keys()], [...today.keys()]);
  for (const key of today.keys())
    if (key.startsWith('review-count/')) t.strictSame(again.get(key), today.get(key), key);
  t.strictSame(again.get('review-count/ptr_0/prf_1'), { count: 150 });
  stores = await openStore(directory);
  t.strictSame(
    await stores.createReview(make(300), NOW + 300, audit('ptr_0', 'review_created', 'rev_300'), {
      bounds: { perProof: 150, perPartner: 1000 },
    }),
    { outcome: 'full', until: make(0).expiresAt },
  );
  await stores.close();
});

t.test('free calls whose write failed and was kept all the same are counted once', async (t) => {
  const stores = await openStore(join(t.testdir(), 'store'));
  const { write } = Database.prototype;
  t.teardown(() => void (Database.prototype.write = write));
  Database.prototype.write = async function (...given) {
    await write.apply(this, given);
    Database.prototype.write = write;
    throw new Error('the disk did not say');
  };
  const meter = createUsageMeter(stores, { now: () => NOW * 1000 });
  for (let i = 0; i < 5; i += 1) meter.count('ptr_1', 'list_proofs');
  await t.rejects(meter.flush());
  meter.count('ptr_1', 'list_proofs');
  await meter.flush();
  t.strictSame(await stores.getDailyUsage('ptr_1', '2026-03-31', '2026-03-31'), [
    { day: '2026-03-31', operations: { list_proofs: 6 } },
  ]);
  await stores.close();
});

/** Flips a bit in a row of a closed store. */
const damageRow = (directory: string, key: string): Promise<void> =>
  withLevel(directory, async (level) =>
    level.put(
      key,
      Uint8Array.from((await level.get(key))!, (byte, i) => (i === 30 ? byte ^ 1 : byte)),
    ),
  );

t.test('a damaged day of one partner holds up no count of another, and fills no outbox', async (t) => {
  const directory = join(t.testdir(), 'store');
  let stores = await openStore(directory);
  let meter = createUsageMeter(stores, { now: () => NOW * 1000 });
  meter.count('ptr_2', 'list_proofs');
  await meter.flush();
  await stores.markPublished(await stores.waitingEvents(10));
  await stores.close();
  await damageRow(directory, 'usage-day/ptr_2/2026-03-31');
  stores = await openStore(directory);
  meter = createUsageMeter(stores, { now: () => NOW * 1000 });
  for (const count of [1, 2, 3]) {
    for (const partnerId of ['ptr_1', 'ptr_2', 'ptr_3']) meter.count(partnerId, 'list_proofs');
    await t.rejects(meter.flush(), { code: 'internal', reason: 'record_damaged' }, 'the damage is reported');
    const waiting = await stores.waitingEvents(100);
    t.equal(stores.countWaiting('usage'), waiting.length, 'every counted event waits');
    t.strictSame(
      waiting.map(({ event }) => event.key),
      Array.from({ length: count }, () => ['ptr_1', 'ptr_3']).flat(),
    );
    for (const partnerId of ['ptr_1', 'ptr_3'])
      t.strictSame(await stores.getDailyUsage(partnerId, '2026-03-31', '2026-03-31'), [
        { day: '2026-03-31', operations: { list_proofs: count } },
      ]);
  }
  meter.count('ptr_1', 'list_proofs');
  await meter.flush();
  await stores.close();
});

t.test('a damaged time of last use of one key stops that of no other', async (t) => {
  const directory = join(t.testdir(), 'store');
  let stores = await openStore(directory);
  const use = (keyId: string, at: number) => ({ partnerId: 'ptr_1', keyId, at });
  await stores.touchKeys([use('key_1', NOW)]);
  await stores.close();
  await damageRow(directory, 'key-use/ptr_1/key_1');
  stores = await openStore(directory);
  await stores.touchKeys([use('key_1', NOW + 1), use('key_2', NOW + 2)]);
  t.strictSame(Object.fromEntries(await stores.getKeyUses('ptr_1', ['key_1', 'key_2'])), {
    key_1: NOW + 1,
    key_2: NOW + 2,
  });
  await stores.close();
});
