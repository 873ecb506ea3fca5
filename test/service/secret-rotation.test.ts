/**
 * Secrets of a cluster are replaced while processes with the bundle before and after each step work on the
 * same store.
 */
import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { RecordCodec } from '../../src/core/codec/record.js';
import { clusterIdentity } from '../../src/service/adapters/signing/cluster-bundle.js';
import { makeSecrets, rotateSecrets } from '../../src/service/compose/tools.js';
import { readConfig } from '../../src/service/config/config.js';
import { withLevel } from '../adapters/embedded-process.js';
import { authenticatorOf, formerRecord } from '../fixtures/authentication.js';
import { TestService } from '../fixtures/service.js';
import { wav } from '../fixtures/wav.js';
import { call } from '../fixtures/wire.js';
import { RestartedService } from '../operations/restarted-service.js';

const config = readConfig({});
const KEY = 'rotation-idempotency-key-1';

t.test('what was made before a step works after it, and the other way round', async (t) => {
  const directory = t.testdir();
  const path = join(directory, 'bundle.json');
  const bundles = [makeSecrets(config)];
  const now = { at: Date.now() };
  const step = (name: 'add' | 'use' | 'drop') =>
    rotateSecrets(
      config,
      { text: bundles.at(-1)!, name: 'bundle.json' },
      { step: name },
      { now: () => now.at },
    );
  bundles.push(step('add'));
  bundles.push(step('use'));
  t.throws(() => step('drop'), /upload-policy: the old secret was replaced less than 25 hours ago.*--early/);
  now.at += 25 * 3_600_000;
  bundles.push(step('drop'));
  const [initial, added, used, dropped] = bundles.map((text) => JSON.parse(text) as Record<string, unknown>);
  t.strictNotSame(used?.['operatorToken'], initial?.['operatorToken']);
  t.strictSame(
    [added?.['operatorToken'], dropped?.['operatorToken']],
    [initial?.['operatorToken'], used?.['operatorToken']],
  );

  await writeFile(path, bundles[0]!);
  const house = await RestartedService.start({ TAKEMARK_SECRETS_FILE: path });
  t.teardown(() => house.stop());
  const give = (index: number) => house.restart(() => writeFile(path, bundles[index]!));
  const { partnerId, apiKey: firstKey } = await house.service.partner();
  const keys = [firstKey];
  const files: Buffer[] = [];
  const kids = new Set<string>();

  // Two processes side by side, as the store sees them: one with the bundle before the step, one with that
  // after it, in turns.
  for (const [before, after] of [
    [0, 1],
    [1, 2],
    [2, 3],
  ] as const) {
    const mix = `${before}|${after}`;
    for (const [maker, checker] of [
      [before, after],
      [after, before],
    ] as const) {
      await give(maker);
      const caller = await house.partner.authenticate(keys[0]);
      for (const song of ['one', 'two'])
        files.push((await house.service.issue(partnerId, wav(2000, {}, files.length + 1), { song })).file);
      kids.add(
        (house.service.log.find((line) => line.includes('"kid"')) ?? '').replace(/.*"kid":"(\w+)".*/s, '$1'),
      );
      const slot = await house.partner.createUpload(caller, { purpose: 'verify' });
      const { nextCursor } = await house.partner.listProofs(caller, { limit: 1 });
      const made = (await house.operator.createKey({ partnerId, name: mix })).apiKey;
      const token = house.service.service.operatorToken;
      const rotating = await house.partner.authenticate(made);
      const rotated = await house.partner.rotateKey(rotating, made, `${KEY}-${maker}-${checker}`);

      await give(checker);
      for (const key of [...keys, made, rotated.apiKey])
        t.equal((await house.partner.authenticate(key)).partnerId, partnerId, `${mix}: keys`);
      const again = await house.partner.rotateKey(
        await house.partner.authenticate(made),
        made,
        `${KEY}-${maker}-${checker}`,
      );
      t.match(again, { apiKey: rotated.apiKey, replayed: true }, `${mix}: a replay gives the same key`);
      t.equal(
        (await house.partner.listProofs(caller, { limit: 1, cursor: nextCursor! })).proofs.length,
        1,
        `${mix}: a cursor goes on`,
      );
      const receiver = await house.partner.receiveUpload(slot.uploadId, new Map(Object.entries(slot.fields)));
      await receiver.write(wav(1000));
      await receiver.finish();
      for (const file of files)
        t.equal(
          (await house.service.verify(caller, file)).verdict,
          'valid',
          `${mix}: what was issued stays valid`,
        );
      t.match(await house.operator.verifyAudit({ partnerId }), { ok: true }, `${mix}: the audit log`);
      const asked = await call(house.service.operatorUrl, 'GET', '/operator/v1/partners', {
        headers: { authorization: `Bearer ${token}` },
      });
      t.equal(asked.status, 200, `${mix}: the operator's token`);
      keys.push(rotated.apiKey);
    }
  }
  t.equal(kids.size, 2, 'two identities signed');

  // Two steps at once are what the order is there to prevent: the journals were written on with a secret that
  // is unknown here.
  await give(2);
  await house.partner.createUpload(await house.partner.authenticate(keys[0]), { purpose: 'verify' });
  await t.rejects(give(0), /is broken at line .*signed with a secret that is no longer kept/);
  await give(3);
  t.match(await house.operator.verifyAudit({ partnerId }), { ok: true });
});

