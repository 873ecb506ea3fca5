/** A signing certificate is revoked on a whole service, and what its proofs are then. */

import { X509Certificate } from 'node:crypto';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { auditMac } from '../../src/service/domain/audit.js';
import { SignerRevocations } from '../../src/service/operations/system/signer-revocations.js';
import { issued } from '../fixtures/credentialed-file.js';
import { TestClock, TestService } from '../fixtures/service.js';
import { testSigning } from '../fixtures/signing.js';
import { wav } from '../fixtures/wav.js';

const UNREGISTERED = {
  verdict: 'unregistered',
  good: false,
  decision: { status: 'invalid_proof', reasons: ['signer_revoked'] },
};
const REFUSED = { code: 'unavailable', reason: 'signer_revoked' };

t.test(
  'what a revoked leaf signed before stays valid, what it signed after is not believed, and it signs no more',
  async (t) => {
    const clock = new TestClock();
    clock.hold();
    const directory = await mkdtemp(join(tmpdir(), 'takemark-revoked-'));
    t.teardown(() => rm(directory, { recursive: true, force: true }));
    let house = await TestService.start({ TAKEMARK_DATA_DIR: directory }, clock);
    t.teardown(() => house.stop());
    const { partnerId, caller } = await house.partner();
    const before = await house.issue(partnerId, wav(2000));
    clock.advance(1);
    const at = await house.issue(partnerId, wav(2000));
    clock.advance(1);
    const pair = await house.issue(partnerId, wav(2000), { carrier: 'sidecar' });
    const { uploadId } = await house.upload(caller, at.file);
    const verdict = () => house.service.operations.partner.verifyUpload(caller, { uploadId });
    t.match(await verdict(), { verdict: 'valid', good: true, issuedAt: at.issuedAt });

    const { operator } = house.service.operations;
    const [signs, ...others] = await operator.listSigners();
    t.match(signs, { signs: true, issuer: 'Takemark', algorithm: 'Ed25519', revocation: undefined });
    t.strictSame(others, []);
    const { kid } = signs!;
    t.match(await operator.revokeSigner({ kid, from: at.issuedAt, reason: 'key_compromise' }), {
      kid,
      revocation: { from: at.issuedAt, reason: 'key_compromise' },
    });
    const revoked = await verdict();
    t.match(revoked, { ...UNREGISTERED, proofId: at.proofId }, 'at once, for an upload that was valid');
    t.notOk('issuedAt' in revoked || 'evidenceReport' in revoked);
    t.match(
      await house.verify(caller, before.file),
      { verdict: 'valid', issuedAt: before.issuedAt },
      'one second earlier',
    );
    t.match(await house.verify(caller, pair.file, pair.sidecar), UNREGISTERED);
    await t.rejects(house.issue(partnerId, wav(2000)), REFUSED);
    t.equal(
      (await operator.readAudit({ partnerId, fromSequence: 1, limit: 100 })).filter(
        ({ action }) => action === 'proof_issued',
      ).length,
      3,
      'the refused issuing left nothing',
    );

    await house.stop({ keep: true });
    house = await TestService.start({ TAKEMARK_DATA_DIR: directory }, clock);
    t.ok(
      house.service.issuingFault !== undefined &&
        house.log.some((line) => line.includes('"signer_revoked"') && line.includes(kid)),
      'a start says so, and still verifies',
    );
    const again = house.service.operations;
    t.match(await again.partner.verifyUpload(caller, { uploadId }), UNREGISTERED);
    t.match(await house.verify(caller, before.file), { verdict: 'valid' });
    await t.rejects(house.issue(partnerId, wav(2000)), REFUSED);
    await again.operator.revokeSigner({ kid, from: before.issuedAt, reason: 'key_compromise' });
    t.match(await house.verify(caller, before.file), UNREGISTERED, 'the last word holds');

    t.notOk((await again.operator.reinstateSigner({ kid })).revocation);
    await again.operator.reinstateSigner({ kid });
    t.match(await again.partner.verifyUpload(caller, { uploadId }), { verdict: 'valid' });
    t.match(await house.issue(partnerId, wav(2000)), { proofId: /^prf_/ });
    const log = await again.operator.readAudit({ partnerId: 'signers', fromSequence: 1, limit: 10 });
    t.match(
      log.map(({ action, actor, subjects }) => [action, actor, ...subjects]),
      [
        ['signer_revoked', 'operator', kid, String(at.issuedAt), 'key_compromise'],
        ['signer_revoked', 'operator', kid, String(before.issuedAt), 'key_compromise'],
        ['signer_reinstated', 'operator', kid],
      ],
    );
    t.match(await again.operator.verifyAudit({ partnerId: 'signers' }), { ok: true, entries: 3, head: 3 });
    await t.rejects(again.operator.revokeSigner({ kid: '0'.repeat(64), from: 1, reason: 'unspecified' }), {
      code: 'not_found',
    });

    const later = Math.floor(clock.now() / 1000) + 3600;
    await again.operator.revokeSigner({ kid, from: later, reason: 'superseded' });
    await house.stop({ keep: true });
    house = await TestService.start({ TAKEMARK_DATA_DIR: directory }, clock);
    t.equal(
      house.service.issuingFault,
      undefined,
      'until a revocation begins, a start does not say that nothing is issued',
    );
    t.match(await house.issue(partnerId, wav(2000)), { proofId: /^prf_/ });
    clock.advance(3600);
    await t.rejects(house.issue(partnerId, wav(2000)), REFUSED);
  },
);

