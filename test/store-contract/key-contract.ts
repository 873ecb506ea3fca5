import type { Test } from 'tap';
import type { PartnerKey } from '../../src/service/domain/partner.js';
import type { Stores } from '../../src/service/ports/stores.js';
import { actionsOf } from './audit-contract.js';
import { audit, NOW, partner, partnerKey, rotation } from './samples.js';
import type { Contract } from './suite.js';

/** Tests partners, their keys, rotation and revocation. */
export async function keyContract(t: Test, { opened, id }: Contract): Promise<void> {
  await t.test('partners and keys are created once and read back', async (t) => {
    const { stores } = opened();
    const first = partner(id('ptr', 1));
    const draft = audit(first.partnerId, 'partner_created', first.partnerId);
    t.equal(await stores.getPartner(first.partnerId), undefined);
    await stores.createPartner(first, draft);
    t.strictSame(await stores.getPartner(first.partnerId), first);
    t.strictSame(
      (await stores.listPartners()).filter((each) => each.partnerId === first.partnerId),
      [first],
    );
    await t.resolves(stores.createPartner(first, draft), 'the same call again is harmless');
    await t.rejects(stores.createPartner({ ...first, name: 'Another' }, draft), { code: 'conflict' });

    const key = partnerKey(id('key', 1), first.partnerId);
    const rotated: PartnerKey = {
      ...key,
      keyId: id('key', 2),
      expiresAt: NOW + 72 * 3600,
      revokedAt: NOW + 1,
      publicKey: 'MCowBQ==',
    };
    const create = (each: PartnerKey) =>
      stores.createKey(each, audit(each.partnerId, 'key_created', each.keyId));
    await Promise.all([create(key), create(rotated)]);
    t.strictSame(await stores.getKey(key.keyId), key, 'absent members stay absent');
    t.strictSame(await stores.getKey(rotated.keyId), rotated);
    t.equal(await stores.getKey(`${key.keyId}0`), undefined);
    await t.resolves(create(key), 'the same call again is harmless');
    await t.rejects(create({ ...key, name: 'other' }), { code: 'conflict' });
    await t.rejects(create({ ...key, partnerId: id('ptr', 2) }), { code: 'conflict' });
    t.strictSame(await actionsOf(opened(), first.partnerId), [
      'partner_created',
      'key_created',
      'key_created',
    ]);
  });

  await t.test('a partner is approved for source detail under one version, and loses it again', async (t) => {
    const { stores } = opened();
    const given = partner(id('ptr', 'detail'));
    const { partnerId } = given;
    const set = (consentVersion: string | undefined, approvedAt = NOW) =>
      stores.setSourceDetail(
        partnerId,
        consentVersion === undefined ? undefined : { consentVersion, approvedAt },
        audit(partnerId, consentVersion === undefined ? 'source_detail_withdrawn' : 'source_detail_approved'),
      );
    t.equal(await set('v1'), 'not_found');
    await stores.createPartner(given, audit(partnerId, 'partner_created', partnerId));
    t.equal(await set(undefined), 'unchanged');
    t.equal(await set('v1'), 'changed');
    t.equal(await set('v1', NOW + 1), 'unchanged', 'the same version again');
    const approved = { ...given, sourceDetail: { consentVersion: 'v1', approvedAt: NOW } };
    t.strictSame(await stores.getPartner(partnerId), approved);
    t.strictSame(
      (await stores.listPartners()).filter((each) => each.partnerId === partnerId),
      [approved],
    );
    t.equal(await set('v2', NOW + 2), 'changed', 'another version replaces it');
    t.equal((await stores.getPartner(partnerId))?.sourceDetail?.consentVersion, 'v2');
    t.equal(await set(undefined), 'changed');
    t.strictSame(await stores.getPartner(partnerId), given, 'absent again');
    const outcomes = await Promise.all(Array.from({ length: 10 }, () => set('v3')));
    t.strictSame(
      outcomes.filter((outcome) => outcome === 'changed').length,
      1,
      'of the same approvals at once one is written',
    );
    for (let i = 0; i < 20; i += 1) await set(i % 2 === 0 ? undefined : `v${i}`);
    t.equal((await stores.getPartner(partnerId))?.sourceDetail?.consentVersion, 'v19');
    t.equal((await actionsOf(opened(), partnerId)).length, 1 + 3 + 1 + 20, 'each change is audited once');
  });

  await t.test('a partner’s keys are listed oldest first, in pages', async (t) => {
    const { stores } = opened();
    const partnerId = id('ptr', 'keys');
    t.strictSame(await stores.listKeys(partnerId), []);
    const keys = Array.from({ length: 10 }, (_, i) =>
      partnerKey(id('key', `list-${i}`), partnerId, { createdAt: NOW + Math.floor(i / 3) }),
    );
    await Promise.all(
      keys.toReversed().map((key) => stores.createKey(key, audit(partnerId, 'key_created', key.keyId))),
    );
    await stores.createKey(
      partnerKey(id('key', 'foreign'), id('ptr', 'keys2')),
      audit(id('ptr', 'keys2'), 'key_created'),
    );
    t.strictSame(await stores.listKeys(partnerId), keys);
    const read: PartnerKey[] = [];
    for (let page = await stores.listKeys(partnerId, { limit: 4 }); page.length > 0; ) {
      read.push(...page);
      const { createdAt, keyId } = page.at(-1)!;
      page = await stores.listKeys(partnerId, { after: { createdAt, keyId }, limit: 4 });
    }
    t.strictSame(read, keys);
  });

  await t.test('the first revocation of a key wins', async (t) => {
    const { stores } = opened();
    const partnerId = id('ptr', 'revoke');
    const key = partnerKey(id('key', 'revoke'), partnerId);
    const revoke = async (at: number, owner = partnerId) =>
      (await stores.revokeKey({ partnerId: owner, keyId: key.keyId, at })).outcome;
    t.equal(await revoke(NOW), 'not_found');
    await stores.createKey(key, audit(partnerId, 'key_created', key.keyId));
    t.equal(await revoke(NOW, id('ptr', 'revoke2')), 'not_found', 'another partner’s key is not there');
    const outcomes = await Promise.all(Array.from({ length: 100 }, (_, i) => revoke(NOW + i)));
    t.equal(outcomes.filter((outcome) => outcome === 'revoked').length, 1);
    t.equal(outcomes.filter((outcome) => outcome === 'already_revoked').length, 99);
    t.strictSame(await stores.getKey(key.keyId), { ...key, revokedAt: NOW + outcomes.indexOf('revoked') });
    t.strictSame(await actionsOf(opened(), partnerId), ['key_created', 'key_revoked']);
    t.strictSame(await actionsOf(opened(), id('ptr', 'revoke2')), []);
  });

  await t.test(
    'a partner keeps an active key when its keys revoke themselves or each other at once',
    async (t) => {
      const { stores } = opened();
      t.strictSame(await withoutActiveKey(stores, 'kept', id), []);
      const { partnerId, keys } = await partnerWithKeys(stores, id, 'kept-order', 2);
      const [first, second] = keys as [PartnerKey, PartnerKey];
      const revoke = (keyId: string, callingKeyId?: string) =>
        stores.revokeKey({ partnerId, keyId, at: NOW, ...(callingKeyId && { callingKeyId }) });
      t.strictSame(await revoke(first.keyId, second.keyId), { outcome: 'revoked', keyIds: [first.keyId] });
      t.strictSame(await revoke(second.keyId, second.keyId), { outcome: 'last_active_key' });
      t.strictSame(await revoke(second.keyId, first.keyId), { outcome: 'calling_key_ended' });
      t.strictSame(await revoke(id('key', 'never'), second.keyId), { outcome: 'not_found' });
      t.strictSame(await revoke(first.keyId, second.keyId), {
        outcome: 'already_revoked',
        keyIds: [first.keyId],
      });
      t.strictSame(
        await revoke(second.keyId),
        { outcome: 'revoked', keyIds: [second.keyId] },
        'the operator may',
      );
      t.strictSame(
        (await stores.readAudit(partnerId, 1, 10)).map(({ action, actor, subjects }) => [
          action,
          actor,
          ...subjects,
        ]),
        [
          ['key_created', 'operator', first.keyId],
          ['key_created', 'operator', second.keyId],
          ['key_revoked', second.keyId, first.keyId],
          ['key_revoked', 'operator', second.keyId],
        ],
      );
    },
  );

  await t.test('a store that looks at other keys before it revokes is found', async (t) => {
    const { stores } = opened();
    const looksFirst: Pick<Stores, RaceCalls> = {
      ...stores,
      async revokeKey({ callingKeyId, ...revocation }) {
        const keys = await stores.listKeys(revocation.partnerId);
        const others = keys.filter(({ keyId, revokedAt }) => keyId !== revocation.keyId && !revokedAt);
        if (others.length === 0) return { outcome: 'last_active_key' };
        return stores.revokeKey(revocation);
      },
    };
    t.not((await withoutActiveKey(looksFirst, 'planted', id)).length, 0);
  });

  await t.test('a revocation with successors ends every key that replaced the key', async (t) => {
    const { stores } = opened();
    const { partnerId, keys } = await partnerWithKeys(stores, id, 'chain', 2);
    const [leaked, own] = keys as [PartnerKey, PartnerKey];
    const successors = ['b', 'c', 'd'].map((name) => partnerKey(id('key', `chain2-${name}`), partnerId));
    const chain = [leaked, ...successors];
    const chainIds = chain.map(({ keyId }) => keyId);
    const rotate = (at: number) =>
      stores.rotateKey(
        rotation(chain[at]!, chain[at + 1]!.keyId, at),
        chain[at + 1]!,
        audit(partnerId, 'key_rotated', chain[at]!.keyId),
      );
    const revoke = (keyId: string, callingKeyId?: string) =>
      stores.revokeKey({
        partnerId,
        keyId,
        at: NOW,
        withSuccessors: true,
        ...(callingKeyId && { callingKeyId }),
      });
    t.ok(await rotate(0));
    t.strictSame(
      await stores.revokeKey({ partnerId, keyId: leaked.keyId, at: NOW, callingKeyId: own.keyId }),
      { outcome: 'revoked', keyIds: [leaked.keyId] },
    );
    t.equal(
      (await stores.getKey(chainIds[1]!))?.revokedAt,
      undefined,
      'without the option a successor lives',
    );
    t.strictSame(await revoke(chainIds[1]!, leaked.keyId), { outcome: 'calling_key_ended' });
    t.ok(await rotate(1));
    t.strictSame(
      await revoke(chainIds[1]!, chainIds[1]),
      { outcome: 'key_expiring' },
      'a rotated key ends no successor',
    );
    const [revoked] = await Promise.all([revoke(leaked.keyId, own.keyId), rotate(2)]);
    t.match(revoked, { outcome: 'revoked' });
    const rotated = await stores.getRotation(chainIds[2]!);
    const ended = rotated === undefined ? chainIds.slice(0, 3) : chainIds;
    for (const keyId of ended)
      t.equal((await stores.getKey(keyId))?.revokedAt, NOW, 'whether the rotation came before or after');
    t.strictSame(await revoke(leaked.keyId, own.keyId), { outcome: 'already_revoked', keyIds: ended });
    t.equal((await stores.getKey(own.keyId))?.revokedAt, undefined);
    t.strictSame(
      (await stores.readAudit(partnerId, 1, 20))
        .filter(({ action }) => action === 'key_revoked')
        .map(({ subjects }) => subjects),
      ended.map((keyId) => [keyId]),
      'one entry for each key',
    );
    const { partnerId: lone, keys: loneKeys } = await partnerWithKeys(stores, id, 'lone', 1);
    t.strictSame(
      await stores.revokeKey({
        partnerId: lone,
        keyId: loneKeys[0]!.keyId,
        at: NOW,
        callingKeyId: loneKeys[0]!.keyId,
        withSuccessors: true,
      }),
      { outcome: 'last_active_key' },
    );
  });

  await t.test('100 parallel rotations of one key give one', async (t) => {
    const { stores } = opened();
    const partnerId = id('ptr', 'rotate');
    const key = partnerKey(id('key', 'rotate'), partnerId);
    await stores.createKey(key, audit(partnerId, 'key_created', key.keyId));
    t.equal(await stores.getRotation(key.keyId), undefined);
    const tries = Array.from({ length: 100 }, (_, i) => rotation(key, id('key', `successor-${i}`), i));
    const successor = (each: (typeof tries)[number]) =>
      partnerKey(each.newKeyId, partnerId, { createdAt: each.rotatedAt });
    const results = await Promise.all(
      tries.map((each) =>
        stores.rotateKey(each, successor(each), audit(partnerId, 'key_rotated', key.keyId, each.newKeyId)),
      ),
    );
    const [holds] = results;
    t.ok(
      tries.some((each) => each.newKeyId === holds?.newKeyId && each.replay?.nonce === holds.replay?.nonce),
      'it is one of them, whole',
    );
    for (const result of results) t.strictSame(result, holds);
    t.strictSame(await stores.getRotation(key.keyId), holds);
    const rotated = { ...key, expiresAt: holds!.previousKeyExpiresAt };
    t.strictSame(await stores.getKey(key.keyId), rotated);
    t.strictSame(
      await stores.listKeys(partnerId),
      [rotated, successor(holds!)],
      'no other successor was written',
    );
    t.strictSame(
      await stores.rotateKey(tries[99]!, successor(tries[99]!), audit(partnerId, 'key_rotated')),
      holds,
      'later, too',
    );
    t.strictSame(
      (await stores.readAudit(partnerId, 1, 10)).map(({ action, subjects }) => [action, ...subjects]),
      [
        ['key_created', key.keyId],
        ['key_rotated', key.keyId, holds!.newKeyId],
      ],
    );
    await stores.createKey(key, audit(partnerId, 'key_created', key.keyId));
    t.strictSame(await stores.getKey(key.keyId), rotated, 'a repeated creation takes nothing back');
  });

  await t.test('a rotation needs a key that is there, and its successor can be rotated', async (t) => {
    const { stores } = opened();
    const partnerId = id('ptr', 'rotate2');
    const keys = ['a', 'b', 'c'].map((name) => partnerKey(id('key', `chain-${name}`), partnerId));
    const [first, second, third] = keys as [PartnerKey, PartnerKey, PartnerKey];
    const rotate = (from: PartnerKey, to: PartnerKey) =>
      stores.rotateKey(rotation(from, to.keyId, 1), to, audit(partnerId, 'key_rotated', from.keyId));
    t.equal(await rotate(first, second), undefined);
    t.equal(await stores.getKey(second.keyId), undefined);
    await stores.createKey(first, audit(partnerId, 'key_created', first.keyId));
    t.equal(
      await rotate({ ...first, partnerId: id('ptr', 'other') }, second),
      undefined,
      'another partner’s key is not there',
    );
    t.ok(await rotate(first, second));
    t.ok(await rotate(second, third));
    t.equal((await stores.listKeys(partnerId)).length, 3);
    await stores.revokeKey({ partnerId, keyId: second.keyId, at: NOW });
    t.equal(await rotate(second, third), undefined, 'a revoked key’s rotation is not replayed');
    await stores.revokeKey({ partnerId, keyId: third.keyId, at: NOW });
    t.equal(await rotate(third, partnerKey(id('key', 'chain-d'), partnerId)), undefined);
    t.equal(await stores.getKey(id('key', 'chain-d')), undefined);
    t.strictSame(await actionsOf(opened(), partnerId), [
      'key_created',
      'key_rotated',
      'key_rotated',
      'key_revoked',
      'key_revoked',
    ]);
  });

  await t.test('no successor outruns a revocation, and uses disturb neither', async (t) => {
    const { stores } = opened();
    const partnerId = id('ptr', 'outrun');
    await Promise.all(
      Array.from({ length: 50 }, async (_, i) => {
        const key = partnerKey(id('key', `outrun-${i}`), partnerId);
        const next = partnerKey(id('key', `outrun-${i}-next`), partnerId);
        await stores.createKey(key, audit(partnerId, 'key_created', key.keyId));
        const touch = (at: number) =>
          stores.touchKeys([
            { partnerId, keyId: key.keyId, at },
            { partnerId, keyId: next.keyId, at: at - 1 },
          ]);
        const rotate = () =>
          stores.rotateKey(rotation(key, next.keyId, i), next, audit(partnerId, 'key_rotated', key.keyId));
        const revoke = () => stores.revokeKey({ partnerId, keyId: key.keyId, at: NOW });
        const race =
          i % 2 === 0
            ? [touch(NOW), rotate(), touch(NOW + 7), revoke(), touch(NOW + 3)]
            : [touch(NOW), revoke(), touch(NOW + 7), rotate(), touch(NOW + 3)];
        const rotated = (await Promise.all(race)).some(
          (result) => typeof result === 'object' && 'newKeyId' in result,
        );
        const stored = await stores.getKey(key.keyId);
        const entries = rotated ? [NOW, rotation(key, next.keyId, i).previousKeyExpiresAt] : [NOW, undefined];
        t.strictSame([stored?.revokedAt, stored?.expiresAt], entries);
        t.equal((await stores.getKey(next.keyId)) !== undefined, rotated);
        t.equal((await stores.getRotation(key.keyId)) !== undefined, rotated);
        t.strictSame(
          new Map(await stores.getKeyUses(partnerId, [key.keyId, next.keyId, id('key', 'never')])),
          new Map([
            [key.keyId, NOW + 7],
            [next.keyId, NOW + 6],
          ]),
          'the latest use wins',
        );
      }),
    );
    t.equal((await stores.getKeyUses(id('ptr', 'outrun2'), [id('key', 'outrun-0')])).size, 0);
  });
}

