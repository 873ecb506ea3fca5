import type { Test } from 'tap';
import { FACTS_LIFE_SECONDS, type UploadSlot } from '../../src/service/domain/upload.js';
import { NOW, uploadFacts, uploadSlot, usageCharge } from './samples.js';
import type { Contract } from './suite.js';

export async function uploadContract(t: Test, { opened, id }: Contract): Promise<void> {
  await t.test(
    'a slot and its facts are there until their time has come by the caller’s clock',
    async (t) => {
      const { stores } = opened();
      const slot = uploadSlot(id('upl', 1));
      t.equal(await stores.getUpload(slot.uploadId, NOW), undefined);
      await stores.createSlot(slot);
      t.strictSame(
        await stores.getUpload(slot.uploadId, slot.expiresAt - 1),
        { slot },
        'one second before its end it is there',
      );
      t.equal(await stores.getUpload(slot.uploadId, slot.expiresAt), undefined, 'at its end it is not');

      const facts = uploadFacts(slot, 'first');
      t.equal(await stores.putFacts(facts), 'stored');
      t.equal(await stores.putFacts(uploadFacts(slot, 'second')), 'already_used');
      t.strictSame(
        await stores.getUpload(slot.uploadId, slot.expiresAt),
        { slot, facts },
        'facts outlive the slot',
      );
      t.strictSame(await stores.getUpload(slot.uploadId, facts.expiresAt - 1), { slot, facts });
      t.equal(await stores.getUpload(slot.uploadId, facts.expiresAt), undefined);

      const late = uploadSlot(id('upl', 2));
      await stores.createSlot(late);
      t.equal(
        await stores.putFacts(uploadFacts(late, 'late', late.expiresAt + 300)),
        'stored',
        'a post that began in time may end late',
      );
      t.ok((await stores.getUpload(late.uploadId, late.expiresAt + 301))?.facts);
      await t.rejects(stores.putFacts(uploadFacts(uploadSlot(id('upl', 'never')), 'x')), {
        code: 'not_found',
      });
    },
  );

  await t.test(
    'the slot of a large file keeps its length, and its row as long as the post may last',
    async (t) => {
      const { stores } = opened();
      const bytes = 2 ** 31;
      const slot: UploadSlot = {
        ...uploadSlot(id('upl', 'large')),
        purpose: 'verify_large',
        contentLength: bytes,
      };
      await stores.createSlot(slot);
      t.strictSame(await stores.getUpload(slot.uploadId, NOW), { slot });
      // 2 GiB at the least rate of 64 KiB a second.
      const last = slot.expiresAt + bytes / 65_536;
      while ((await stores.collectExpired(last, 7)) === 7);
      const measured = uploadFacts(slot, 'large', last);
      const facts = { ...measured, measurement: { ...measured.measurement, bytes } };
      t.equal(await stores.putFacts(facts), 'stored');
      t.strictSame(await stores.getUpload(slot.uploadId, last), { slot, facts });
    },
  );

  await t.test('of 100 parallel facts of one slot one is stored', async (t) => {
    const { stores } = opened();
    const slot = uploadSlot(id('upl', 'race'));
    await stores.createSlot(slot);
    const tries = Array.from({ length: 100 }, (_, i) => uploadFacts(slot, `try-${i}`));
    const outcomes = await Promise.all(tries.map((facts) => stores.putFacts(facts)));
    t.equal(outcomes.filter((outcome) => outcome === 'stored').length, 1);
    const winner = tries[outcomes.indexOf('stored')];
    t.strictSame(
      (await stores.getUpload(slot.uploadId, NOW))?.facts,
      winner,
      'and it is the one whose caller heard so',
    );
  });

  await t.test('collecting removes what has expired and nothing else', async (t) => {
    const { stores } = opened();
    const used = uploadSlot(id('upl', 'used'));
    const open = uploadSlot(id('upl', 'open'), NOW + 10 * FACTS_LIFE_SECONDS);
    await stores.createSlot(used);
    await stores.createSlot(open);
    const facts = uploadFacts(used, 'used');
    await stores.putFacts(facts);
    const charge = usageCharge(id('ptr', 'sweep'), 'once', { dedupeUntil: NOW + 20 * FACTS_LIFE_SECONDS });
    await stores.charge(charge);

    while ((await stores.collectExpired(facts.expiresAt - 1, 7)) === 7);
    t.strictSame(await stores.getUpload(used.uploadId, facts.expiresAt - 1), { slot: used, facts });
    while ((await stores.collectExpired(open.expiresAt - 1, 7)) === 7);
    t.equal(await stores.getUpload(used.uploadId, facts.expiresAt), undefined);
    t.strictSame(await stores.getUpload(open.uploadId, open.expiresAt - 1), { slot: open });
    t.equal((await stores.charge({ ...charge, at: charge.dedupeUntil - 1 })).outcome, 'already_charged');
    while ((await stores.collectExpired(charge.dedupeUntil + 60, 7)) === 7);
    t.equal(
      (await stores.charge({ ...charge, at: charge.dedupeUntil - 1 })).outcome,
      'already_charged',
      'a call that began in time may come to its charge after the collection',
    );
  });
}
