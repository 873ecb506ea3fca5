/** Tests keys, rotation, limits and usage on a whole service, to the second. */
import t from 'tap';
import type { Caller } from '../../src/service/operations/caller.js';
import { wav } from '../fixtures/wav.js';
import { notFound, RestartedService } from './restarted-service.js';

const house = await RestartedService.start({
  TAKEMARK_DOWNLOADS: '{"plugin/macos-arm64":"https://downloads.example/plugin.pkg"}',
});
t.teardown(() => house.stop());

const IDEMPOTENCY_KEY = '3f1c8f5e-0000-4000-8000-000000000001';

t.test('a rotated key lives 72 hours beside its one successor', async (t) => {
  const { partnerId, apiKey, keyId, caller } = await house.service.partner();
  const rotate = (idempotencyKey = IDEMPOTENCY_KEY) =>
    house.partner.rotateKey(caller, apiKey, idempotencyKey);
  // Keys of the same second are sorted by id.
  house.clock.advance(1);
  const start = house.seconds();
  for (const bad of [
    '',
    'x'.repeat(15),
    'x'.repeat(129),
    'with a space in it',
    'tab\tin the middle',
    'caf\u00e9caf\u00e9caf\u00e9caf\u00e9',
  ]) {
    await t.rejects(rotate(bad), { code: 'invalid_request', reason: 'invalid_member' });
  }
  t.match(
    await house.partner.listKeys(caller, {}),
    { keys: [{ keyId, status: 'active' }] },
    'a refused rotation changes nothing',
  );

  const answers = await Promise.all(Array.from({ length: 100 }, () => rotate()));
  const first = answers.find(({ replayed }) => !replayed)!;
  t.equal(answers.filter(({ replayed }) => !replayed).length, 1);
  for (const answer of answers) t.strictSame({ ...answer, replayed: false }, first);
  t.match(first, { name: 'test', previousKeyExpiresAt: start + 72 * 3600 });
  const successor = await house.partner.authenticate(first.apiKey);
  t.strictSame(successor, { ...caller, keyId: first.keyId }, 'same partner, plan and scopes');
  t.match(await house.partner.listKeys(caller, {}), {
    keys: [
      { keyId, status: 'expiring', expiresAt: first.previousKeyExpiresAt },
      { keyId: first.keyId, status: 'active', name: 'test', plan: 'volume' },
    ],
  });
  await t.rejects(rotate(`${IDEMPOTENCY_KEY}x`), { code: 'conflict', reason: 'already_rotated' });
  t.equal(
    (await house.operator.readAudit({ partnerId, fromSequence: 1, limit: 100 })).filter(
      ({ action }) => action === 'key_rotated',
    ).length,
    1,
  );

  await house.restart();
  t.strictSame(await rotate(), { ...first, replayed: true }, 'after a restart');
  const disk = await house.diskText();
  t.notOk(
    disk.includes(first.apiKey.split('_')[4]!) || disk.includes(apiKey.split('_')[4]!),
    'no secret is on the disk',
  );

  house.clock.moveTo(start + 24 * 3600 - 1);
  t.strictSame(await rotate(), { ...first, replayed: true }, 'one second before 24 hours');
  house.clock.moveTo(start + 24 * 3600);
  await t.rejects(rotate(), { code: 'conflict', reason: 'already_rotated' }, '24 hours');
  house.clock.moveTo(start + 72 * 3600 - 1);
  t.match(await house.partner.authenticate(apiKey), { keyId }, 'one second before 72 hours');
  house.clock.moveTo(start + 72 * 3600);
  await t.rejects(house.partner.authenticate(apiKey), { code: 'forbidden' }, '72 hours');
  t.match(await house.partner.listKeys(successor, {}), {
    keys: [{ status: 'expired' }, { status: 'active' }],
  });

  // One call of five a day is available again after a fraction of a day. After three days all five are.
  let current = first.apiKey;
  for (let i = 0; i < 5; i += 1)
    current = (
      await house.partner.rotateKey(
        await house.partner.authenticate(current),
        current,
        `${IDEMPOTENCY_KEY}-${i}`,
      )
    ).apiKey;
  const last = await house.partner.authenticate(current);
  const refused = await house.partner.rotateKey(last, current, IDEMPOTENCY_KEY).then(
    () => undefined,
    (error: unknown) => error as { retryAfterSeconds: number },
  );
  t.match(refused, { code: 'rate_limited', reason: 'rate_exceeded', retryAfterSeconds: 17_280 });
  house.clock.advance(17_279);
  await t.rejects(house.partner.rotateKey(last, current, IDEMPOTENCY_KEY), { code: 'rate_limited' });
  house.clock.advance(1);
  t.match(
    await house.partner.rotateKey(last, current, IDEMPOTENCY_KEY),
    { replayed: false },
    'a 429 is not remembered',
  );

  const other = await house.service.partner();
  await house.operator.revokeKey({ partnerId: other.partnerId, keyId: other.keyId });
  for (let i = 0; i < 6; i += 1)
    await t.rejects(
      house.partner.rotateKey(other.caller, other.apiKey, IDEMPOTENCY_KEY),
      { code: 'forbidden' },
      'a revoked key has no successor, and spends nothing',
    );
  await t.rejects(house.partner.authenticate(other.apiKey), { code: 'forbidden' });
  t.match(await house.operator.listPartnerKeys(other.partnerId), [{ keyId: other.keyId, status: 'revoked' }]);
  t.match(await house.operator.revokeKey({ partnerId: other.partnerId, keyId: other.keyId }), {
    status: 'revoked',
  });
  await t.rejects(house.operator.revokeKey({ partnerId, keyId: other.keyId }), notFound);
});

