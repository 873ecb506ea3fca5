/**
 * Tests that clients that stall or leave at any stage leave no data and hold no worker (rules 3.7 and 3.8).
 */
import { setTimeout as delay } from 'node:timers/promises';
import t from 'tap';
import { filesBelow } from '../fixtures/canaries.js';
import { TestService } from '../fixtures/service.js';
import { until } from '../fixtures/until.js';
import { wav } from '../fixtures/wav.js';
import { call, closeWire, FORM_TYPE, postForm, slotFor, slotForm, upload } from '../fixtures/wire.js';
import { matchError, RawClient, request } from '../http/raw-client.js';

const service = await TestService.start({ TAKEMARK_WORKERS: '1', TAKEMARK_MAX_UPLOADS: '24' });
const base = service.partnerUrl;
const { port } = service.service.partner;
t.teardown(async () => {
  closeWire();
  await service.stop();
});
const { apiKey: key } = await service.partner('volume');

/** Returns the engine's metrics as the operator sees them. */
async function engine(): Promise<Readonly<Record<string, number>>> {
  const text = (await call(service.operatorUrl, 'GET', '/metrics')).body.toString();
  return Object.fromEntries(
    [...text.matchAll(/^takemark_engine_(\w+) (\d+)$/gm)].map(([, name, value]) => [name!, Number(value)]),
  );
}

const nothingLeft = (name: string): Promise<true> =>
  until(async () => {
    const { uploads_in_flight: uploads, slabs_in_use: slabs } = await engine();
    return uploads === 0 && slabs === 0;
  }, `${name}: no upload and no slab is held`);

t.test('clients that leave, at every stage and in every manner', async (t) => {
  const audio = wav(2_500_000);
  await upload(base, key, audio);
  const files = [...(await filesBelow(service.directory)).keys()]
    .filter((path) => !path.startsWith('store'))
    .sort();
  const example = slotForm(await slotFor(base, key), audio);
  const stages: [string, number][] = [
    ['within the headers', -20],
    ['before the body', 0],
    ['within the first boundary', 6],
    ['within a field', 90],
    ['within the head of the file part', example.indexOf('take.wav') + 3],
    ['at the first audio byte', example.indexOf('audio/wav') + 13],
    ['within the first slab', 500_000],
    ['within the third slab', 2_300_000],
    ['before the last boundary', example.length - 20],
    ['within the last boundary', example.length - 6],
    ['one byte before the end', example.length - 1],
  ];
  await Promise.all(
    stages.flatMap(([name, at]) =>
      (['reset', 'close'] as const).map(async (manner) => {
        const slot = await slotFor(base, key);
        const body = slotForm(slot, audio);
        const path = `/uploads/${slot.uploadId}`;
        const whole = Buffer.concat([
          request('POST', path, { ...FORM_TYPE, 'Content-Length': String(body.length) }),
          body,
        ]);
        const client = new RawClient(port);
        await client.send(whole.subarray(0, whole.length - body.length + at));
        await delay(60);
        if (manner === 'reset') client.socket.resetAndDestroy();
        else client.destroy();
        // The slot stays open, and the process has released it.
        let status = 0;
        await until(
          async () => (status = (await postForm(base, slot, slotForm(slot, wav(3000)))).status) === 201,
        );
        t.equal(status, 201, `${name}, ${manner}: the slot may be posted to again`);
        t.equal(
          (await postForm(base, slot, slotForm(slot, wav(3000)))).status,
          409,
          `${name}, ${manner}: and then it is used`,
        );
      }),
    ),
  );

  // After the last boundary the upload is complete. The service stores it or not, but nothing hangs.
  for (const manner of ['reset', 'close', 'half-close'] as const) {
    const slot = await slotFor(base, key);
    const body = slotForm(slot, audio);
    const client = new RawClient(port);
    await client.send(
      Buffer.concat([
        request('POST', `/uploads/${slot.uploadId}`, { ...FORM_TYPE, 'Content-Length': String(body.length) }),
        body,
      ]),
    );
    if (manner === 'reset') client.socket.resetAndDestroy();
    else if (manner === 'close') client.destroy();
    else client.socket.end();
    const verify = async () =>
      (await call(base, 'POST', '/v1/verify', { key, body: { uploadId: slot.uploadId } })).status;
    const again = async () => (await postForm(base, slot, slotForm(slot, audio))).status;
    t.ok(
      await until(async () => [201, 409].includes(await again()) && (await verify()) === 200),
      `after the last boundary, ${manner}: repeating the post settles it`,
    );
    client.destroy();
  }
  await nothingLeft('at the end');
  t.strictSame(
    [...(await filesBelow(service.directory)).keys()].filter((path) => !path.startsWith('store')).sort(),
    files,
    'no file is left',
  );
  t.match(
    (await call(service.operatorUrl, 'GET', '/metrics')).body.toString(),
    /takemark_uploads_total\{outcome="aborted"\} [1-9]/,
    'they were counted',
  );
  t.notOk(
    service.log.some((line) => line.includes('"fault"')),
    'and are no fault of the service',
  );
});

