/** Fixtures of the sandbox: every one is answered as it was announced, in beta alone. */

import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import t, { type Test } from 'tap';
import { createClient, type Fixtures } from '../../src/client/index.js';
import { DECISION_REASON_MEANINGS } from '../../src/core/domain/reference/reasons.js';
import { DECISION_STATUSES, RECOMMENDED_ACTIONS, VERDICTS } from '../../src/core/domain/verdicts.js';
import {
  listFixtures,
  ORIGINALS,
  REASONS_WITHOUT_FIXTURE,
} from '../../src/service/operations/sandbox/fixtures.js';
import type { AnnouncedFixture } from '../../src/service/operations/sandbox/sandbox.js';
import { TestService } from '../fixtures/service.js';
import { call, closeWire } from '../fixtures/wire.js';

const beta = await TestService.start({ TAKEMARK_ENVIRONMENT: 'beta' });
const production = await TestService.start();
t.teardown(async () => {
  closeWire();
  await Promise.all([beta.stop(), production.stop()]);
});
const { apiKey: key, caller } = await beta.partner();
const get = (target: string, headers: Readonly<Record<string, string>> = {}, method = 'GET') =>
  call(beta.partnerUrl, method, target, { key, headers });
const list = async (): Promise<readonly AnnouncedFixture[]> => {
  const { status, json } = await get('/v1/sandbox/fixtures');
  if (status === 200) return json!['fixtures'] as readonly AnnouncedFixture[];
  // An original that was erased a moment ago is issued anew when its erasure has gone through.
  if (status !== 503) throw new Error(`the list was answered with ${status}`);
  await new Promise((resolve) => setTimeout(resolve, 200));
  return list();
};
const download = async (fixture: AnnouncedFixture, part: 'audio' | 'sidecar') => {
  const file = fixture.files.find((each) => each.part === part);
  return file === undefined ? undefined : (await get(file.href)).body;
};
const used = async () => (await beta.service.operations.partner.readUsage(caller, { days: 1 })).used;

/** Verifies every fixture, and compares what was announced. */
async function verifyAll(t: Test, service = beta, by = caller): Promise<readonly AnnouncedFixture[]> {
  const fixtures = await list();
  for (const fixture of fixtures) {
    const { verdict, good, decision } = await service.verify(
      by,
      (await download(fixture, 'audio'))!,
      await download(fixture, 'sidecar'),
    );
    const { status, reasons, recommendedAction, credentialCarrier } = decision;
    t.strictSame(
      { verdict, good, decision: { status, reasons, recommendedAction, credentialCarrier } },
      { verdict: fixture.verdict, good: fixture.good, decision: fixture.decision },
      fixture.name,
    );
  }
  return fixtures;
}

t.test('each fixture is answered as it was announced, and covers what verify can say', async (t) => {
  const before = await used();
  const fixtures = await list();
  t.equal(await used(), before, 'the list is free');
  await verifyAll(t);
  t.strictSame(new Set(fixtures.map(({ verdict }) => verdict)), new Set(VERDICTS), 'six verdicts');
  t.strictSame(
    new Set(fixtures.map(({ decision }) => decision.status)),
    new Set(DECISION_STATUSES),
    'every status',
  );
  t.strictSame(
    new Set(fixtures.map(({ decision }) => decision.recommendedAction)),
    new Set(RECOMMENDED_ACTIONS),
    'every action',
  );
  const reasons = new Set(fixtures.flatMap(({ decision }) => decision.reasons));
  t.strictSame(
    [...reasons, ...Object.keys(REASONS_WITHOUT_FIXTURE)].sort(),
    Object.keys(DECISION_REASON_MEANINGS).sort(),
    'every reason has a fixture, or a cause for none',
  );
  t.equal(new Set(fixtures.map(({ name }) => name)).size, listFixtures().length, 'each name once');
});

t.test('a fixture with a match is identified as announced', async (t) => {
  const { partner } = beta.service.operations;
  const announced = (await list()).filter(({ match }) => match !== undefined);
  t.strictSame(new Set(announced.map(({ match }) => match)), new Set(['exact_file', 'same_samples']));
  for (const fixture of announced) {
    const slot = await partner.createUpload(caller, { purpose: 'identify' });
    const receiver = await partner.receiveUpload(slot.uploadId, new Map(Object.entries(slot.fields)));
    await receiver.write((await download(fixture, 'audio'))!);
    const { uploadId } = await receiver.finish();
    const identified = await partner.identify(caller, { uploadId });
    t.equal('matches' in identified && identified.matches[0]?.type, fixture.match, fixture.name);
  }
});

