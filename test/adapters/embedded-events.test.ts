import { join } from 'node:path';
import t from 'tap';
import { openEmbeddedStore, STORE_FORMAT } from '../../src/adapters/embedded/store.js';
import { RecordCodec } from '../../src/codec/record.js';
import { noticesOf, reviewCreated, type UsageEvent } from '../../src/domain/events.js';
import { replayErasures } from '../../src/operations/replay-erasures.js';
import type { AssetStore } from '../../src/ports/assets.js';
import type { ErasureJournal } from '../../src/ports/journals.js';
import type { Stores } from '../../src/ports/stores.js';
import { audit, issuedProof, NOW, reviewCase, usageCharge } from '../store-contract/samples.js';
import { AUDIT_KEY, fileHeads, withLevel } from './embedded-process.js';

function openStore(directory: string): Promise<Stores> {
  return openEmbeddedStore({ directory, audit: { key: AUDIT_KEY, heads: fileHeads(directory) } });
}

void t.test('events and notices outlive the process', async (t) => {
  const directory = join(t.testdir(), 'store');
  let stores = await openStore(directory);
  const reopen = async () => {
    await stores.close();
    stores = await openStore(directory);
  };
  const notices = noticesOf(reviewCreated(reviewCase('rev_1', 'ptr_1', 'prf_1')));
  await stores.scheduleNotices(notices, NOW);
  for (let i = 0; i < 3; i++) await stores.charge(usageCharge('ptr_1', `call-${i}`));
  await stores.meter([{ partnerId: 'ptr_1', operation: 'read_record', count: 1 }], NOW);
  const waiting = await stores.waitingEvents(10);
  await reopen();
  t.strictSame(await stores.waitingEvents(10), waiting);
  t.equal(stores.countWaiting(), 4);
  t.strictSame(await stores.dueNotices(notices[1]!.dueAt, 10), notices);
  await stores.markPublished(waiting.slice(0, 1));
  await stores.meter([{ partnerId: 'ptr_1', operation: 'read_record', count: 1 }], NOW);
  const later = await stores.waitingEvents(10);
  t.strictSame(later.slice(0, 3), waiting.slice(1), 'what is new comes behind');
  t.not(later[3]!.event.id, waiting[3]!.event.id, 'and counts as another process');
  await stores.markPublished(later);
  await reopen();
  t.equal(stores.countWaiting(), 0);
  t.strictSame(await stores.waitingEvents(10), []);
  t.strictSame(await stores.getDailyUsage('ptr_1', '2026-03-31', '2026-03-31'), [{ day: '2026-03-31', operations: { verify: 3, read_record: 2 } }], 'on their way to whoever folds');
  await stores.foldUsage([...waiting, ...later].map(({ event }) => event).filter((event) => event.topic === 'usage'));
  t.strictSame(await stores.getDailyUsage('ptr_1', '2026-03-31', '2026-03-31'), [{ day: '2026-03-31', operations: { verify: 3, read_record: 2 } }]);
  await stores.close();
});

void t.test('a start keeps what the journal has promised, however much waits', async (t) => {
  const directory = join(t.testdir(), 'store');
  const open = () => openEmbeddedStore({ directory, audit: { key: AUDIT_KEY, heads: fileHeads(directory) }, outboxLimit: 1 });
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
  const journal = { read: async function* () { yield { proofId: 'prf_1', partnerId: 'ptr_1', erasedAt: NOW }; } } as unknown as ErasureJournal;
  t.equal(await replayErasures({ stores, assets, journal }), 1);
  t.strictSame(deleted, ['prf_1']);
  t.match(await stores.getProof('prf_1'), { state: 'erased' });
  t.equal(stores.countWaiting(), 2);
});

void t.test('a store of the first format keeps its counts', async (t) => {
  const directory = join(t.testdir(), 'store');
  await (await openStore(directory)).close();
  const codec = new RecordCodec();
  await withLevel(directory, async (level) => {
    const put = (key: string, row: unknown) => level.put(key, codec.encode(key, 1, row));
    await put('meta/format', { format: 1 });
    await put('usage-month/ptr_1/2026-03', { used: 3 });
    await put('usage-day/ptr_1/2026-03-31', { operations: { verify: 2, identify: 1, list_proofs: 5 } });
    await put('proof/prf_1', { state: 'erased', proofId: 'prf_1', partnerId: 'ptr_1', erasedAt: NOW });
  });
  const stores = await openStore(directory);
  const verified = async () => (await stores.getDailyUsage('ptr_1', '2026-03-31', '2026-03-31'))[0]?.operations;
  t.strictSame(await verified(), { verify: 2, identify: 1, list_proofs: 5 });
  t.strictSame(await stores.charge(usageCharge('ptr_1', 'a')), { outcome: 'charged', used: 4 });
  const [waiting] = await stores.waitingEvents(10);
  t.match(waiting?.event, { data: { from: 3, to: 4 } });
  t.strictSame(await verified(), { verify: 3, identify: 1, list_proofs: 5 });
  await stores.foldUsage([waiting!.event as UsageEvent]);
  t.strictSame(await verified(), { verify: 3, identify: 1, list_proofs: 5 });
  t.equal(await stores.confirmErasure('prf_1', NOW + 1), 'confirmed');
  await stores.close();
  await withLevel(directory, async (level) => {
    t.strictSame(codec.decode('meta/format', (await level.get('meta/format'))!).value, { format: STORE_FORMAT }, 'which older versions refuse from now on');
  });
});

void t.test('confirming an erasure removes a case that a tombstone has beside it', async (t) => {
  const directory = join(t.testdir(), 'store');
  const review = reviewCase('rev_1', 'ptr_1', 'prf_1');
  let stores = await openStore(directory);
  await stores.reserveProof('prf_1', 'ptr_1', NOW);
  await stores.issueProof(issuedProof('prf_1', 'ptr_1'), audit('ptr_1', 'proof_issued', 'prf_1'));
  await stores.createReview(review, audit('ptr_1', 'review_created', 'rev_1'));
  await stores.close();
  const rows: [string, Uint8Array][] = [];
  await withLevel(directory, async (level) => {
    for (const [key, row] of await level.iterator().all()) if (/^(?:review|proof-review|expiry\/\d+\/review)/.test(key)) rows.push([key, row]);
  });
  stores = await openStore(directory);
  await stores.eraseProof('prf_1', 'ptr_1', NOW, audit('ptr_1', 'proof_erased', 'prf_1'));
  await stores.close();
  await withLevel(directory, async (level) => {
    for (const [key, row] of rows) await level.put(key, row);
  });
  stores = await openStore(directory);
  t.strictSame(await stores.getReview('ptr_1', 'rev_1', NOW), review, 'it is back');
  t.equal(await stores.confirmErasure('prf_1', NOW), 'confirmed');
  t.equal(await stores.getReview('ptr_1', 'rev_1', NOW), undefined);
  await stores.close();
  await withLevel(directory, async (level) => {
    const left = new Set(await level.keys().all());
    t.strictSame(rows.map(([key]) => key).filter((key) => left.has(key)), [], `of ${rows.length} rows`);
  });
});