t.test('an identity that is given in files leaves the one of the bundle known', async (t) => {
  const [own, given] = [t.testdir(), makeSecrets(config)];
  const settings = { TAKEMARK_SECRETS_FILE: join(own, 'bundle.json'), TAKEMARK_DATA_DIR: join(own, 'data') };
  await writeFile(settings.TAKEMARK_SECRETS_FILE, makeSecrets(config));
  const before = await TestService.start(settings);
  const { partnerId, caller } = await before.partner();
  const { file } = await before.issue(partnerId, wav(2000));
  await before.stop({ keep: true });
  const signing: Record<string, string> = {};
  for (const [name, pem] of Object.entries(
    (JSON.parse(given) as { readonly signing: Readonly<Record<string, string>> }).signing,
  )) {
    const variable = {
      certificate: 'TAKEMARK_SIGNING_CERT',
      key: 'TAKEMARK_SIGNING_KEY',
      authority: 'TAKEMARK_SIGNING_AUTHORITY',
    }[name];
    if (variable !== undefined) await writeFile((signing[variable] = join(own, name)), pem);
  }
  t.equal(Object.keys(signing).length, 3);
  const after = await TestService.start({ ...settings, ...signing });
  t.teardown(() => after.stop());
  t.equal((await after.verify(caller, file)).verdict, 'valid');
  const { file: newer } = await after.issue(partnerId, wav(2000, {}, 2), { song: 'two' });
  t.equal((await after.verify(caller, newer)).verdict, 'valid');
});

t.test('steps that do not fit are refused, each with what to do', (t) => {
  const first = makeSecrets(config);
  const at = (seconds: number) => ({ now: () => seconds * 1000 });
  const rotate = (
    text: string,
    step: 'add' | 'use' | 'drop',
    purposes?: readonly string[],
    seconds = 0,
    early = false,
  ) => rotateSecrets(config, { text, name: 'bundle.json' }, { step, purposes, early }, at(seconds));
  t.throws(() => rotate(first, 'use'), /key-pepper: there is no new secret to use: run --step add first/);
  t.throws(() => rotate(first, 'drop'), /upload-policy: there is no old secret to drop/);
  t.throws(
    () => rotate(first, 'add', ['cursors']),
    /unknown purpose cursors; the purposes are key-pepper, .*operator-token/,
  );
  const added = rotate(first, 'add', ['cursor']);
  t.throws(
    () => rotate(added, 'add', ['cursor']),
    /cursor: the secret that was added earlier is not in use yet/,
  );
  t.strictSame(
    { ...JSON.parse(added), secrets: undefined },
    { ...JSON.parse(first), secrets: undefined },
    'only what was asked for',
  );
  const used = rotate(added, 'use', ['cursor'], 1000);
  t.throws(() => rotate(used, 'drop', ['cursor'], 1000 + 25 * 3600 - 1), /--early/);
  for (const dropped of [
    rotate(used, 'drop', ['cursor'], 1000 + 25 * 3600),
    rotate(used, 'drop', ['cursor'], 1000, true),
  ]) {
    const { cursor } = (JSON.parse(dropped) as { secrets: Record<string, { id: string }[]> }).secrets;
    t.equal(cursor?.length, 1);
    t.not(
      cursor?.[0]?.id,
      (JSON.parse(first) as { secrets: Record<string, { id: string }[]> }).secrets['cursor']?.[0]?.id,
    );
  }
  for (const purpose of ['key-pepper', 'audit', 'event', 'row', 'signing']) {
    const next = rotate(rotate(first, 'add', [purpose]), 'use', [purpose]);
    t.throws(() => rotate(next, 'drop', [purpose], 9_999_999, true), /they cannot be dropped/);
    t.ok(rotate(next, 'add', [purpose]), 'and the next rotation is possible');
  }
  t.throws(
    () =>
      rotateSecrets(
        { ...config, environment: 'beta' },
        { text: first, name: 'bundle.json' },
        { step: 'add' },
      ),
    /belongs to the environment production/,
  );
  t.throws(() => rotate('{}', 'add'), /format/);
  t.end();
});

