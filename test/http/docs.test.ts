import { createHash } from 'node:crypto';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import t from 'tap';
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
