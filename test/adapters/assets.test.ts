import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { opendir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { openAssetDirectory } from '../../src/adapters/assets/directory.js';
import type { NameWindowsOptions } from '../../src/adapters/assets/name-windows.js';
import type { AssetStore } from '../../src/ports/assets.js';
import { assetContract, namesOf, publish } from '../store-contract/asset-contract.js';

assetContract(t, 'directory', (t) => openAssetDirectory({ directory: join(t.testdir(), 'assets') }));

void t.test('assets are files for their owner alone', async (t) => {
  const directory = join(t.testdir(), 'assets');
  const assets = await openAssetDirectory({ directory });
  t.equal(statSync(directory).mode & 0o777, 0o700);
  await publish(assets, 'prf_1', Buffer.from('audio'));
  t.strictSame(readdirSync(directory).sort(), ['prf_1.asset', 'staging']);
  t.equal(statSync(join(directory, 'prf_1.asset')).mode & 0o777, 0o600);
  const staged = await assets.stage('prf_2');
  await staged.append(Buffer.from('half'));
  await staged.discard();
  await assets.delete('prf_1');
  t.strictSame(readdirSync(directory), ['staging']);
  t.strictSame(readdirSync(join(directory, 'staging')), []);
});

void t.test('what a kill left half built is gone after a start, and nothing else', async (t) => {
  const directory = t.testdir();
  const killed = await openAssetDirectory({ directory });
  const halfBuilt = await killed.stage('prf_killed');
  await halfBuilt.append(Buffer.from('x'));
  await publish(killed, 'prf_kept', Buffer.from('kept'));
  writeFileSync(join(directory, 'README'), 'not ours');
  t.equal(readdirSync(join(directory, 'staging')).length, 1);

  const assets = await openAssetDirectory({ directory });
  t.strictSame(readdirSync(directory).sort(), ['README', 'prf_kept.asset', 'staging']);
  t.strictSame(readdirSync(join(directory, 'staging')), []);
  t.strictSame(await namesOf(assets), ['prf_kept']);
  // Its file is gone; a handle that nobody closes ends the process of a newer Node.
  await halfBuilt.discard();
});

void t.test('no name leads out of the directory', async (t) => {
  const directory = t.testdir({ inside: {}, 'secret.asset': 'secret' });
  const assets = await openAssetDirectory({ directory: join(directory, 'inside') });
  for (const hostile of ['../secret', 'a/../../secret']) {
    await t.rejects(assets.read(hostile), { code: 'invalid_request' });
    await t.rejects(assets.delete(hostile), { code: 'invalid_request' });
  }
  t.equal(readFileSync(join(directory, 'secret.asset'), 'utf8'), 'secret');
});

void t.test('a directory that cannot be written makes assets unavailable', async (t) => {
  const directory = join(t.testdir(), 'assets');
  const assets = await openAssetDirectory({ directory });
  // Permissions do not stop root; a file where the directory was stops everyone.
  rmSync(directory, { recursive: true });
  writeFileSync(directory, '');
  await t.rejects(assets.stage('prf_1'), {
    code: 'unavailable',
    reason: 'store_unavailable',
    cause: { code: 'ENOTDIR' },
  });
  await t.rejects(openAssetDirectory({ directory }), { code: 'EEXIST' });
});

const FILES = 1000;
/** Names that one read keeps. */
const KEPT = 160;
const LIMIT = 20;

function idOf(number: number): string {
  return `prf_${String(number).padStart(4, '0')}`;
}

const IDS = Array.from({ length: FILES }, (_, i) => idOf(i));

/** A store of many files whose reads of the directory are counted. */
async function manyFiles(t: Test, options: NameWindowsOptions = {}) {
  const directory = t.testdir();
  const counted = { reads: 0 };
  const assets = await openAssetDirectory({
    directory,
    listing: {
      kept: KEPT,
      read: (path) => {
        counted.reads += 1;
        return opendir(path);
      },
      ...options,
    },
  });
  const add = (proofId: string): void => writeFileSync(join(directory, `${proofId}.asset`), '');
  for (const proofId of IDS) add(proofId);
  writeFileSync(join(directory, 'README'), 'not ours');
  return { assets, counted, add, remove: (proofId: string) => rmSync(join(directory, `${proofId}.asset`)) };
}

/** Goes through the list, a page each time it is called; undefined after the last one. */
function walker(assets: AssetStore, limit = LIMIT): () => Promise<readonly string[] | undefined> {
  let place: string | undefined;
  let hasEnded = false;
  return async () => {
    if (hasEnded) return undefined;
    const { items, next } = await assets.list(place, limit);
    place = next;
    hasEnded = next === undefined;
    return items.map(({ proofId }) => proofId);
  };
}

void t.test('a pass over a directory reads it once for each window, whatever the pages', async (t) => {
  const { assets, counted } = await manyFiles(t);
  for (const limit of [1, 7, LIMIT, KEPT, 500]) {
    counted.reads = 0;
    t.strictSame(await namesOf(assets, limit), IDS);
    t.equal(counted.reads, Math.ceil(FILES / KEPT), `pages of ${limit}`);
  }
  for (const kept of [FILES - 1, FILES, FILES + 1]) {
    const other = await manyFiles(t, { kept });
    t.strictSame(await namesOf(other.assets, LIMIT), IDS);
    t.equal(other.counted.reads, kept < FILES ? 2 : 1, `windows of ${kept}`);
  }
});

void t.test('files that come and go during a pass are no error, and the next pass sees them', async (t) => {
  const { assets, add, remove } = await manyFiles(t);
  const next = walker(assets);
  const seen = [...(await next())!];
  remove(idOf(5));
  remove(idOf(30));
  // All of the page that follows the window.
  for (let number = KEPT; number < KEPT + LIMIT; number += 1) remove(idOf(number));
  add('prf_0000a');
  add('prf_0040a');
  add('prf_0900a');
  add('prf_9999');
  for (let page = await next(); page !== undefined; page = await next()) seen.push(...page);
  const isThere = (proofId: string): boolean =>
    proofId !== idOf(30) && !(proofId >= idOf(KEPT) && proofId < idOf(KEPT + LIMIT));
  const expected = [...IDS.filter(isThere), 'prf_0900a', 'prf_9999'].sort();
  t.strictSame(seen, expected, 'without what is gone, and with what a later read found');
  const later = expected.filter((proofId) => proofId !== idOf(5));
  t.strictSame(await namesOf(assets, LIMIT), [...later, 'prf_0000a', 'prf_0040a'].sort());
});

void t.test('an end that goes away during a pass is an empty page', async (t) => {
  const { assets, remove } = await manyFiles(t, { kept: FILES - 1 });
  const next = walker(assets, FILES);
  t.equal((await next())?.length, FILES - 1);
  remove(idOf(FILES - 1));
  t.strictSame(await next(), []);
  t.equal(await next(), undefined);
});

void t.test('two passes at once have a window each, at any distance and speed', async (t) => {
  const { assets, counted } = await manyFiles(t);
  for (const ahead of [0, 1, 3, KEPT / LIMIT, 20])
    for (const [speed, limit] of [
      [1, LIMIT],
      [3, LIMIT],
      [1, 7],
    ] as const) {
      counted.reads = 0;
      const [first, second] = [walker(assets), walker(assets, limit)];
      const seen: [string[], string[]] = [[], []];
      const walk = async (which: 0 | 1): Promise<boolean> => {
        const page = await [first, second][which]!();
        seen[which].push(...(page ?? []));
        return page !== undefined;
      };
      for (let page = 0; page < ahead; page += 1) await walk(0);
      for (let goes = true; goes; ) {
        // Both ask at once.
        const pages = await Promise.all([walk(0), walk(1)]);
        for (let page = 1; page < speed; page += 1) pages.push(await walk(1));
        goes = pages.includes(true);
      }
      const what = `${ahead} pages ahead, ${speed} times the speed, pages of ${limit}`;
      t.strictSame(seen, [IDS, IDS], what);
      t.ok(counted.reads <= 2 * Math.ceil(FILES / KEPT) + 1, `${counted.reads} reads, ${what}`);
    }
});

void t.test('a page that is asked for again is served again, from the same read', async (t) => {
  const { assets, counted } = await manyFiles(t);
  const first = await assets.list(undefined, LIMIT);
  const second = await assets.list(first.next, LIMIT);
  t.strictSame(await assets.list(first.next, LIMIT), second);
  t.strictSame(await assets.list(first.next, 2 * LIMIT).then(({ items }) => items.length), 2 * LIMIT);
  t.equal(counted.reads, 1);
  t.strictSame(await assets.list(undefined, LIMIT), first);
  t.equal(counted.reads, 2, 'a pass that begins reads anew');
});

void t.test('a window goes when nobody asks for its pages, and after a read that fails', async (t) => {
  const failing = { is: false };
  const { assets, counted } = await manyFiles(t, { idleMs: 50 });
  const { next } = await assets.list(undefined, LIMIT);
  await delay(200);
  const page = await assets.list(next, LIMIT);
  t.equal(counted.reads, 2);
  t.equal(page.items[0]?.proofId, idOf(LIMIT));

  const broken = await manyFiles(t, {
    read: async (path) => {
      if (failing.is) throw Object.assign(new Error('no more handles'), { code: 'EMFILE' });
      return opendir(path);
    },
  });
  failing.is = true;
  await t.rejects(broken.assets.list(undefined, LIMIT), { code: 'unavailable', cause: { code: 'EMFILE' } });
  failing.is = false;
  t.strictSame(await namesOf(broken.assets, LIMIT), IDS, 'the next call reads');
});