t.test('16 stalled uploads hold no worker', async (t) => {
  const audio = wav(3_000_000);
  const before = await engine();
  const stalled = await Promise.all(
    Array.from({ length: 16 }, async (_, i) => {
      const slot = await slotFor(base, key);
      const body = slotForm(slot, audio);
      const client = new RawClient(port);
      // Some stall within their first slab, some in a later one.
      await client.send(
        Buffer.concat([
          request('POST', `/uploads/${slot.uploadId}`, {
            ...FORM_TYPE,
            'Content-Length': String(body.length),
          }),
          body.subarray(0, 40_000 + i * 170_000),
        ]),
      );
      // The parser may retain bytes that could begin a boundary.
      const audioBytes = 40_000 + i * 170_000 - body.indexOf('RIFF') - 100;
      return { client, slot, audioBytes, rest: body.subarray(40_000 + i * 170_000) };
    }),
  );
  t.teardown(() => stalled.forEach(({ client }) => client.destroy()));
  t.ok(
    await until(async () => (await engine())['uploads_in_flight'] === 16),
    'all of them are in the engine',
  );
  const sent = stalled.reduce((sum, { audioBytes }) => sum + audioBytes, before['bytes']!);
  t.ok(await until(async () => (await engine())['bytes']! >= sent), 'with what they have sent');
  await until(async () => (await engine())['slabs_in_use']! <= 16);
  const { slabs_in_use: slabs } = await engine();
  t.ok(slabs! <= 16, `at most one slab each: ${slabs}`);
  for (let i = 0; i < 4; i += 1) await upload(base, key, audio);
  t.equal(
    (await engine())['uploads_in_flight'],
    16,
    'four fast uploads go through the only worker while the others still wait',
  );

  // Half of them continue, the others leave.
  const answers = await Promise.all(
    stalled.map(async ({ client, rest }, i) => {
      if (i % 2 === 0) return void client.destroy();
      await client.send(rest);
      return (await client.read())?.status;
    }),
  );
  t.strictSame(
    answers,
    answers.map((_, i) => (i % 2 === 0 ? undefined : 201)),
    'who goes on is served as if nothing had been',
  );
  await nothingLeft('afterwards');
  t.equal((await engine())['worker_restarts'], before['worker_restarts'], 'no worker was lost');
});

t.test('a stalled upload is displaced when the engine is full', async (t) => {
  const slots = await Promise.all(Array.from({ length: 25 }, () => slotFor(base, key)));
  const clients = await Promise.all(
    slots.slice(0, 24).map(async (slot) => {
      const body = slotForm(slot, wav(100_000));
      const client = new RawClient(port);
      await client.send(
        Buffer.concat([
          request('POST', `/uploads/${slot.uploadId}`, {
            ...FORM_TYPE,
            'Content-Length': String(body.length),
          }),
          body.subarray(0, 50_000),
        ]),
      );
      return client;
    }),
  );
  t.teardown(() => clients.forEach((client) => client.destroy()));
  t.ok(await until(async () => (await engine())['uploads_in_flight'] === 24));
  const ended = Promise.race(
    clients.map(async (client, i) => ({ slot: slots[i]!, answer: await client.read() })),
  );
  const last = slots[24]!;
  const refusals: unknown[] = [];
  // Refused while the others may still send. None of them does.
  t.ok(
    await until(async () => {
      const { status, json, headers } = await postForm(base, last, slotForm(last, wav(100_000)));
      if (status !== 201)
        refusals.push({ status, reason: json?.['reason'], wait: headers.get('retry-after') });
      return status === 201;
    }),
    'a stalled one is displaced',
  );
  t.strictSame(
    refusals,
    refusals.map(() => ({ status: 503, reason: 'engine_full', wait: '2' })),
  );
  const { slot, answer } = await ended;
  matchError(t, answer, 'unavailable', 'engine_full', 'the one that stood still');
  t.match(
    (await call(service.operatorUrl, 'GET', '/metrics')).body.toString(),
    /takemark_displaced_total\{reason="upload_stalled"\} [1-9]/,
  );
  clients.forEach((client) => client.destroy());
  await nothingLeft('after they left');
  t.equal((await postForm(base, slot, slotForm(slot, wav(100_000)))).status, 201, 'its slot is still open');
});
