import type { Test } from 'tap';
import { CONTENT_KEY_BYTES } from '../../src/core/codec/encrypt.js';
import type { ContentKeys } from '../../src/service/ports/content-keys.js';

/**
 * Tests the contract of every store of content keys.
 * @param open opens a store on the data of the one before
 * @param openings the number of openings that make one key at once, each with two callers; 0 skips that test
 */
export function contentKeyContract(
  t: Test,
  name: string,
  open: (t: Test) => Promise<() => Promise<ContentKeys>>,
  openings = 3,
): void {
  void t.test(`${name}: a key is made once, read, and destroyed for good`, async (t) => {
    const again = await open(t);
    const keys = await again();
    t.equal(await keys.read('prf_1'), undefined, 'none was made');
    const key = await keys.obtain('prf_1');
    t.equal(key.length, CONTENT_KEY_BYTES);
    t.strictSame(Buffer.from((await keys.read('prf_1')) ?? []), Buffer.from(key));
    t.strictSame(Buffer.from(await keys.obtain('prf_1')), Buffer.from(key), 'it stays');
    t.strictNotSame(Buffer.from(await keys.obtain('prf_2')), Buffer.from(key), 'each proof has its own');

    const later = await again();
    t.strictSame(Buffer.from((await later.read('prf_1')) ?? []), Buffer.from(key), 'it is durable');
    await later.destroy('prf_1');
    await later.destroy('prf_1');
    t.equal(await later.read('prf_1'), undefined);
    t.equal(await (await again()).read('prf_1'), undefined);
    t.ok(await later.read('prf_2'), 'no other one went');
    await later.destroy('prf_none');
    // A store that reports destroyed keys makes no new ones.
    const after = await later.obtain('prf_1').catch((error: unknown) => {
      t.match(error, { code: 'conflict' });
    });
    t.notOk(after && Buffer.from(after).equals(key), 'it does not come back');
  });

  void t.test(`${name}: an id whose key was released gets another one`, async (t) => {
    const keys = await (await open(t))();
    const key = await keys.obtain('prf_1');
    await keys.release('prf_1');
    await keys.release('prf_1');
    t.equal(await keys.read('prf_1'), undefined);
    t.strictNotSame(Buffer.from(await keys.obtain('prf_1')), Buffer.from(key));
  });

  if (openings > 0)
    void t.test(`${name}: makers at once get one key`, async (t) => {
      const again = await open(t);
      const all = await Promise.all(Array.from({ length: openings }, again));
      for (const proofId of Array.from({ length: 20 }, (_, number) => `prf_${number}`)) {
        const made = await Promise.all([...all, ...all].map((keys) => keys.obtain(proofId)));
        t.equal(new Set(made.map((key) => Buffer.from(key).toString('hex'))).size, 1);
      }
    });

  void t.test(`${name}: ids of every form have a key, and other names none`, async (t) => {
    const keys = await (await open(t))();
    const ids = ['a', 'prf:1', 'prf.key', 'prf_1-2', 'P'.repeat(64)];
    const made = await Promise.all(ids.map((id) => keys.obtain(id)));
    t.equal(new Set(made.map((key) => Buffer.from(key).toString('hex'))).size, ids.length);
    for (const hostile of ['../secret', 'a/b', '']) {
      await t.rejects(keys.obtain(hostile), { code: 'invalid_request' });
      await t.rejects(keys.read(hostile), { code: 'invalid_request' });
      await t.rejects(keys.destroy(hostile), { code: 'invalid_request' });
      await t.rejects(keys.release(hostile), { code: 'invalid_request' });
    }
  });
}