/** Returns the text of a bundle as versions wrote it that had no secrets for rows and events. */
function former(text: string): string {
  const bundle = JSON.parse(text) as { secrets: Record<string, unknown> };
  const { event: _, row: __, ...secrets } = bundle.secrets;
  return JSON.stringify({ ...bundle, secrets });
}

t.test('a bundle of before needs no step: what it lacks follows from what it has', (t) => {
  const text = former(makeSecrets(config));
  const rotate = (given: string, step: 'add' | 'use') =>
    rotateSecrets(config, { text: given, name: 'bundle.json' }, { step }, { now: () => 0 });
  const idsOf = (given: string, purpose: 'event' | 'row') =>
    clusterIdentity(given, 'bundle.json', 'production')
      .secrets.all(purpose)
      .map(({ id, key }) => `${id} ${Buffer.from(key).toString('hex')}`);
  const before = idsOf(text, 'row');
  t.equal(before.length, 1);
  t.strictSame(idsOf(text, 'row'), before, 'the same in every process');
  t.not(before[0], idsOf(text, 'event')[0], 'and another for each purpose');
  // Both steps, by this version and by one that knows nothing of these purposes.
  const added = rotate(text, 'add');
  const used = rotate(added, 'use');
  t.equal(idsOf(added, 'row')[0], before[0]);
  t.ok(idsOf(used, 'row').includes(before[0]!), 'what was made before goes on to verify');
  t.not(idsOf(used, 'row')[0], before[0]);
  t.strictSame(
    Object.keys((JSON.parse(added) as { secrets: object }).secrets).toSorted(),
    Object.keys((JSON.parse(makeSecrets(config)) as { secrets: object }).secrets).toSorted(),
    'written out from then on',
  );
  t.strictSame(idsOf(former(added), 'row')[0], before[0]);
  t.ok(idsOf(former(used), 'row').includes(before[0]!));
  t.end();
});

t.test('a data directory of before is taken over at its first start, and at no other', async (t) => {
  const house = await RestartedService.start();
  t.teardown(() => house.service.stop().catch(() => undefined));
  const { partnerId, caller } = await house.service.partner();
  const { file } = await house.service.issue(partnerId, wav(2000), { song: 'kept' });
  const secretsPath = join(house.directory, 'secrets.json');
  const codec = new RecordCodec(await authenticatorOf(house.directory, 'row'));
  const asBefore = () =>
    withLevel(join(house.directory, 'store'), async (level) => {
      for (const [key, row] of await level.iterator().all())
        await level.put(
          key,
          formerRecord(
            key,
            key === 'meta/format'
              ? { format: 3 }
              : row[0] === 1
                ? codec.decodeFormer(key, row)
                : codec.decode(key, row),
          ),
        );
    });
  await house.restart(async () => {
    await asBefore();
    await writeFile(secretsPath, former(await readFile(secretsPath, 'utf8')));
  });
  t.equal((await house.service.verify(caller, file)).verdict, 'valid');
  const whole = JSON.parse(await readFile(secretsPath, 'utf8')) as { secrets: Record<string, unknown> };
  t.ok(
    whole.secrets['row'] !== undefined && whole.secrets['event'] !== undefined,
    'the secrets are written out once the store has its codes',
  );
  t.equal((await stat(secretsPath)).mode & 0o777, 0o600);
  await house.restart();
  t.equal((await house.service.verify(caller, file)).verdict, 'valid');
  const own = new RecordCodec(await authenticatorOf(house.directory, 'row'));
  await t.rejects(
    house.restart(() =>
      withLevel(join(house.directory, 'store'), async (level) => {
        for (const [key, row] of await level.iterator().all())
          await level.put(
            key,
            formerRecord(key, key === 'meta/format' ? { format: 3 } : own.decode(key, row)),
          );
      }),
    ),
    { name: 'StoreOpenError', code: 'unauthenticated' },
  );
});