t.test('a key is revoked with its successors, by its partner and by the operator', async (t) => {
  const { partnerId, apiKey, keyId, caller } = await house.service.partner();
  const own = await house.operator.createKey({ partnerId, name: 'own' });
  const ownCaller = await house.partner.authenticate(own.apiKey);
  const stolen = await house.partner.rotateKey(caller, apiKey, IDEMPOTENCY_KEY);
  const plain = await house.partner.revokeOwnKey(ownCaller, { keyId });
  t.match(plain, { keyId, status: 'revoked' });
  t.notOk('revokedSuccessors' in plain);
  await t.resolves(house.partner.authenticate(stolen.apiKey), 'a successor is a key of its own');
  t.match(await house.partner.revokeOwnKey(ownCaller, { keyId, successors: true }), {
    keyId,
    status: 'revoked',
    revokedSuccessors: [stolen.keyId],
  });
  await t.rejects(house.partner.authenticate(stolen.apiKey), { code: 'forbidden' });
  const next = await house.partner.rotateKey(ownCaller, own.apiKey, IDEMPOTENCY_KEY);
  t.match(await house.operator.revokeKey({ partnerId, keyId: own.keyId, successors: true }), {
    keyId: own.keyId,
    revokedSuccessors: [next.keyId],
  });
  t.strictSame(
    (await house.operator.listPartnerKeys(partnerId)).map(({ status }) => status),
    ['revoked', 'revoked', 'revoked', 'revoked'],
  );
});

