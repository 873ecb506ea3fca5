/** Tests that erased content cannot be decrypted any more from any copy. */
import { cpSync, existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { Canaries, filesBelow } from '../fixtures/canaries.js';
import { TestService } from '../fixtures/service.js';
import { keyNamesBelow, shardedPath } from '../fixtures/sharded-path.js';
import { until } from '../fixtures/until.js';
import { wav } from '../fixtures/wav.js';

const TOKEN = 'operator-token-of-the-service-under-test';

/** Starts a service with a proof of each carrier. Its content occurs nowhere else. */
async function withProofs(t: Test) {
  const directory = await mkdtemp(join(tmpdir(), 'takemark-shredding-'));
  t.teardown(() => rm(directory, { recursive: true, force: true }));
  const settings = {
    TAKEMARK_DATA_DIR: join(directory, 'data'),
    TAKEMARK_CONTENT_KEYS_DIR: join(directory, 'keys'),
    TAKEMARK_OPERATOR_TOKEN: TOKEN,
  };
  let service = await TestService.start(settings);
  t.teardown(() => service.stop({ keep: true }));
  const canaries = new Canaries();
  const { partnerId, caller } = await service.partner();
  const issue = async (carrier: 'embedded' | 'sidecar') => {
    const audio = wav(150_000, {}, carrier === 'embedded' ? 1 : 2);
    canaries.pieces(`audio ${carrier}`, audio.subarray(60_000, 64_000));
    const issued = await service.issue(partnerId, audio, {
      carrier,
      song: canaries.text(`title ${carrier}`),
      fileName: `${canaries.text(`name ${carrier}`)}.wav`,
    });
    if (issued.sidecar !== undefined) canaries.plant('sidecar', issued.sidecar);
    await service.service.operations.operator.recordDeclaration(issued.proofId, {
      surveyVersion: '2026-01',
      submissionId: 'sub_1',
      subject: canaries.text(`subject ${carrier}`),
      submittedAt: 1_767_229_200,
      answers: { declaredOrigin: 'from_scratch', aiRoles: ['none'] },
    });
    return issued;
  };
  const embedded = await issue('embedded');
  const pair = await issue('sidecar');
  return {
    directory,
    canaries,
    partnerId,
    caller,
    embedded,
    pair,
    service: () => service,
    restart: async () => {
      await service.stop({ keep: true });
      service = await TestService.start(settings);
    },
  };
}

/** Returns the names of content that is found in plain text below a directory. */
async function foundBelow(canaries: Canaries, directory: string): Promise<readonly string[]> {
  return [...(await filesBelow(directory))].flatMap(([path, bytes]) =>
    canaries.find(bytes).map((name) => `${name} in ${path}`),
  );
}

void t.test('no issued content is stored in plain text, and erased content has no key', async (t) => {
  const { directory, canaries, caller, embedded, pair, service, restart } = await withProofs(t);
  t.strictSame(await foundBelow(canaries, directory), [], 'while the proofs exist');
  const { partner, operator } = service().service.operations;
  t.match(await partner.readProof(caller, embedded), { song: { title: /^Cnry-title embedded-/ } });
  t.match(
    (await partner.listProofs(caller, {})).proofs.map(({ song }) => song.title),
    [/^Cnry-title sidecar-/, /^Cnry-title embedded-/],
    'a list reads its summaries, which are encrypted too',
  );
  t.equal((await service().verify(caller, embedded.file)).verdict, 'valid');
  t.equal((await service().verify(caller, pair.file, pair.sidecar)).verdict, 'valid');
  const part = await (await operator.readAsset(embedded.proofId, 'audio')).read({
    start: 65_000,
    end: 66_000,
  });
  t.ok(
    Buffer.concat(await part.toArray()).equals(embedded.file.subarray(65_000, 66_001)),
    'a range across two blocks',
  );

  const backup = join(directory, 'backup');
  await service().stop({ keep: true });
  cpSync(join(directory, 'data'), backup, { recursive: true });
  await restart();
  const { partner: again } = service().service.operations;
  t.equal((await again.eraseProof(caller, embedded)).outcome, 'erased');
  t.strictSame(keyNamesBelow(join(directory, 'keys')), [`${pair.proofId}.key`], 'its key is gone at once');
  t.strictSame(await foundBelow(canaries, directory), [], 'neither the data nor its backup has the content');
  t.equal((await service().verify(caller, embedded.file)).verdict, 'unregistered');

  // The backup is restored with its journals, which have no record of the erasure.
  await service().stop({ keep: true });
  rmSync(join(directory, 'data'), { recursive: true });
  renameSync(backup, join(directory, 'data'));
  await restart();
  const { partner: restored } = service().service.operations;
  await t.rejects(restored.readProof(caller, embedded), { code: 'internal', reason: 'record_damaged' });
  await t.rejects(restored.listProofs(caller, {}), { code: 'internal', reason: 'record_damaged' });
  t.match(
    await restored.readProof(caller, pair),
    { song: { title: /^Cnry-title sidecar-/ } },
    'the other one is readable',
  );
  t.equal((await restored.eraseProof(caller, embedded)).outcome, 'erased', 'it can be erased once more');
  await t.rejects(restored.readProof(caller, embedded), { code: 'not_found' });
});

void t.test('where the keys are away, the tombstone holds and a repeat completes', async (t) => {
  const { directory, canaries, caller, embedded, pair, service } = await withProofs(t);
  const { partner } = service().service.operations;
  const keys = join(directory, 'keys');
  renameSync(keys, `${keys}-away`);
  writeFileSync(keys, '');
  const unavailable = { code: 'unavailable', reason: 'store_unavailable' };
  await t.rejects(partner.eraseProof(caller, embedded), unavailable);
  await t.rejects(partner.readProof(caller, embedded), { code: 'not_found' }, 'the tombstone holds');
  t.match(await partner.listProofs(caller, {}), { proofs: [{ proofId: pair.proofId }] });
  await t.rejects(partner.eraseProof(caller, embedded), unavailable, 'nor is it called done');
  rmSync(keys);
  renameSync(`${keys}-away`, keys);
  t.ok(existsSync(shardedPath(keys, `${embedded.proofId}.key`)));
  t.equal((await partner.eraseProof(caller, embedded)).outcome, 'already_erased');
  t.notOk(existsSync(shardedPath(keys, `${embedded.proofId}.key`)));
  t.strictSame(await foundBelow(canaries, directory), []);
});

void t.test('what a killed issuing left has no key after the next start', async (t) => {
  const { directory, service, restart, partnerId } = await withProofs(t);
  const before = keyNamesBelow(join(directory, 'keys'));
  async function* breaking(): AsyncGenerator<Uint8Array> {
    yield wav(10_000);
    throw new Error('the client left');
  }
  await t.rejects(
    service().service.operations.operator.issueProof({
      partnerId,
      songTitle: 'Never',
      fileName: 'never.wav',
      carrier: 'embedded',
      audio: breaking(),
    }),
    /the client left/,
  );
  t.equal(keyNamesBelow(join(directory, 'keys')).length, before.length + 1);
  await restart();
  t.strictSame(keyNamesBelow(join(directory, 'keys')), before);
});

void t.test('a directory of keys that cannot be made ends the start', async (t) => {
  const directory = t.testdir();
  mkdirSync(join(directory, 'data'));
  writeFileSync(join(directory, 'keys'), '');
  await t.rejects(
    TestService.start({
      TAKEMARK_DATA_DIR: join(directory, 'data'),
      TAKEMARK_CONTENT_KEYS_DIR: join(directory, 'keys'),
    }),
    { message: /^TAKEMARK_CONTENT_KEYS_DIR: .+ is not a directory$/ },
  );
});

void t.test('a start without the keys confirms no erasure', async (t) => {
  const { directory, caller, embedded, service, restart } = await withProofs(t);
  const { proofId } = embedded;
  const keys = join(directory, 'keys');
  const away = `${keys}-away`;
  renameSync(keys, away);
  writeFileSync(keys, '');
  await t.rejects(service().service.operations.partner.eraseProof(caller, embedded), { code: 'unavailable' });
  const confirmed = async () =>
    (await service().service.operations.operator.erasureStatus(proofId)).confirmedAt !== undefined;
  await service().stop({ keep: true });

  // The volume is not mounted.
  rmSync(keys);
  mkdirSync(keys);
  await restart();
  await setTimeout(1500);
  t.notOk(await confirmed());
  await service().stop({ keep: true });

  rmSync(keys, { recursive: true });
  renameSync(away, keys);
  t.ok(existsSync(shardedPath(keys, `${proofId}.key`)));
  await restart();
  await until(confirmed);
  t.notOk(existsSync(shardedPath(keys, `${proofId}.key`)), 'the key that came back is destroyed');
});
