/** Tests erasures while the journal, the keys or the files are unavailable. */
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import t, { type Test } from 'tap';
import { DomainError } from '../../src/core/domain/errors.js';
import { openAssetDirectory } from '../../src/service/adapters/assets/directory.js';
import { openEmbeddedStore } from '../../src/service/adapters/embedded/store.js';
import { encryptedAssets } from '../../src/service/adapters/encryption/encrypted-assets.js';
import { openKeyDirectory } from '../../src/service/adapters/encryption/key-directory.js';
import { finishErasure } from '../../src/service/consumers/erasure.js';
import type { Caller } from '../../src/service/operations/caller.js';
import { eraseProof } from '../../src/service/operations/proofs/erase-proof.js';
import { readAsset, readOwnAsset } from '../../src/service/operations/proofs/read-asset.js';
import type { ErasureJournal } from '../../src/service/ports/journals.js';
import { AUDIT_KEY, fileHeads } from '../adapters/embedded-process.js';
import { authenticator } from '../fixtures/authentication.js';
import { audit, issuedProof, NOW, partner } from '../store-contract/samples.js';
import { stillClock } from './doubles.js';
import { notFound } from './restarted-service.js';

const PLACES = ['journal', 'keys', 'files'] as const;
type Place = (typeof PLACES)[number];
type Entry = Parameters<ErasureJournal['record']>[0];

const caller = { partnerId: 'ptr_1', keyId: 'key_1' } as Caller;
const unavailable = { code: 'unavailable', reason: 'store_unavailable' };

async function setUp(t: Test, outboxLimit?: number) {
  const directory = join(t.testdir(), 'store');
  const stores = await openEmbeddedStore({
    directory,
    audit: { key: AUDIT_KEY, heads: fileHeads(directory) },
    authenticator,
    ...(outboxLimit !== undefined && { outboxLimit }),
  });
  t.teardown(() => stores.close());
  await stores.createPartner(partner('ptr_1'), audit('ptr_1', 'partner_created', 'ptr_1'));
  let isAway: Place | undefined;
  const steps: Place[] = [];
  const streams: (Readable | undefined)[] = [];
  const reach = (place: Place): void => {
    if (isAway === place) throw new DomainError('unavailable', 'away', { reason: 'store_unavailable' });
    steps.push(place);
  };
  const keys = await openKeyDirectory({ directory: `${directory}-keys` });
  const files = await openAssetDirectory({ directory: `${directory}-assets` });
  const assets = encryptedAssets(
    {
      ...files,
      stage: (...args) => files.stage(...args),
      async read(...args) {
        const stream = await files.read(...args);
        streams.push(stream);
        return stream;
      },
      size: (...args) => files.size(...args),
      async delete(proofId) {
        reach('files');
        return files.delete(proofId);
      },
    },
    {
      ...keys,
      async destroy(proofId) {
        reach('keys');
        return keys.destroy(proofId);
      },
    },
  );
  const entries: Entry[] = [];
  const journal: ErasureJournal = {
    async record(entry) {
      reach('journal');
      entries.push(entry);
    },
    read: async function* () {},
    close: async () => undefined,
  };
  const clock = stillClock(NOW * 1000);
  const deps = { stores, assets, journal, clock };
  return {
    stores,
    assets,
    keys,
    clock,
    steps,
    streams,
    entries,
    away: (place?: Place) => void (isAway = place),
    async issue(proofId: string) {
      await stores.reserveProof(proofId, 'ptr_1', NOW);
      const stage = await assets.stage(proofId);
      await stage.append(Buffer.from('audio'));
      await stage.publish();
      await stores.issueProof(issuedProof(proofId, 'ptr_1'), audit('ptr_1', 'proof_issued', proofId));
    },
    erase: (proofId: string) => eraseProof(deps, caller, { proofId }),
    read: (proofId: string) => readAsset(deps, proofId, 'audio'),
    readOwn: (proofId: string) => readOwnAsset(deps, caller, proofId, 'audio'),
    consume: (proofId: string) => finishErasure(deps, { proofId, partnerId: 'ptr_1', erasedAt: NOW }),
    /** Returns everything that an erasure must delete. */
    left: async (proofId: string) => ({
      key: (await keys.read(proofId)) !== undefined,
      file: (await files.size(proofId)) !== undefined,
    }),
    events: async () =>
      (await stores.waitingEvents(100, () => false)).filter(({ event }) => event.topic === 'erasure').length,
  };
}