t.test('a partner revokes keys of its own', async (t) => {
  const { partnerId, apiKey, keyId, caller } = await house.service.partner();
  const revoke = (by: Caller, id: string) => house.partner.revokeOwnKey(by, { keyId: id });
  const key = async (name: string) => {
    const made = await house.operator.createKey({ partnerId, name });
    return { ...made, caller: await house.partner.authenticate(made.apiKey) };
  };
  await t.rejects(
    revoke(caller, keyId),
    { code: 'conflict', reason: 'last_active_key' },
    'not the last active one, by accident',
  );
  await t.rejects(revoke(caller, 'key_01HZZZZZZZZZZZZZZZZZZZZZZZ'), notFound);
  const stranger = await house.service.partner();
  await t.rejects(revoke(caller, stranger.keyId), notFound, 'another partner’s key is not there');
  await t.resolves(house.partner.authenticate(stranger.apiKey));

  const other = await key('other');
  t.match(await revoke(caller, other.keyId), { keyId: other.keyId, status: 'revoked', name: 'other' });
  await t.rejects(house.partner.authenticate(other.apiKey), { code: 'forbidden' }, 'at once');
  await t.rejects(
    revoke(other.caller, keyId),
    { code: 'forbidden' },
    'a call of it that was let in before, too',
  );
  t.match(await revoke(caller, other.keyId), { status: 'revoked' }, 'again changes nothing');

  // The key leaks, and its owner rotates it. An attacker with the old key must not be able to revoke the
  // successor.
  const rotated = await house.partner.rotateKey(caller, apiKey, IDEMPOTENCY_KEY);
  const successor = await house.partner.authenticate(rotated.apiKey);
  await t.rejects(
    revoke(caller, rotated.keyId),
    { code: 'forbidden', reason: 'key_expiring' },
    'a call that was let in before the rotation, too',
  );
  await t.rejects(
    revoke(caller, stranger.keyId),
    { code: 'forbidden', reason: 'key_expiring' },
    'and learns nothing of other ids',
  );
  t.match(await revoke(successor, keyId), { keyId, status: 'revoked' }, 'its successor ends its 72 hours');
  await t.rejects(house.partner.authenticate(apiKey), { code: 'forbidden' });
  await t.rejects(
    revoke(successor, rotated.keyId),
    { code: 'conflict', reason: 'last_active_key' },
    'revoked keys are no other active ones',
  );

  const third = await key('third');
  const next = await house.partner.rotateKey(third.caller, third.apiKey, IDEMPOTENCY_KEY);
  t.match(await revoke(third.caller, third.keyId), { status: 'revoked' }, 'a rotated key may give itself up');
  t.match(
    await revoke(successor, rotated.keyId),
    { status: 'revoked' },
    'so may an active one beside another',
  );
  await t.rejects(revoke(await house.partner.authenticate(next.apiKey), next.keyId), {
    code: 'conflict',
    reason: 'last_active_key',
  });
  const log = (await house.operator.readAudit({ partnerId, fromSequence: 1, limit: 100 })).filter(
    ({ action }) => action === 'key_revoked',
  );
  t.strictSame(
    log.map(({ actor, subjects }) => [actor, ...subjects]),
    [
      [keyId, other.keyId],
      [successor.keyId, keyId],
      [third.keyId, third.keyId],
      [successor.keyId, rotated.keyId],
    ],
    'each once, with who did it',
  );
});

t.test('keys are listed whole or in pages, with the time of their last use', async (t) => {
  const { partnerId, caller, keyId } = await house.service.partner('trial');
  for (let i = 0; i < 6; i += 1) await house.operator.createKey({ partnerId, name: `key ${i}` });
  const all = await house.partner.listKeys(caller, {});
  t.equal(all.keys.length, 7);
  t.notOk('nextCursor' in all);
  const paged = [];
  let cursor: string | undefined;
  do {
    const page = await house.partner.listKeys(caller, {
      limit: 3,
      ...(cursor === undefined ? {} : { cursor }),
    });
    paged.push(...page.keys);
    cursor = page.nextCursor;
    if (cursor !== undefined)
      await t.rejects(
        house.partner.listProofs(caller, { cursor }),
        { code: 'invalid_request', reason: 'invalid_member' },
        'a cursor of another route',
      );
  } while (cursor !== undefined);
  t.strictSame(paged, all.keys);
  t.notOk(
    'nextCursor' in (await house.partner.listKeys(caller, { limit: 7 })),
    'a full last page is the last page',
  );

  const used = house.seconds();
  await house.restart();
  t.match(
    (await house.partner.listKeys(caller, {})).keys.find((key) => key.keyId === keyId),
    { lastUsedAt: used },
    'last use outlives a restart',
  );
});