t.test('a stolen leaf registers nothing, revoked or not, with any time', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'takemark-stolen-'));
  t.teardown(() => rm(directory, { recursive: true, force: true }));
  const stolen = testSigning({ environment: 'production' });
  await mkdir(join(directory, 'signing', 'production', 'known'), { recursive: true });
  await writeFile(
    join(directory, 'signing', 'production', 'known', 'former.pem'),
    new X509Certificate(stolen.signer.identity.certificate).toString() + stolen.authority,
  );
  const house = await TestService.start({ TAKEMARK_DATA_DIR: directory });
  t.teardown(() => house.stop());
  const { caller } = await house.partner();
  const forged = issued(wav(2000), stolen.signer, 'prf_01JZ7Q4W8YB2M6R9T3V5X7Z1A2');
  const unknown = { verdict: 'unregistered', decision: { reasons: ['proof_not_registered'] } };
  t.match(await house.verify(caller, forged), unknown);
  await house.service.operations.operator.revokeSigner({
    kid: stolen.signer.identity.kid,
    from: 2 ** 33,
    reason: 'superseded',
  });
  t.match(await house.verify(caller, forged), unknown);
  t.equal(house.service.issuingFault, undefined, 'the leaf that signs is another');
});

t.test('an altered log of signers stops what needs it', async (t) => {
  const key = Buffer.alloc(32, 7);
  const kid = 'ab'.repeat(32);
  const draft = {
    partnerId: 'signers',
    action: 'signer_revoked',
    at: 9,
    actor: 'operator',
    subjects: [kid, '5', 'key_compromise'],
    sequence: 1,
  } as const;
  const entry = { ...draft, mac: auditMac(key, '0'.repeat(64), draft) };
  const revocations = (entries: readonly object[]) =>
    new SignerRevocations({
      secrets: { all: () => [{ id: 'a', key }], current: () => ({ id: 'a', key }), find: () => undefined },
      stores: {
        readAudit: async (_log: string, from: number) => (from === 1 ? (entries as never) : []),
        appendAudit: async () => undefined,
      },
    });
  t.match(await revocations([entry]).find(kid), { kid, from: 5, reason: 'key_compromise', at: 9 });
  t.equal(await revocations([entry]).find('cd'.repeat(32)), undefined);
  for (const altered of [
    { ...entry, subjects: [kid, '9', 'key_compromise'] },
    { ...entry, action: 'signer_reinstated' },
    { ...entry, sequence: 2 },
  ]) {
    const found = revocations([altered]);
    await t.rejects(found.find(kid), { code: 'unavailable', reason: 'store_unavailable' });
    await t.rejects(
      found.find(kid),
      { code: 'unavailable', reason: 'store_unavailable' },
      'and not just once',
    );
  }
});
