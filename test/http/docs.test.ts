import { createHash } from 'node:crypto';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import t from 'tap';
import type { ShownDocument } from '../../src/service/http/response/docs/document.js';
import { startPartner } from './doubles.js';
import { ask, request } from './raw-client.js';

t.test('the address alone leads to the page', async (t) => {
  const { port, listener } = await startPartner();
  t.teardown(() => listener.close(100));
  const answer = await ask(port, request('GET', '/'));
  t.strictSame([answer!.status, answer!.headers.get('location')], [302, '/docs']);
  t.equal((await ask(port, request('POST', '/')))!.status, 405);
});

t.test('the page comes in the coding that the reader takes, each with its own ETag', async (t) => {
  const { port, listener } = await startPartner();
  t.teardown(() => listener.close(100));
  const get = async (headers: Readonly<Record<string, string>>) =>
    (await ask(port, request('GET', '/docs', headers)))!;
  const plain = await get({});
  t.equal(plain.headers.get('content-encoding'), undefined);
  const text = plain.body;
  t.match(String(text), /^<!doctype html>/);
  const tags = new Set([plain.headers.get('etag')]);
  for (const [accepted, coding, decode] of [
    ['gzip, deflate, br, zstd', 'br', brotliDecompressSync],
    ['br;q=0.1, gzip', 'br', brotliDecompressSync],
    ['GZIP', 'gzip', gunzipSync],
    ['br;q=0, gzip;q=0.5', 'gzip', gunzipSync],
    ['*', 'br', brotliDecompressSync],
    ['br; q=0.000, *;q=0.001', 'gzip', gunzipSync],
  ] as const) {
    const { status, body, headers } = await get({ 'Accept-Encoding': accepted });
    t.strictSame([status, headers.get('content-encoding')], [200, coding], accepted);
    t.ok(decode(body).equals(text), accepted);
    t.ok(body.length * 4 < text.length, `${body.length} bytes of ${text.length}`);
    t.equal(headers.get('etag'), `"${createHash('sha256').update(body).digest('hex')}"`);
    t.strictSame([headers.get('vary'), headers.get('cache-control')], ['Accept-Encoding', 'no-cache']);
    tags.add(headers.get('etag'));
  }
  t.equal(tags.size, 3);
  for (const accepted of ['', 'identity', '*;q=0', 'br;q=0, gzip;q=0', 'brotli', 'zstd'])
    t.equal(
      (await get({ 'Accept-Encoding': accepted })).headers.get('content-encoding'),
      undefined,
      accepted,
    );

  const etag = plain.headers.get('etag')!;
  const kept = await get({ 'If-None-Match': `"x", W/${etag}` });
  t.strictSame([kept.status, kept.body.length, kept.headers.get('etag')], [304, 0, etag]);
  t.equal(kept.headers.get('vary'), 'Accept-Encoding');
  t.equal((await get({ 'If-None-Match': etag, 'Accept-Encoding': 'br' })).status, 200, 'another form');
  const head = (await ask(port, request('HEAD', '/docs'), { head: true }))!;
  t.strictSame([head.status, head.body.length, head.headers.get('etag')], [200, 0, etag]);
});

t.test('the scripts of the page are compressed, immutable, and only those that it names', async (t) => {
  const { port, listener } = await startPartner();
  t.teardown(() => listener.close(100));
  const get = async (path: string, headers: Readonly<Record<string, string>> = {}) =>
    (await ask(port, request('GET', path, headers)))!;
  const page = (await get('/docs')).body.toString();
  const scripts = [...page.matchAll(/<script src="([^"]+)">/g)].map(([, path]) => path!);
  t.strictSame(
    scripts.map((path) => path.replace(/-[0-9a-f]{16}/, '')),
    ['/docs/reference.js', '/docs/start.js'],
  );
  for (const path of scripts) {
    const plain = await get(path);
    const digest = createHash('sha256').update(plain.body).digest('hex');
    t.match(path, digest.slice(0, 16), 'the name contains the digest of the content');
    for (const [coding, decode] of [
      ['br', brotliDecompressSync],
      ['gzip', gunzipSync],
    ] as const) {
      const { status, headers, body } = await get(path, { 'Accept-Encoding': coding });
      t.strictSame(
        [status, headers.get('content-encoding'), headers.get('content-type'), headers.get('cache-control')],
        [200, coding, 'text/javascript; charset=utf-8', 'public, max-age=31536000, immutable'],
      );
      t.ok(decode(body).equals(plain.body), `${path}: ${coding}`);
      t.equal(
        (await get(path, { 'Accept-Encoding': coding, 'If-None-Match': headers.get('etag')! })).status,
        304,
      );
    }
  }
  t.equal((await get('/docs/start-0123456789abcdef.js')).status, 404);
  t.equal((await get('/docs/..%2f..%2fpackage.json')).status, 400, 'no other file');
});

t.test('the text and the index need no scripts, and have every operation and every word', async (t) => {
  const { port, listener } = await startPartner();
  t.teardown(() => listener.close(100));
  const get = async (path: string) => (await ask(port, request('GET', path)))!;
  const [page, text, index] = [await get('/docs'), await get('/docs.md'), await get('/llms.txt')];
  t.strictSame(
    [text, index].map(({ status, headers }) => [status, headers.get('content-type')]),
    [
      [200, 'text/markdown; charset=utf-8'],
      [200, 'text/plain; charset=utf-8'],
    ],
  );
  const anchors = [...text.body.toString().matchAll(/<a id="([^"]+)">/g)].map(([, id]) => id!);
  t.equal(new Set(anchors).size, anchors.length, 'each anchor is there once');
  const document = JSON.parse(
    /<script type="application\/json" id="document">(.*)<\/script>/.exec(page.body.toString())![1]!,
  ) as ShownDocument;
  const shown = [
    ...Object.values(document.paths).flatMap((methods) =>
      Object.values(methods).map((each) => each.operationId),
    ),
    ...document['x-tagGroups'].slice(1).flatMap(({ tags }) => tags),
    ...Object.keys(document.components.schemas).map((name) => `schema-${name}`),
  ];
  t.strictSame([...anchors].sort(), shown.sort(), 'the page and the text have the same sections');
  for (const [, target] of text.body.toString().matchAll(/\]\(#([^)]+)\)/g))
    if (!anchors.includes(target!)) t.fail(`#${target} is missing`);
  for (const [, id] of index.body.toString().matchAll(/\/docs\.md#(\w+)/g))
    t.ok(anchors.includes(id!), `${id} is in the text`);
});