t.test('a file is downloaded with its digest, in ranges, and once', async (t) => {
  const fixture = (await list()).find(({ name }) => name === 'valid_pair')!;
  for (const { href, bytes, sha256, mediaType, part } of fixture.files) {
    const { status, headers, body } = await get(href);
    t.equal(status, 200, part);
    t.equal(createHash('sha256').update(body).digest('hex'), sha256);
    t.equal(headers.get('etag'), `"${sha256}"`);
    t.equal(headers.get('content-length'), String(bytes));
    t.equal(headers.get('content-type'), mediaType);
    t.equal((await get(href, { 'if-none-match': `"${sha256}"` })).status, 304);
    const head = await get(href, {}, 'HEAD');
    t.strictSame(
      [head.status, head.headers.get('content-length'), head.body.length],
      [200, String(bytes), 0],
    );
    const range = await get(href, { range: 'bytes=4-7' });
    t.equal(range.status, 206);
    t.ok(range.body.equals(body.subarray(4, 8)));
  }
  for (const target of ['valid/sidecar', 'nothing/audio'])
    t.equal((await get(`/v1/sandbox/fixtures/${target}`)).status, 404, target);
  t.equal((await call(beta.partnerUrl, 'GET', '/v1/sandbox/fixtures')).status, 403, 'only with a key');
});

t.test('callers at once find one set, and what was erased is made anew', async (t) => {
  const first = await Promise.all([list(), list(), list()]);
  t.strictSame(first[1], first[0]);
  t.strictSame(first[2], first[0]);
  const { operations } = beta.service;
  const sandbox = (await operations.operator.listPartners()).filter(({ name }) => name === 'Sandbox');
  t.equal(sandbox.length, 1, 'one partner owns them');
  const owner = { ...caller, partnerId: sandbox[0]!.partnerId };
  const { proofs } = await operations.partner.listProofs(owner, {});
  t.equal(proofs.length, ORIGINALS.length, 'one proof of each original');
  for (const title of ['valid', 'needs_review'])
    await operations.partner.eraseProof(owner, {
      proofId: proofs.find(({ song }) => song.title === title)!.proofId,
    });
  const again = await verifyAll(t);
  t.not(again[0]!.files[0]!.sha256, first[0][0]!.files[0]!.sha256, 'another file');
});

t.test('in production the paths do not exist', async (t) => {
  const { apiKey } = await production.partner();
  for (const target of ['/v1/sandbox/fixtures', '/v1/sandbox/fixtures/valid/audio']) {
    const { status, json } = await call(production.partnerUrl, 'GET', target, {
      key: apiKey,
      checked: false,
    });
    t.equal(status, 404);
    t.match(json, { code: 'not_found', reason: 'unknown_route' });
  }
});

t.test("a partner's pipeline: with the client, and on the command line", async (t) => {
  const client = createClient({ baseUrl: beta.partnerUrl, apiKey: key });
  t.teardown(() => client.close());
  const { fixtures } = await client.sandboxFixtures();
  for (const { name, verdict, good, decision, files } of fixtures) {
    const [audio, sidecar] = await Promise.all(
      files.map(async ({ part }) => buffer((await client.readSandboxFile(name, { part })).body)),
    );
    const result = await client.verifyFile(audio!, sidecar === undefined ? {} : { sidecar });
    t.match(result, { verdict, good, decision }, `${name} with the client`);
    t.strictSame(result.decision!.reasons, decision.reasons);
  }

  const directory = await mkdtemp(join(tmpdir(), 'takemark-fixtures-'));
  t.teardown(() => rm(directory, { recursive: true }));
  const takemark = (...argv: readonly string[]) =>
    new Promise<{ readonly code: unknown; readonly stdout: string; readonly stderr: string }>((resolve) =>
      execFile(
        process.execPath,
        [new URL('../../src/cli/main.js', import.meta.url).pathname, ...argv],
        {
          env: { PATH: process.env['PATH'], TAKEMARK_URL: beta.partnerUrl, TAKEMARK_API_KEY: key },
          maxBuffer: 1 << 24,
        },
        (error, stdout, stderr) => resolve({ code: error?.code ?? 0, stdout, stderr }),
      ),
    );
  t.match(await takemark('fixtures', '--out', directory), { code: 0, stderr: /wrote \d+ files/ });
  const written = JSON.parse(await readFile(join(directory, 'fixtures.json'), 'utf8')) as Fixtures;
  t.strictSame(written.fixtures, fixtures, 'the announced answers lie beside the files');
  t.match(
    await takemark('fixtures', '--out', directory),
    { code: 2, stderr: /exists; give --force/ },
    'nothing is replaced unasked',
  );
  t.match(await takemark('fixtures', '--out', directory, '--force'), { code: 0 });
  t.match(await takemark('fixtures', '--out', join(directory, 'none')), {
    code: 2,
    stderr: /no such directory/,
  });
  const { stdout } = await takemark('verify', directory, '--format', 'jsonl');
  const lines = stdout
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  for (const { name, verdict, decision, files } of fixtures) {
    const line = lines.find(({ file }) => file === join(directory, files[0]!.fileName));
    t.match(line, { result: { verdict, decision } }, `${name} on the command line`);
  }
});
