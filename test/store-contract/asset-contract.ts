import { createHash, randomBytes } from 'node:crypto';
import type { Readable } from 'node:stream';
import type { Test } from 'tap';
import type { AssetStore } from '../../src/service/ports/assets.js';
import { EVIDENCE_PARTS, type EvidencePart } from '../../src/witness/domain/evidence.js';

export async function bytesOf(stream: Readable | undefined): Promise<Buffer | undefined> {
  return stream && Buffer.concat(await stream.toArray());
}

/**
 * Publishes the bytes. If that fails, discards them like the operations do, because the file would stay open.
 */
export async function publish(
  assets: AssetStore,
  proofId: string,
  bytes: Uint8Array,
  part?: EvidencePart,
): Promise<void> {
  const staged = await assets.stage(proofId, part);
  try {
    await staged.append(bytes);
    await staged.publish();
  } finally {
    await staged.discard();
  }
}

/** Returns the ids that a store lists, with the part if the entry is not an asset. */
export async function namesOf(assets: Pick<AssetStore, 'list'>, limit = 100): Promise<readonly string[]> {
  const names: string[] = [];
  let after: string | undefined;
  do {
    const page = await assets.list(after, limit);
    names.push(
      ...page.items.map(({ proofId, part }) => (part === undefined ? proofId : `${proofId} ${part}`)),
    );
    after = page.next;
  } while (after !== undefined);
  return names;
}

/**
 * Tests the contract of every asset store.
 * @param open opens an empty store each time
 */
