import { randomUUID } from 'node:crypto';
import {
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { defined } from '../../src/core/domain/defined.js';
import type { BucketConnection } from '../../src/service/adapters/assets/bucket-connection.js';
import { openBucketKeys } from '../../src/service/adapters/assets/bucket-keys.js';
import { keptKeys } from '../../src/service/adapters/encryption/kept-keys.js';
import { type KeyDirectory, openKeyDirectory } from '../../src/service/adapters/encryption/key-directory.js';
import { type MirroredKeys, mirroredKeys } from '../../src/service/adapters/encryption/mirrored-keys.js';
import type { ContentKeys } from '../../src/service/ports/content-keys.js';
import { namesBelow, shardedPath } from '../fixtures/sharded-path.js';
import { contentKeyContract } from '../store-contract/content-key-contract.js';

contentKeyContract(t, 'directory', async (t) => {
  const directory = join(t.testdir(), 'keys');
  return () => openKeyDirectory({ directory });
});

contentKeyContract(t, 'directory, kept in memory', async (t) => {
  const directory = join(t.testdir(), 'keys');
  return async () => keptKeys(await openKeyDirectory({ directory }));
});

contentKeyContract(t, 'two directories', async (t) => {
  const directory = t.testdir();
  return async () => {
    const [first, second] = await Promise.all(
      ['first', 'second'].map((name) => openKeyDirectory({ directory: join(directory, name) })),
    );
    return mirroredKeys(first!, second!);
  };
});

const keysIn = (directory: string): readonly string[] =>
  namesBelow(directory).filter((name) => name.endsWith('.key'));

const { TAKEMARK_S3_ENDPOINT: endpoint, TAKEMARK_S3_REGION: region = 'us-east-1' } = process.env;
const { TAKEMARK_S3_BUCKET: bucket = 'takemark-assets' } = process.env;
const { TAKEMARK_S3_ACCESS_KEY: accessKey = '', TAKEMARK_S3_SECRET_KEY: secretKey = '' } = process.env;
const connection = (over: Partial<BucketConnection> = {}) => ({
  ...defined({ endpoint }),
  region,
  bucket,
  prefix: `keys-${randomUUID()}/`,
  credentials: { accessKey, secretKey },
  ...over,
});

if (endpoint === undefined) {
  void t.test('bucket', { skip: 'needs TAKEMARK_S3_ENDPOINT' }, () => undefined);
} else {
  const bucketKeys = async (t: Test) => {
    const settings = connection();
    return async () => {
      const keys = openBucketKeys(settings);
      t.teardown(() => keys.close());
      return keys;
    };
  };
  // The server of these tests ignores If-None-Match. Concurrent creations of one key are tested below.
  contentKeyContract(t, 'bucket', bucketKeys, 0);
  contentKeyContract(
    t,
    'bucket, kept in memory',
    async (t) => {
      const again = await bucketKeys(t);
      return async () => keptKeys(await again());
    },
    1,
  );
}

/**
 * Starts a bucket that respects If-None-Match.
 * @param hold called with each PUT before it takes effect. It resolves when the PUT may. False cuts the
 * caller's connection at once, and the request still takes effect.
 */
async function conditionalBucket(t: Test, hold: (carryOut: () => void) => Promise<boolean>) {
  const objects = new Map<string, Buffer>();
  const server = createServer((request, response) => {
    void (async () => {
      const name = new URL(request.url ?? '', 'http://bucket').pathname;
      const body = Buffer.concat(await request.toArray());
      if (request.method === 'DELETE') {
        objects.delete(name);
        response.writeHead(204).end();
        return;
      }
      if (request.method !== 'PUT') {
        response.writeHead(objects.has(name) ? 200 : 404).end(objects.get(name));
        return;
      }
      const carryOut = (): number => {
        if (request.headers['if-none-match'] === '*' && objects.has(name)) return 412;
        objects.set(name, body);
        return 200;
      };
      if (await hold(carryOut)) response.writeHead(carryOut()).end();
      else request.socket.destroy();
    })();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const settings = connection({
    credentials: { accessKey: 'any', secretKey: 'any' },
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
  });
  const open = () => {
    const keys = openBucketKeys(settings);
    t.teardown(() => keys.close());
    return keys;
  };
  return { objects, open };
}

void t.test(
  'a bucket that keeps to If-None-Match gives processes that make a key at once one key',
  async (t) => {
    const arrived: (() => void)[] = [];
    // Neither is written before both have found no key.
    const { objects, open } = await conditionalBucket(t, async () => {
      await new Promise<void>((resolve) => {
        arrived.push(resolve);
        if (arrived.length === 2) for (const go of arrived) go();
      });
      return true;
    });
    const [one, other] = await Promise.all([open(), open()].map((keys) => keys.obtain('prf_1')));
    t.equal(one!.length, 32);
    t.strictSame(Buffer.from(one!), Buffer.from(other!));
    t.strictSame([...objects.values()], [Buffer.from(one!)]);
  },
);

void t.test('a request that makes a key and hung does not bring it back after its destruction', async (t) => {
  const held: (() => void)[] = [];
  let isHeld = true;
  const { objects, open } = await conditionalBucket(t, async (carryOut) => {
    if (isHeld) held.push(carryOut);
    const isAnswered = !isHeld;
    isHeld = false;
    return isAnswered;
  });
  const keys = open();
  const key = await keys.obtain('prf_1');
  t.equal(held.length, 1, 'the request was sent once more');
  t.strictSame([...objects.values()], [Buffer.from(key)]);
  await keys.destroy('prf_1');
  for (const carryOut of held) carryOut();
  t.equal(await keys.read('prf_1'), undefined);
  t.strictSame([...objects.values()], [Buffer.alloc(0)], 'what is left shows that there was one');
  await t.rejects(open().obtain('prf_1'), { code: 'conflict' }, 'no other one is made in its place');
  await keys.destroy('prf_1');
  t.strictSame([...objects.values()], [Buffer.alloc(0)]);
});

void t.test('a bucket that is away makes keys unavailable, and no key is made up', async (t) => {
  const keys = openBucketKeys(connection({ endpoint: 'http://127.0.0.1:1' }));
  t.teardown(() => keys.close());
  const unavailable = { code: 'unavailable', reason: 'store_unavailable' };
  await t.rejects(keys.obtain('prf_1'), unavailable);
  await t.rejects(keys.read('prf_1'), unavailable);
  await t.rejects(keys.destroy('prf_1'), unavailable);
});

void t.test('a destroyed key is overwritten in place', async (t) => {
  const directory = join(t.testdir(), 'keys');
  const keys = await openKeyDirectory({ directory });
  const key = await keys.obtain('prf:1');
  const [name = ''] = keysIn(directory);
  t.equal(statSync(directory).mode & 0o777, 0o700);
  const path = shardedPath(directory, name);
  t.equal(statSync(path).mode & 0o777, 0o600);
  t.ok(readFileSync(path).equals(key));
  // Another name for the same bytes on the disk.
  const other = join(directory, '..', 'other');
  linkSync(path, other);
  await keys.destroy('prf:1');
  t.strictSame(keysIn(directory), []);
  t.ok(readFileSync(other).equals(Buffer.alloc(32)));
});

void t.test('a kill between the two steps leaves no key, and a repeat completes', async (t) => {
  const directory = join(t.testdir(), 'keys');
  const keys = await openKeyDirectory({ directory });
  await keys.obtain('prf_1');
  writeFileSync(shardedPath(directory, 'prf_1.key'), Buffer.alloc(32));
  t.equal(await keys.read('prf_1'), undefined);
  await t.rejects(keys.obtain('prf_1'), { code: 'unavailable' });
  await keys.destroy('prf_1');
  t.strictSame(keysIn(directory), []);
});

void t.test('a kill while a key is made leaves nothing once the directory is opened again', async (t) => {
  const directory = join(t.testdir(), 'keys');
  const unfinished = join(directory, 'unfinished');
  const key = await (await openKeyDirectory({ directory })).obtain('prf_1');
  // The first process was killed before its key had its place, the second right after.
  writeFileSync(join(unfinished, '.unfinished-1'), Buffer.alloc(31, 1));
  linkSync(shardedPath(directory, 'prf_1.key'), join(unfinished, '.unfinished-2'));
  const keys = await openKeyDirectory({ directory });
  t.strictSame(readdirSync(unfinished), []);
  t.ok(Buffer.from(key).equals((await keys.read('prf_1'))!));
  await keys.obtain('prf_2');
  t.strictSame(readdirSync(unfinished), []);
  t.strictSame(keysIn(directory), ['prf_1.key', 'prf_2.key']);
});

void t.test('keys that a version before left in one directory are read and destroyed', async (t) => {
  const directory = join(t.testdir(), 'keys');
  const key = Buffer.alloc(32, 7);
  mkdirSync(directory);
  writeFileSync(join(directory, 'prf=1.key'), key);
  const keys = await openKeyDirectory({ directory });
  t.ok(key.equals((await keys.read('prf:1'))!));
  await keys.destroy('prf:1');
  t.strictSame(keysIn(directory), []);

  const made = await keys.obtain('prf_2');
  writeFileSync(join(directory, 'prf_2.key'), key);
  await t.rejects(openKeyDirectory({ directory }), /two files with the same name/, 'neither is overwritten');
  rmSync(join(directory, 'prf_2.key'));
  t.ok(Buffer.from(made).equals((await (await openKeyDirectory({ directory })).read('prf_2'))!));
});

void t.test('a directory of keys that is not there destroys none', async (t) => {
  const directory = join(t.testdir(), 'keys');
  const keys = await openKeyDirectory({ directory });
  await keys.obtain('prf_1');
  renameSync(directory, `${directory}-away`);
  for (const proofId of ['prf_1', 'prf_2'])
    await t.rejects(keys.destroy(proofId), { code: 'unavailable', cause: { code: 'ENOENT' } });
});

void t.test('without the directory keys are unavailable', async (t) => {
  const directory = join(t.testdir(), 'keys');
  const keys = await openKeyDirectory({ directory });
  rmSync(directory, { recursive: true });
  writeFileSync(directory, '');
  const unavailable = { code: 'unavailable', reason: 'store_unavailable' };
  await t.rejects(keys.obtain('prf_1'), unavailable);
  await t.rejects(keys.read('prf_1'), unavailable);
  await t.rejects(keys.destroy('prf_1'), unavailable);
});

void t.test('keys in memory', async (t) => {
  /** Returns keys that count their calls. */
  const counted = () => {
    const asked = { obtain: 0, read: 0, destroy: 0, release: 0 };
    const made = new Map<string, Uint8Array>();
    let isAway = false;
    const answer = async <Value>(what: keyof typeof asked, value: () => Value): Promise<Value> => {
      asked[what] += 1;
      if (isAway) throw new Error('away');
      return value();
    };
    const keys: ContentKeys = {
      obtain: (proofId) =>
        answer('obtain', () => {
          const key = made.get(proofId) ?? Buffer.alloc(32, made.size + 1);
          made.set(proofId, key);
          return key;
        }),
      read: (proofId) => answer('read', () => made.get(proofId)),
      destroy: (proofId) => answer('destroy', () => void made.delete(proofId)),
      release: (proofId) => answer('release', () => void made.delete(proofId)),
    };
    return { keys, asked, away: (is: boolean) => (isAway = is) };
  };

  await t.test('one that is known is not asked for again', async (t) => {
    const { keys, asked } = counted();
    const kept = keptKeys(keys);
    const key = await kept.obtain('prf_1');
    t.strictSame(await Promise.all([kept.read('prf_1'), kept.read('prf_1'), kept.obtain('prf_1')]), [
      key,
      key,
      key,
    ]);
    t.strictSame(asked, { obtain: 1, read: 0, destroy: 0, release: 0 });
    await kept.destroy('prf_1');
    t.equal(await kept.read('prf_1'), undefined);
    t.strictSame(asked, { obtain: 1, read: 1, destroy: 1, release: 0 });
    t.ok(await kept.obtain('prf_1'));
    await kept.release('prf_1');
    t.equal(await kept.read('prf_1'), undefined);
    t.strictSame(asked, { obtain: 2, read: 2, destroy: 1, release: 1 });
  });

  await t.test('neither a failure nor a missing key is remembered', async (t) => {
    const { keys, asked, away } = counted();
    const kept = keptKeys(keys);
    t.equal(await kept.read('prf_1'), undefined);
    const key = await kept.obtain('prf_1');
    away(true);
    t.equal(await kept.read('prf_1'), key, 'a known key needs no read');
    await t.rejects(kept.read('prf_2'));
    await t.rejects(kept.obtain('prf_2'));
    away(false);
    t.ok(await kept.obtain('prf_2'));
    t.equal(asked.obtain, 3);
  });

  await t.test('they have a bound in number and time', async (t) => {
    const { keys, asked } = counted();
    const kept = keptKeys(keys, { limit: 2 });
    for (const id of ['prf_1', 'prf_2']) await kept.obtain(id);
    await kept.read('prf_1');
    await kept.obtain('prf_3');
    t.equal(asked.read, 0);
    await kept.read('prf_1');
    t.equal(asked.read, 0, 'the one that was asked for last stays');
    await kept.read('prf_2');
    t.equal(asked.read, 1, 'the least recently used one was evicted');

    const brief = keptKeys(keys, { forMs: -1 });
    await brief.read('prf_1');
    await brief.read('prf_1');
    t.equal(asked.read, 3);
  });
});

t.test(
  'two directories: a key that one of them lacks is copied, and an erased one is never copied back',
  async (t) => {
    const directory = t.testdir();
    const [first, second] = (await Promise.all(
      ['first', 'second'].map((name) => openKeyDirectory({ directory: join(directory, name) })),
    )) as [KeyDirectory, KeyDirectory];
    const both = mirroredKeys(first, second);
    const shared = await both.obtain('prf:shared');
    const onlyFirst = await first.obtain('prf_first');
    const onlySecond = await second.obtain('prf_second');
    await first.obtain('prf_differs');
    await second.obtain('prf_differs');
    await second.obtain('prf_erased');
    const bytesOf = async (keys: ContentKeys, proofId: string) =>
      Buffer.from((await keys.read(proofId)) ?? []);
    t.ok((await bytesOf(both, 'prf_second')).equals(onlySecond), 'a lost key is read from the other disk');
    t.ok(
      Buffer.from(await both.obtain('prf_second')).equals(onlySecond),
      'and no other key is made for its id',
    );
    await first.destroy('prf_second');

    const held = await bytesOf(second, 'prf_differs');
    const erased = async function* () {
      yield { proofId: 'prf_erased' };
      yield { proofId: 'prf_never_had_a_key' };
    };
    const nothing = { copied: 0, destroyed: 0, different: 0 };
    t.strictSame(await both.align(erased(), AbortSignal.abort()), nothing, 'the process stops');
    t.strictSame(await both.align(erased()), { copied: 2, destroyed: 1, different: 1 });
    t.strictSame(await both.align(erased()), { copied: 0, destroyed: 0, different: 1 });
    for (const keys of [first, second]) {
      t.ok((await bytesOf(keys, 'prf:shared')).equals(shared));
      t.ok((await bytesOf(keys, 'prf_first')).equals(onlyFirst));
      t.ok((await bytesOf(keys, 'prf_second')).equals(onlySecond));
      t.equal(await keys.read('prf_erased'), undefined);
    }
    t.ok((await bytesOf(second, 'prf_differs')).equals(held), 'a key that differs may be the right one');
  },
);

t.test('two directories: an erasure during the comparison destroys the key on both disks', async (t) => {
  const directory = t.testdir();
  const [first, second] = (await Promise.all(
    ['first', 'second'].map((name) => openKeyDirectory({ directory: join(directory, name) })),
  )) as [KeyDirectory, KeyDirectory];
  await first.obtain('prf_1');
  let erasing: Promise<void> | undefined;
  const both: MirroredKeys = mirroredKeys(first, {
    ...second,
    store: async (proofId, key) => {
      // The copy has read the key, and has not written it yet.
      erasing = both.destroy(proofId);
      await second.store(proofId, key);
    },
  });
  await both.align((async function* () {})());
  await erasing;
  t.equal(await first.read('prf_1'), undefined);
  t.equal(await second.read('prf_1'), undefined);
});

t.test('two directories: a key that only one disk could store is given to no caller', async (t) => {
  const directory = t.testdir();
  const first = await openKeyDirectory({ directory: join(directory, 'first') });
  const second = await openKeyDirectory({ directory: join(directory, 'second') });
  const full = { ...second, store: () => Promise.reject(new Error('the disk is full')) };
  await t.rejects(mirroredKeys(first, full).obtain('prf_1'), /is full/);
  const key = await mirroredKeys(first, second).obtain('prf_1');
  t.ok(Buffer.from((await second.read('prf_1')) ?? []).equals(key), 'a repeated call stores it on both');
});