t.test('usage is counted by day and operation, and the quota is never exceeded', async (t) => {
  // Moves to the second before a month ends.
  house.clock.moveTo(Date.UTC(new Date(house.clock.now()).getUTCFullYear() + 1, 2, 1) / 1000 - 1);
  const { caller } = await house.service.partner('trial');
  t.match(await house.partner.quota(caller), { limit: 1000, remaining: 1000, reset: house.seconds() + 1 });
  const small = { ...caller, plan: { ...caller.plan, monthlyQuota: 10 } };
  const uploads = await Promise.all(Array.from({ length: 2 }, () => house.service.upload(caller, wav(500))));
  const calls = await Promise.allSettled(
    Array.from({ length: 200 }, (_, i) =>
      house.partner.verifyUpload(small, { uploadId: uploads[0]!.uploadId, sidecar: Buffer.from(String(i)) }),
    ),
  );
  t.equal(
    calls.filter(({ status }) => status === 'fulfilled').length,
    10,
    '200 calls at once: not one too many',
  );
  for (const call of calls)
    if (call.status === 'rejected')
      t.match(call.reason, { code: 'rate_limited', reason: 'quota_exceeded', retryAfterSeconds: 1 });
  t.match(await house.partner.quota(small), { limit: 10, remaining: 0 });
  for (let i = 0; i < 3; i += 1) house.partner.meter(caller, 'list_proofs');
  house.clock.advance(1);
  t.match(
    await house.partner.verifyUpload(small, { uploadId: uploads[1]!.uploadId }),
    { verdict: 'unreadable' },
    'after Retry-After',
  );
  t.match(await house.partner.quota(small), { limit: 10, remaining: 9 });
  await house.restart();

  const report = await house.partner.readUsage(caller, { days: 92 });
  t.match(report, {
    plan: 'trial',
    limit: 1000,
    used: 1,
    remaining: 999,
    period: {
      start: house.seconds(),
      end: Date.UTC(new Date(house.clock.now()).getUTCFullYear(), 3, 1) / 1000,
    },
  });
  t.equal(report.days.length, 92);
  t.strictSame(report.days.at(-1), {
    day: new Date(house.clock.now()).toISOString().slice(0, 10),
    units: 1,
    operations: { verify: 1 },
  });
  t.match(report.days.at(-2), { units: 10, operations: { verify: 10, list_proofs: 3 } }, 'metered, but free');
  for (const { units, operations } of report.days.slice(0, 90))
    if (units !== 0 || Object.keys(operations).length !== 0) t.fail('days without use are zero');
  t.strictSame(
    report.days.map(({ day }) => day),
    report.days.map((_, i) => new Date(house.clock.now() - (91 - i) * 86_400_000).toISOString().slice(0, 10)),
  );
  t.strictSame((await house.partner.readUsage(caller, { days: 1 })).days, report.days.slice(-1));
});

t.test('downloads, telemetry and plans follow the configuration', async (t) => {
  const { caller, partnerId } = await house.service.partner();
  t.equal(
    house.partner.download({ product: 'plugin', platform: 'macos-arm64' }),
    'https://downloads.example/plugin.pkg',
  );
  for (const query of [
    { product: 'plugin', platform: 'windows' },
    { product: '__proto__', platform: '' },
    { product: 'plugin/macos-arm64', platform: '' },
  ])
    t.throws(() => house.partner.download(query), notFound);
  t.strictSame(house.partner.telemetry(caller, [{ name: 'app_started', count: 2, at: house.seconds() }]), {
    accepted: 1,
  });
  t.throws(
    () =>
      house.partner.telemetry(caller, [
        { name: 'app_started', count: 1, at: 1 },
        { name: 'My song title', count: 1, at: 1 },
      ]),
    { code: 'invalid_request' },
  );
  const report = (events: number) =>
    Array.from({ length: events }, () => ({ name: 'app_started', count: 1_000_000, at: 1 }));
  t.strictSame(
    house.partner.telemetry({ ...caller, partnerId: 'ptr_other' }, report(100)),
    { accepted: 100 },
    'the largest report is accepted at once',
  );
  t.throws(
    () => house.partner.telemetry({ ...caller, partnerId: 'ptr_other' }, report(100)),
    { code: 'rate_limited', reason: 'rate_exceeded' },
    'a second one exceeds what a partner may add to the counters of all',
  );
  t.strictSame(house.partner.telemetry(caller, report(1)), { accepted: 1 }, 'another partner may add');
  t.match(
    (await house.operator.listPlans()).map(({ name }) => name),
    ['trial', 'standard', 'volume'],
  );
  t.ok((await house.operator.listPartners()).some((known) => known.partnerId === partnerId));
  await t.rejects(house.operator.listPartnerKeys('ptr_never'), notFound);
  await t.rejects(house.operator.erasureStatus('prf_never'), notFound);
  const { burst } = caller.plan;
  const admitted = Array.from({ length: burst + 200 }, () => {
    try {
      house.partner.admit(caller, 'standard', () => undefined);
      return 1;
    } catch {
      return 0;
    }
  }).reduce<number>((sum, one) => sum + one, 0);
  t.equal(admitted, burst);
});
