/**
 * An attacker with write access to the store's files, but without the service's secrets, edits rows while the
 * service is stopped. The service believes none of the edits.
 */
import { join } from 'node:path';
import { decode, encode } from '@msgpack/msgpack';
import type { ClassicLevel } from 'classic-level';
import t from 'tap';
import { crc32c, crc32cOfAscii } from '../../src/core/codec/crc32c.js';
import { withLevel } from '../adapters/embedded-process.js';
import { wav } from '../fixtures/wav.js';
import { RestartedService } from '../operations/restarted-service.js';

type Document = Readonly<Record<string, unknown>>;
type Level = ClassicLevel<string, Uint8Array>;

const HEADER = { former: 5, mac: 32 };

/** Returns where a row's document begins, in both forms of stores. */
function documentAt(row: Uint8Array): number {
  return row[0] === 1 ? HEADER.former : 2 + row[1]! + HEADER.mac;
}

function documentOf(row: Uint8Array): Document {
  return decode(row.slice(documentAt(row))) as Document;
}

/** Returns a row with a valid checksum, which needs no secret. */
function withChecksum(key: string, document: Document): Uint8Array {
  const row = Buffer.concat([Buffer.alloc(HEADER.former), encode(document, { ignoreUndefined: true })]);
  row[0] = 1;
  row.writeUInt32LE(crc32c(row.subarray(HEADER.former), crc32c(row.subarray(0, 1), crc32cOfAscii(key))), 1);
  return row;
}

/**
 * All forms that an attacker without the secrets can give to an edited row: its old MAC is kept, or it gets the
 * former form without a MAC.
 */
const FORMS: Readonly<Record<string, (key: string, row: Uint8Array, document: Document) => Uint8Array>> = {
  'its header kept': (key, row, document) =>
    row[0] === 1
      ? withChecksum(key, document)
      : Buffer.concat([row.subarray(0, documentAt(row)), encode(document, { ignoreUndefined: true })]),
  'a checksum made anew': (key, _row, document) => withChecksum(key, document),
};

async function edit(
  level: Level,
  key: string,
  form: string,
  change: (document: Document) => Document,
): Promise<void> {
  const row = (await level.get(key))!;
  await level.put(key, FORMS[form]!(key, row, change(documentOf(row))));
}

for (const form of Object.keys(FORMS)) {
  void t.test(`edited rows, ${form}`, async (t) => {
    const house = await RestartedService.start();
    t.teardown(() => house.stop());
    const edited = (work: (level: Level) => Promise<unknown>) =>
      house.restart(() =>
        withLevel(join(house.directory, 'store'), async (level) => void (await work(level))),
      );

    const owner = await house.service.partner();
    const bystander = await house.service.partner();
    const narrow = await house.operator.createKey({
      partnerId: owner.partnerId,
      name: 'narrow',
      scopes: ['verify'],
    });
    const revoked = await house.operator.createKey({ partnerId: owner.partnerId, name: 'revoked' });
    await house.operator.revokeKey({ partnerId: owner.partnerId, keyId: revoked.keyId });
    const issue = (number: number) =>
      house.service.issue(owner.partnerId, wav(2000, {}, number), { song: `song ${number}` });
    const [first, second, erased, given, sound] = [
      await issue(1),
      await issue(2),
      await issue(3),
      await issue(4),
      await issue(5),
    ];
    const asOwner = await house.partner.authenticate(owner.apiKey);
    const contents = new Map<string, Document>();
    await edited(async (level) =>
      contents.set(erased.proofId, documentOf((await level.get(`proof/${erased.proofId}`))!)),
    );
    await house.partner.eraseProof(asOwner, { proofId: erased.proofId });

    await edited(async (level) => {
      await edit(level, `key/${narrow.keyId}`, form, (key) => ({
        ...key,
        scopes: ['verify', 'proofs', 'erase', 'reviews', 'keys', 'usage'],
      }));
      await edit(level, `key/${revoked.keyId}`, form, ({ revokedAt: _, ...key }) => key);
      await edit(level, `proof/${first.proofId}`, form, (proof) => ({
        ...proof,
        credentialSha256: '0'.repeat(64),
      }));
      await edit(level, `proof/${erased.proofId}`, form, () => contents.get(erased.proofId)!);
      await edit(level, `proof/${given.proofId}`, form, (proof) => ({
        ...proof,
        partnerId: bystander.partnerId,
      }));
      // A genuine row in the place of another.
      const genuine = (await level.get(`proof/${sound.proofId}`))!;
      await level.put(
        `proof/${second.proofId}`,
        form === 'its header kept' && genuine[0] !== 1
          ? genuine
          : withChecksum(`proof/${second.proofId}`, documentOf(genuine)),
      );
    });
    const damaged = { code: 'internal', reason: 'record_damaged' };
    await t.rejects(
      house.partner.authenticate(narrow.apiKey),
      damaged,
      'a key with raised scopes opens nothing',
    );
    await t.rejects(
      house.partner.authenticate(revoked.apiKey),
      damaged,
      'nor one whose revocation was taken away',
    );
    const caller = await house.partner.authenticate(owner.apiKey);
    for (const { proofId, file } of [first, second, erased, given]) {
      await t.rejects(house.service.verify(caller, file), damaged, 'no verdict rests on an edited row');
      await t.rejects(house.partner.readRecord(caller, { proofId }), damaged);
    }
    const other = await house.partner.authenticate(bystander.apiKey);
    await t.rejects(
      house.partner.readProof(other, { proofId: given.proofId }),
      damaged,
      'no other partner becomes the owner of a proof',
    );
    t.match(await house.service.verify(other, sound.file), { verdict: 'valid' }, 'others are served');
    await t.rejects(house.partner.listProofs(caller, {}), damaged, 'a list leaves nothing out in silence');
    const faults = house.service.log.filter((line) => line.includes('"record_damaged"'));
    t.ok(faults.length > 0, 'an operator hears of it');
    for (const id of [narrow.keyId, revoked.keyId, first.proofId, erased.proofId])
      t.notOk(
        faults.some((line) => line.includes(id)),
        'without an id',
      );

    await edited((level) =>
      edit(level, `partner/${bystander.partnerId}`, form, (partner) => ({
        ...partner,
        plan: partner['plan'] === 'volume' ? 'trial' : 'volume',
      })),
    );
    await t.rejects(house.partner.authenticate(bystander.apiKey), damaged, 'nor is another plan believed');
    t.match(await house.partner.authenticate(owner.apiKey), { partnerId: owner.partnerId });
  });
}

void t.test('a store without codes refuses to start until it is accepted', async (t) => {
  const house = await RestartedService.start();
  t.teardown(() => house.service.stop().catch(() => undefined));
  const { partnerId } = await house.service.partner();
  const { keyId, apiKey } = await house.operator.createKey({ partnerId, name: 'narrow', scopes: ['verify'] });
  const started = await house
    .restart(() =>
      withLevel(join(house.directory, 'store'), async (level) => {
        for (const [key, row] of await level.iterator().all())
          await level.put(key, withChecksum(key, documentOf(row)));
        await level.put('meta/format', withChecksum('meta/format', { format: 2 }));
        await edit(level, `key/${keyId}`, 'a checksum made anew', (key) => ({
          ...key,
          scopes: ['verify', 'proofs'],
        }));
      }),
    )
    .then(() => house.partner.authenticate(apiKey))
    .then(
      () => 'believed',
      (error: unknown) => error,
    );
  t.match(started, { name: 'StoreOpenError', code: 'unauthenticated' });
});