type RaceCalls = 'createKey' | 'listKeys' | 'revokeKey';

/** Creates keys of a partner. */
async function partnerWithKeys(
  stores: Pick<Stores, RaceCalls>,
  id: Contract['id'],
  name: string,
  count: number,
): Promise<{ readonly partnerId: string; readonly keys: readonly PartnerKey[] }> {
  const partnerId = id('ptr', name);
  const keys = Array.from({ length: count }, (_, i) => partnerKey(id('key', `${name}-${i}`), partnerId));
  for (const key of keys) await stores.createKey(key, audit(partnerId, 'key_created', key.keyId));
  return { partnerId, keys };
}

/**
 * Makes keys of partners revoke themselves, or each other, at once.
 * @returns the partners that have no active key any more
 */
async function withoutActiveKey(
  stores: Pick<Stores, RaceCalls>,
  name: string,
  id: Contract['id'],
): Promise<readonly string[]> {
  const left = await Promise.all(
    Array.from({ length: 20 }, async (_, i) => {
      const { partnerId, keys } = await partnerWithKeys(stores, id, `${name}-${i}`, 2 + (i % 2));
      const ids = keys.map(({ keyId }) => keyId);
      const target = (at: number) => ids[i < 10 ? at : (at + 1) % ids.length]!;
      await Promise.all(
        ids.map((callingKeyId, at) =>
          stores.revokeKey({ partnerId, keyId: target(at), at: NOW, callingKeyId }),
        ),
      );
      const active = (await stores.listKeys(partnerId)).filter(({ revokedAt }) => revokedAt === undefined);
      return active.length === 0 ? [partnerId] : [];
    }),
  );
  return left.flat();
}
