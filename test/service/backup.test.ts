/** Backups of one machine that are made while it serves, and what they bring back. */
import { mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { OperatorClient } from '../../src/cli/operator-client.js';
import { decodeSnapshot, encodeSnapshot, type SnapshotRow } from '../../src/core/codec/store-snapshot.js';
import { COPIED, makeBackup, restoreBackup } from '../../src/service/compose/backup.js';
import { readConfig } from '../../src/service/config/config.js';
import { collect, seeded, TestService } from '../fixtures/service.js';
import { namesBelow } from '../fixtures/sharded-path.js';
import { wav } from '../fixtures/wav.js';

type Receive = (body: AsyncIterable<Uint8Array>) => Promise<void>;

/** Returns a machine with keys and journals apart from its data directory, and with a place for backups. */
async function machine(t: Test) {
  const directory = await mkdtemp(join(tmpdir(), 'takemark-backup-'));
  t.teardown(() => rm(directory, { recursive: true, force: true }));
  const settings = {
    TAKEMARK_DATA_DIR: join(directory, 'data'),
    TAKEMARK_CONTENT_KEYS_DIR: join(directory, 'keys'),
    TAKEMARK_JOURNAL_DIR: join(directory, 'journals'),
  };
  const running = new Set<TestService>();
  t.teardown(async () => {
    for (const service of running) await service.stop({ keep: true });
  });
  return {
    settings,
    config: readConfig(settings),
    data: settings.TAKEMARK_DATA_DIR,
    backup: join(directory, 'backup'),
    elsewhere: join(directory, 'elsewhere'),
    async start(more: Readonly<Record<string, string>> = {}) {
      const service = await TestService.start({ ...settings, ...more });
      running.add(service);
      return service;
    },
    async stop(service: TestService) {
      running.delete(service);
      await service.stop({ keep: true });
    },
  };
}

/** Reads a snapshot as the command does. */
function snapshotOf(service: TestService): (receive: Receive) => Promise<void> {
  return async (receive) => {
    const client = new OperatorClient({
      url: service.operatorUrl,
      token: service.service.operatorToken,
      signal: new AbortController().signal,
      allowPlainHttp: false,
    });
    try {
      await client.readSnapshot(receive);
    } finally {
      client.close();
    }
  };
}

/** Resolves when no snapshot is held. */
async function freed({ readSnapshot }: TestService['service']['operations']['operator']): Promise<void> {
  for (;;) {
    try {
      const stream = await readSnapshot();
      for await (const _chunk of stream);
      return;
    } catch (error) {
      if ((error as { readonly reason?: string }).reason !== 'snapshot_running') throw error;
      await nextTurn();
    }
  }
}

/** Starts a service on an older store: refused first, and then with the code of the message. */
async function startRestored(
  { start }: Awaited<ReturnType<typeof machine>>,
  more: Readonly<Record<string, string>> = {},
): Promise<TestService> {
  const refusal = await start(more).then(
    () => new Error('it started'),
    (error: Error) => error,
  );
  const code = /TAKEMARK_ACCEPT_PUT_BACK=([0-9a-f]{16})/.exec(refusal.message)?.[1];
  if (code === undefined) throw refusal;
  return start({ ...more, TAKEMARK_ACCEPT_PUT_BACK: code });
}

const audioOf = (seed: number) => wav(2000, {}, seed);

t.test(
  'a backup under load brings back what was acknowledged before, and nothing erased since',
  async (t) => {
    const place = await machine(t);
    const { config, data, backup } = place;
    const service = await place.start();
    const { partnerId, caller } = await service.partner();
    const [kept, erasedBefore, erasedAfter] = await Promise.all(
      [1, 2, 3].map((seed) => service.issue(partnerId, audioOf(seed))),
    );
    const { partner } = service.service.operations;
    await partner.eraseProof(caller, { proofId: erasedBefore!.proofId });

    let during: Promise<unknown> | undefined;
    const made = await makeBackup(config, backup, (receive) =>
      snapshotOf(service)(async (body) => {
        // The snapshot exists from the first byte of the response on.
        during = service.issue(partnerId, audioOf(4));
        await receive(body);
      }),
    );
    const issuedDuring = (await during) as Awaited<ReturnType<TestService['issue']>>;
    await partner.eraseProof(caller, { proofId: erasedAfter!.proofId });
    t.ok(made.isBesideStore);
    const names = (await readdir(data)).filter((name) => !COPIED.some((copied) => copied === name));
    t.strictSame(names.sort(), ['endpoints.json', 'store'], 'every other file is copied');
    t.strictSame((await readdir(backup)).sort(), [
      'assets',
      'backup.json',
      'clock',
      'dead-letters',
      'files.sha256',
      'operator-token',
      'secrets.json',
      'signing',
      'store',
    ]);

    await place.stop(service);
    await rename(data, place.elsewhere);
    const restored = await restoreBackup(config, backup);
    t.strictSame(restored.rows, made.rows);
    const again = await startRestored(place);
    const verdictOf = async ({ file }: { readonly file: Buffer }) =>
      (await again.verify(caller, file)).verdict;
    t.strictSame(await Promise.all([kept!, erasedBefore!, erasedAfter!, issuedDuring].map(verdictOf)), [
      'valid',
      'unregistered',
      'unregistered',
      'unregistered',
    ]);
    const { proofs } = await again.service.operations.partner.listProofs(caller, {});
    t.strictSame(
      proofs.map(({ proofId }) => proofId),
      [kept!.proofId],
    );
    t.match(await again.service.operations.operator.verifyAudit({ partnerId }), { ok: true });
    t.match(await again.service.operations.operator.erasureStatus(erasedAfter!.proofId), {
      state: 'erased',
      assetPresent: false,
    });
    t.match(await again.issue(partnerId, audioOf(5)), { carrier: 'embedded' }, 'the service goes on');
  },
);

t.test('a backup that was cut off is refused, and leaves the service free for the next one', async (t) => {
  const place = await machine(t);
  const { config, backup, elsewhere } = place;
  const service = await place.start();
  await service.partner();
  const cut = makeBackup(config, backup, (receive) =>
    snapshotOf(service)((body) =>
      receive(
        (async function* () {
          for await (const chunk of body) {
            yield chunk.subarray(0, -20);
            return;
          }
        })(),
      ),
    ),
  );
  await t.rejects(cut, { name: 'SnapshotError', message: 'the snapshot ended early' });
  await t.rejects(restoreBackup(config, backup), /is not a complete backup/);
  await t.rejects(makeBackup(config, backup, snapshotOf(service)), /is not empty/);

  const { operator } = service.service.operations;
  const held = await operator.readSnapshot();
  await t.rejects(
    makeBackup(config, join(elsewhere, 'second'), snapshotOf(service)),
    { reason: 'snapshot_running' } as never,
    'one snapshot at a time',
  );
  held.destroy();
  await freed(operator);
  const { rows } = await makeBackup(config, join(elsewhere, 'third'), snapshotOf(service));
  t.ok(rows > 0);
});

t.test(
  'a service does not start on a restore that did not end, and a repeated restore begins again',
  async (t) => {
    const place = await machine(t);
    const { config, data, backup, elsewhere } = place;
    const service = await place.start();
    const { partnerId, caller } = await service.partner();
    const { file } = await service.issue(partnerId, audioOf(1));
    await makeBackup(config, backup, snapshotOf(service));
    await t.rejects(
      restoreBackup(config, backup),
      /is not empty: move .* away/,
      'the service has its data there',
    );
    await place.stop(service);
    await rename(data, elsewhere);

    const lines = (await readFile(join(backup, 'files.sha256'), 'utf8')).trim().split('\n');
    const asset = lines.map((line) => line.slice(66)).find((name) => name.startsWith('assets/'))!;
    const whole = await readFile(join(backup, asset));
    await writeFile(join(backup, asset), Buffer.concat([whole.subarray(0, -1), Buffer.from([0])]));
    await t.rejects(restoreBackup(config, backup), `${asset} is damaged`);
    await t.rejects(place.start(), /the restore of .* did not end/);
    t.ok((await readdir(data)).includes('restore-unfinished'));
    await writeFile(join(backup, asset), whole);
    await t.rejects(
      restoreBackup(readConfig({ ...place.settings, TAKEMARK_ENVIRONMENT: 'beta' }), backup),
      /is a backup of the environment production/,
    );

    await restoreBackup(config, backup);
    t.notOk((await readdir(data)).includes('restore-unfinished'));
    const again = await place.start();
    t.match(
      await again.verify(caller, file),
      { verdict: 'valid' },
      'nothing changed since, so no code is needed',
    );
  },
);

t.test('a restore is refused without journals, and with a list that names other files', async (t) => {
  const place = await machine(t);
  const { config, data, backup } = place;
  const service = await place.start();
  await service.partner();
  await makeBackup(config, backup, snapshotOf(service));
  await place.stop(service);
  await rm(data, { recursive: true });
  await rm(place.settings.TAKEMARK_JOURNAL_DIR, { recursive: true });
  await t.rejects(restoreBackup(config, backup), /has no journal of erasures/);
  await mkdir(join(data, 'content-keys'), { recursive: true });
  await restoreBackup(config, backup, { acceptLostJournals: true });
  t.ok((await readdir(data)).includes('content-keys'), 'keys stay where they are');

  await rm(data, { recursive: true });
  await writeFile(join(backup, 'files.sha256'), `${'0'.repeat(64)}  ../../elsewhere\n`);
  await t.rejects(restoreBackup(config, backup, { acceptLostJournals: true }), /files\.sha256 is damaged/);
});

t.test('the loss of the first disk loses no content, and brings back nothing erased', async (t) => {
  const place = await machine(t);
  const { settings, data, backup } = place;
  const mirror = { TAKEMARK_MIRROR_DIR: join(backup, '..', 'mirror') };
  const config = readConfig({ ...settings, ...mirror });
  const service = await place.start(mirror);
  const { partnerId, caller } = await service.partner();
  const [kept, erased] = await Promise.all([1, 2].map((seed) => service.issue(partnerId, audioOf(seed))));
  await makeBackup(config, backup, snapshotOf(service));
  await service.service.operations.partner.eraseProof(caller, { proofId: erased!.proofId });
  await place.stop(service);
  for (const path of [data, settings.TAKEMARK_CONTENT_KEYS_DIR, settings.TAKEMARK_JOURNAL_DIR])
    await rm(path, { recursive: true });

  await restoreBackup(config, backup);
  const again = await startRestored(place, mirror);
  t.match(await again.verify(caller, kept!.file), { verdict: 'valid' });
  t.match(await again.verify(caller, erased!.file), { verdict: 'unregistered' });
  const { read } = await again.service.operations.operator.readAsset(kept!.proofId, 'audio');
  t.ok((await collect(await read())).equals(kept!.file), 'its content is readable');
  await mirrored(again);
  const keys = [settings.TAKEMARK_CONTENT_KEYS_DIR, join(mirror.TAKEMARK_MIRROR_DIR, 'content-keys')];
  for (const path of keys)
    t.strictSame(keyNames(path), ['content-keys.canary.key', `${kept!.proofId}.key`], 'both disks have it');
});

t.test('a second disk that was absent catches up, and brings back no key of an erased proof', async (t) => {
  const place = await machine(t);
  const { settings, backup, elsewhere } = place;
  const directory = join(backup, '..', 'mirror');
  const mirror = { TAKEMARK_MIRROR_DIR: directory };
  let service = await place.start(mirror);
  const { partnerId, caller } = await service.partner();
  const [kept, erased] = await Promise.all([1, 2].map((seed) => service.issue(partnerId, audioOf(seed))));
  await place.stop(service);

  await rename(directory, elsewhere);
  service = await place.start();
  await service.service.operations.partner.eraseProof(caller, { proofId: erased!.proofId });
  const issued = await service.issue(partnerId, audioOf(3));
  await place.stop(service);

  await rename(elsewhere, directory);
  const keys = [settings.TAKEMARK_CONTENT_KEYS_DIR, join(directory, 'content-keys')];
  t.ok(keyNames(keys[1]!).includes(`${erased!.proofId}.key`), 'it has an old key');
  service = await place.start(mirror);
  t.strictSame(await mirrored(service), { copied: 1, destroyed: 1 });
  for (const path of keys)
    t.strictSame(keyNames(path), [
      'content-keys.canary.key',
      ...[kept!, issued].map(({ proofId }) => `${proofId}.key`).sort(),
    ]);
  const [own, copy] = await Promise.all(
    [settings.TAKEMARK_JOURNAL_DIR, join(directory, 'journals')].map((path) =>
      readFile(join(path, 'erasures.log'), 'utf8'),
    ),
  );
  for (const journal of [own, copy]) t.match(journal, erased!.proofId);
});

const keyNames = (directory: string): readonly string[] =>
  namesBelow(directory)
    .filter((name) => name.endsWith('.key'))
    .map((name) => basename(name))
    .sort();

/** Resolves with the counts of the log when both copies of the keys were compared. */
async function mirrored({
  log,
}: TestService): Promise<{ readonly copied: number; readonly destroyed: number }> {
  for (;;) {
    const line = log.find((each) => each.includes('"event":"content_keys_mirrored"'));
    if (line !== undefined) {
      const { copied, destroyed } = JSON.parse(line) as { copied: number; destroyed: number };
      return { copied, destroyed };
    }
    await nextTurn();
  }
}

t.test('a snapshot is read whole in pieces of any size, and never when its end is missing', async (t) => {
  const random = seeded(3);
  const rows: SnapshotRow[] = Array.from({ length: 40 }, (_, index) => [
    `row/${index}/ü`,
    Buffer.alloc(Math.floor(random() * 90), index),
  ]);
  const stream = await collect(encodeSnapshot(paged(rows, 7)));
  for (const size of [1, 5, 64, stream.length]) {
    const read: SnapshotRow[] = [];
    for await (const page of decodeSnapshot(pieces(stream, size))) read.push(...page);
    t.strictSame(
      read.map(([key, value]) => [key, Buffer.from(value)]),
      rows.map(([key, value]) => [key, Buffer.from(value)]),
      `${size} bytes`,
    );
  }
  const drain = async (bytes: Buffer): Promise<string> => {
    try {
      for await (const _page of decodeSnapshot(pieces(bytes, 50)));
      return 'read';
    } catch (error) {
      return (error as Error).name;
    }
  };
  for (let end = 0; end < stream.length; end += 3)
    if ((await drain(stream.subarray(0, end))) !== 'SnapshotError') t.fail(`${end} bytes were read`);
  t.equal(await drain(Buffer.concat([stream, Buffer.from([1])])), 'SnapshotError', 'bytes after the end');
  t.equal(await drain(Buffer.from('takemark store snapshot 2\n')), 'SnapshotError', 'another form');
});

async function* paged(rows: readonly SnapshotRow[], size: number) {
  for (let at = 0; at < rows.length; at += size) yield rows.slice(at, at + size);
}

async function* pieces(bytes: Buffer, size: number) {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}