export function assetContract(t: Test, name: string, open: (t: Test) => Promise<AssetStore>): void {
  void t.test(`${name}: an asset is staged, published, read and deleted`, async (t) => {
    const assets = await open(t);
    const audio = randomBytes(3_000_000);
    const staged = await assets.stage('prf_1');
    t.strictSame(await bytesOf(staged.read()), Buffer.alloc(0), 'empty so far');
    for (let i = 0; i < audio.length; i += 65_537) await staged.append(audio.subarray(i, i + 65_537));
    await staged.patch(4, Buffer.from('SIZE'));
    await staged.patch(audio.length - 2, Buffer.from('ok'));
    audio.write('SIZE', 4);
    audio.write('ok', audio.length - 2);
    await t.rejects(
      staged.patch(audio.length - 1, Buffer.from('no')),
      RangeError,
      'only what was appended can be overwritten',
    );
    await t.rejects(staged.patch(-1, Buffer.from('no')), RangeError);
    await staged.append(Buffer.from('end'));
    const whole = Buffer.concat([audio, Buffer.from('end')]);
    t.ok((await bytesOf(staged.read()))?.equals(whole), 'what was staged can be read before it is published');

    t.equal(await assets.read('prf_1'), undefined, 'not visible yet');
    t.equal(await assets.read('prf_1', { start: 0, end: 1 }), undefined);
    t.equal(await assets.size('prf_1'), undefined);
    await staged.publish();
    await staged.discard();
    t.equal(await assets.size('prf_1'), whole.length);
    t.ok(
      (await bytesOf(await assets.read('prf_1')))?.equals(whole),
      'discarding afterwards takes nothing back',
    );

    for (const [start, end] of [
      [0, 0],
      [0, whole.length - 1],
      [70_000, 140_000],
      [whole.length - 3, whole.length - 1],
      [whole.length - 3, whole.length + 10],
      [whole.length, whole.length + 10],
    ] as const) {
      t.ok(
        (await bytesOf(await assets.read('prf_1', { start, end })))?.equals(whole.subarray(start, end + 1)),
        `range ${start}-${end}`,
      );
    }

    const reading = (await assets.read('prf_1'))!;
    t.equal(await assets.delete('prf_1'), true);
    t.equal(await assets.delete('prf_1'), false);
    t.equal(await assets.read('prf_1'), undefined);
    t.equal(await assets.size('prf_1'), undefined);
    t.equal(
      createHash('sha256')
        .update((await bytesOf(reading))!)
        .digest('hex'),
      createHash('sha256').update(whole).digest('hex'),
      'a read that had begun ends well',
    );
    t.strictSame(await namesOf(assets), [], 'nothing is left');
  });

  void t.test(`${name}: an asset that was given up leaves nothing`, async (t) => {
    const assets = await open(t);
    const staged = await assets.stage('prf_1');
    await staged.append(Buffer.from('half'));
    await staged.discard();
    await t.resolves(staged.discard(), 'safe again');
    await t.rejects(staged.append(Buffer.from('more')), { code: 'unavailable', reason: 'store_unavailable' });
    await t.rejects(staged.publish(), { code: 'unavailable' });
    t.equal(await assets.read('prf_1'), undefined);
    t.strictSame(await namesOf(assets), []);
  });

  void t.test(
    `${name}: a list names assets and parts, page by page, and nothing that is being built`,
    async (t) => {
      const assets = await open(t);
      t.strictSame(await assets.list(undefined, 10), { items: [] });
      const building = await assets.stage('prf_building');
      await building.append(Buffer.from('b'));
      const ids = Array.from({ length: 7 }, (_, i) => `prf:${i}`);
      for (const proofId of ids) await publish(assets, proofId, Buffer.from('listed'));
      t.strictSame((await namesOf(assets, 3)).toSorted(), ids);
      const [first] = (await assets.list(undefined, 1)).items;
      t.ok(Math.abs(first!.writtenAt - Date.now() / 1000) < 3600, 'each with its time');
      await building.publish();
      t.strictSame((await namesOf(assets, 2)).toSorted(), [...ids, 'prf_building'].sort());
    },
  );

  void t.test(`${name}: parts of evidence lie beside the asset, and go with it`, async (t) => {
    const assets = await open(t);
    const put = async (proofId: string, part: EvidencePart, text: string): Promise<void> => {
      const staged = await assets.stage(proofId, part);
      await staged.append(Buffer.from(text));
      await staged.publish();
    };
    await publish(assets, 'prf_1', Buffer.from('audio'));
    await put('prf_1', 'trace', 'a trace');
    await put('prf_1', 'facts', 'facts');
    await put('prf_2', 'trace', 'another');
    t.equal(String(await bytesOf(await assets.read('prf_1', undefined, 'trace'))), 'a trace');
    t.equal(String(await bytesOf(await assets.read('prf_1', { start: 2, end: 4 }, 'trace'))), 'tra');
    t.equal(await assets.size('prf_1', 'facts'), 5);
    t.equal(await assets.size('prf_1', 'detail'), undefined);
    t.equal(await assets.size('prf_1'), 5);
    t.equal(await assets.size('prf_2'), undefined, 'a part is not an asset');

    t.equal(await assets.delete('prf_1'), true);
    for (const part of EVIDENCE_PARTS) t.equal(await assets.size('prf_1', part), undefined, part);
    t.equal(await assets.size('prf_2', 'trace'), 7, 'of this proof alone');
    t.strictSame(await namesOf(assets), ['prf_2 trace'], 'a part without an asset is listed');
  });

  void t.test(`${name}: a name is refused when it is not an id`, async (t) => {
    const assets = await open(t);
    for (const hostile of [
      '',
      '.',
      '..',
      '../secret',
      'a/../../secret',
      'a\\b',
      'a\0b',
      '.hidden',
      'a=b',
      'ü',
      'a'.repeat(129),
    ]) {
      await t.rejects(assets.read(hostile), { code: 'invalid_request' }, JSON.stringify(hostile));
      await t.rejects(assets.stage(hostile), { code: 'invalid_request' });
      await t.rejects(assets.size(hostile), { code: 'invalid_request' });
      await t.rejects(assets.delete(hostile), { code: 'invalid_request' });
    }
    const strange = ['a', 'A', 'a.b', 'a:b', 'a..b', 'a.staged', 'a.asset', 'Z'.repeat(128)];
    for (const proofId of strange) await publish(assets, proofId, Buffer.from(proofId));
    for (const proofId of strange) t.equal(String(await bytesOf(await assets.read(proofId))), proofId);
    t.strictSame((await namesOf(assets)).toSorted(), strange.sort(), 'names give back their ids');
  });

  void t.test(`${name}: two builds of one id are independent, and the last to publish wins`, async (t) => {
    const assets = await open(t);
    const [one, two] = await Promise.all([assets.stage('prf_1'), assets.stage('prf_1')]);
    await Promise.all([one.append(Buffer.from('one')), two.append(Buffer.from('two'))]);
    await one.publish();
    await two.publish();
    t.equal(String(await bytesOf(await assets.read('prf_1'))), 'two');
  });

  void t.test(`${name}: an empty asset is an asset too`, async (t) => {
    const assets = await open(t);
    await publish(assets, 'prf_1', Buffer.alloc(0));
    t.equal(await assets.size('prf_1'), 0);
    t.strictSame(await bytesOf(await assets.read('prf_1')), Buffer.alloc(0));
  });
}