for (const place of PLACES) {
  t.test(`${place} away: the tombstone holds, and a repeat completes`, async (t) => {
    const house = await setUp(t);
    const proofId = 'prf_1';
    await house.issue(proofId);
    house.away(place);
    await t.rejects(house.erase(proofId), unavailable);
    t.match(await house.stores.getProof(proofId), { state: 'erased', erasedAt: NOW });
    t.equal(await house.events(), 1);
    house.clock.advanceMs(5000);
    await t.rejects(house.erase(proofId), unavailable, 'nor is a repeat called done');
    await t.rejects(house.consume(proofId), unavailable, 'nor does the consumer confirm it');
    t.notOk('confirmedAt' in (await house.stores.getProof(proofId))!);

    house.away();
    house.steps.length = 0;
    t.strictSame(await house.erase(proofId), { proofId, outcome: 'already_erased', erasedAt: NOW });
    t.strictSame(house.steps, PLACES, 'all of it, the journal first');
    t.strictSame(house.entries.at(-1), { proofId, partnerId: 'ptr_1', erasedAt: NOW });
    t.strictSame(await house.left(proofId), { key: false, file: false });
    t.equal(await house.events(), 1);
  });

  t.test(`${place} away: the consumer completes an erasure that is not repeated`, async (t) => {
    const house = await setUp(t);
    const proofId = 'prf_1';
    await house.issue(proofId);
    house.away(place);
    await t.rejects(house.erase(proofId), unavailable);
    house.away();
    house.steps.length = 0;
    await house.consume(proofId);
    t.strictSame(house.steps, PLACES, 'all of it, the journal first');
    t.strictSame(house.entries.at(-1), { proofId, partnerId: 'ptr_1', erasedAt: NOW });
    t.strictSame(await house.left(proofId), { key: false, file: false });
    t.match(await house.stores.getProof(proofId), { confirmedAt: NOW });

    const before = house.entries.length;
    t.equal((await house.erase(proofId)).outcome, 'already_erased');
    await house.consume(proofId);
    t.equal(house.entries.length, before, 'the journal grows by no repeat of what is confirmed');
  });
}

t.test('an erasure that the store refuses is in no journal, and takes nothing away', async (t) => {
  const house = await setUp(t, 1);
  for (const proofId of ['prf_1', 'prf_2']) await house.issue(proofId);
  t.equal((await house.erase('prf_1')).outcome, 'erased');
  await t.rejects(house.erase('prf_2'), { code: 'unavailable', reason: 'outbox_full' });
  t.match(await house.stores.getProof('prf_2'), { state: 'issued' });
  t.strictSame(await house.left('prf_2'), { key: true, file: true });
  t.strictSame(
    house.entries.map(({ proofId }) => proofId),
    ['prf_1'],
  );
});

t.test('a read that an erasure overtakes is of an erased proof, also while the file is there', async (t) => {
  const house = await setUp(t);
  const proofId = 'prf_1';
  await house.issue(proofId);
  const found = [await house.readOwn(proofId), await house.read(proofId)];
  for (const asset of found)
    t.equal(
      Buffer.concat(await (await asset.read()).toArray()).toString(),
      'audio',
      'while the proof exists',
    );
  house.streams.length = 0;
  house.away('files');
  await t.rejects(house.erase(proofId), unavailable);
  t.strictSame(await house.left(proofId), { key: false, file: true });
  for (const asset of found) {
    await t.rejects(asset.read(), notFound);
    await t.rejects(asset.read({ start: 0, end: 3 }), notFound, 'a range');
  }
  t.equal(house.streams.length, 4);
  for (const stream of house.streams) t.ok(stream?.destroyed, 'the file is not left open');
});
