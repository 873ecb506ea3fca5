import { mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { ShardedDirectory } from '../../src/core/files/sharded-directory.js';
import { namesBelow, shardedPath } from '../fixtures/sharded-path.js';

const open = (directory: string) => ShardedDirectory.open(directory, ['.a', '.b']);

const FILES = 6000;
const NAMES = Array.from({ length: FILES }, (_, i) => `id_${i}.a`);

async function filled(t: Test) {
  const directory = join(t.testdir(), 'deep', 'files');
  const files = await open(directory);
  const add = async (name: string): Promise<void> => {
    await files.prepare(name.slice(0, -2));
    writeFileSync(files.path(name), '');
  };
  for (const name of NAMES) await add(name);
  return { directory, files, add, remove: (name: string) => rmSync(files.path(name)) };
}

/** Returns the names of all pages from a place on, and the number of pages. */
async function pass(t: Test, files: ShardedDirectory, limit: number, after?: string) {
  const seen: string[] = [];
  let pages = 0;
  let place = after;
  do {
    const { names, next } = await files.page(place, limit);
    if (names.length !== limit && next !== undefined) t.fail('a page is full, or the last');
    seen.push(...names);
    place = next;
    pages += 1;
  } while (place !== undefined);
  return { seen, pages };
}

void t.test('each file has a shard that follows from its stem, and is listed once', async (t) => {
  const { directory, files } = await filled(t);
  t.equal(files.path('id_1.a'), shardedPath(directory, 'id_1.a'));
  t.equal(
    join(files.path('id_1.a'), '..'),
    join(files.path('id_1.b'), '..'),
    'files of one stem lie together',
  );
  const shards = readdirSync(directory);
  t.ok(shards.length > 2500 && shards.length <= 4096, `${shards.length} shards of ${FILES} files`);
  mkdirSync(join(directory, 'staging'));
  for (const place of ['README', join('staging', 'id_x.a'), join(shards[0]!, 'README')])
    writeFileSync(join(directory, place), 'not of it');
  for (const limit of [7, 500, FILES - 1, FILES, FILES + 1]) {
    const { seen, pages } = await pass(t, files, limit);
    t.strictSame(seen.toSorted(), NAMES.toSorted(), `pages of ${limit}`);
    t.equal(pages, Math.ceil(FILES / limit));
  }
});

void t.test('a pass continues after a deleted file, and sees every file that stays', async (t) => {
  const { files, add, remove } = await filled(t);
  const first = await files.page(undefined, 100);
  t.strictSame(await files.page(undefined, 100), first);
  remove(first.next!);
  for (let i = 0; i < 500; i += 1) await add(`new_${i}.b`);
  const { seen } = await pass(t, files, 100, first.next);
  t.equal(new Set(seen).size, seen.length, 'none twice');
  const there = new Set([...first.names, ...seen]);
  t.strictSame(
    NAMES.filter((name) => !there.has(name)),
    [],
  );
});

void t.test('files that lie beside the shards are moved into them, some or all', async (t) => {
  const directory = t.testdir();
  for (const name of NAMES.slice(0, 1000)) writeFileSync(join(directory, name), name);
  mkdirSync(join(directory, 'id_dir.a'));
  writeFileSync(join(directory, 'README'), 'not of it');
  const files = await open(directory);
  const { seen } = await pass(t, files, 300);
  t.strictSame(seen.toSorted(), NAMES.slice(0, 1000).toSorted());
  // A kill amid the moves leaves some; a version that knows no shards makes others.
  renameSync(files.path('id_7.a'), join(directory, 'id_7.a'));
  writeFileSync(join(directory, 'id_1000.a'), '');
  t.equal((await pass(t, await open(directory), 300)).seen.length, 1001);
  t.equal(namesBelow(directory).length, 1002);
});

void t.test('two files of one name are refused, and stay', async (t) => {
  const directory = t.testdir();
  const files = await open(directory);
  await files.prepare('id_1');
  writeFileSync(files.path('id_1.a'), 'of the shard');
  writeFileSync(join(directory, 'id_1.a'), 'beside');
  await t.rejects(open(directory), { message: /two files with the same name/ });
  t.strictSame(namesBelow(directory), ['id_1.a', 'id_1.a']);
});

void t.test('what cannot be made or synced is an error', async (t) => {
  const directory = join(t.testdir(), 'files');
  const files = await open(directory);
  await files.prepare('id_1');
  rmSync(directory, { recursive: true });
  await t.rejects(files.prepare('id_2'), { code: 'ENOENT' });
  await t.rejects(files.sync('id_1'), { code: 'ENOENT' });
  await t.rejects(files.sync('id_2'), { code: 'ENOENT' });
  await t.rejects(files.page(undefined, 1), { code: 'ENOENT' });
  writeFileSync(directory, '');
  await t.rejects(open(directory), { code: 'EEXIST' });
});
