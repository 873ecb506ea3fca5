import type { Test } from 'tap';
import { DomainError } from '../../src/domain/errors.js';
import { FACTS_LIFE_SECONDS } from '../../src/domain/upload.js';
import type { AuditHeads } from '../../src/ports/journals.js';
import type { Stores, UsageCharge } from '../../src/ports/stores.js';
import { auditContract } from './audit-contract.js';
import { consumerContract } from './consumer-contract.js';
import { declarationContract } from './declaration-contract.js';
import { keyContract } from './key-contract.js';
import { outboxContract, takeWaiting, usageOf } from './outbox-contract.js';
import { proofContract } from './proof-contract.js';
import { reviewContract } from './review-contract.js';
import {
  audit,
  issuedProof,
  issuingReplay,
  NOW,
  partner,
  partnerKey,
  reviewCase,
  rotation,
  storedDeclaration,
  uploadFacts,
  uploadSlot,
  usageCharge,
} from './samples.js';

/** A store under test. */
export interface OpenedStore {
  readonly stores: Stores;
  /** What it was opened with. */
  readonly audit: { readonly key: Uint8Array; readonly heads: AuditHeads };
  readonly close: () => Promise<void>;
  /** Closes it and opens the same data again; the object it came from is not used any more. */
  readonly reopen?: () => Promise<OpenedStore>;
}

export interface OpenOptions {
  /** Events that may wait; the store's own bound where it is not given. */
  readonly outboxLimit?: number;
}

/** What the parts of the suite work on. */
export interface Contract {
  /** One more store, of the same data or of its own. */
  readonly open: (options: OpenOptions) => Promise<OpenedStore>;
  /** As it is open now. */
  readonly opened: () => OpenedStore;
  /** An id that no run had before. */
  readonly id: (kind: string, of: string | number) => string;
}

/** Every store passes all of this. Ids are new in every run, so a store may hold what earlier runs left. */
export function storeContract(
  t: Test,
  name: string,
  open: (options?: OpenOptions) => Promise<OpenedStore>,
): void {
  void t.test(`${name} keeps the store contract`, async (t) => {
    let opened = await open();
    t.teardown(() => opened.close());
    const run = `${Date.now().toString(36)}-${process.pid}`;
    const id = (kind: string, of: string | number) => `${kind}_${run}.${of}`;

    const contract: Contract = { open, opened: () => opened, id };
    await keyContract(t, contract);

    await t.test('an upload: slot, facts, expiry by the caller’s clock', async (t) => {
      const { stores } = opened;
      const slot = uploadSlot(id('upl', 1));
      t.equal(await stores.getUpload(slot.uploadId, NOW), undefined);
      await stores.createSlot(slot);
      t.strictSame(
        await stores.getUpload(slot.uploadId, slot.expiresAt - 1),
        { slot },
        'one second before its end it is there',
      );
      t.equal(await stores.getUpload(slot.uploadId, slot.expiresAt), undefined, 'at its end it is not');

      const facts = uploadFacts(slot, 'first');
      t.equal(await stores.putFacts(facts), 'stored');
      t.equal(await stores.putFacts(uploadFacts(slot, 'second')), 'already_used');
      t.strictSame(
        await stores.getUpload(slot.uploadId, slot.expiresAt),
        { slot, facts },
        'facts outlive the slot',
      );
      t.strictSame(await stores.getUpload(slot.uploadId, facts.expiresAt - 1), { slot, facts });
      t.equal(await stores.getUpload(slot.uploadId, facts.expiresAt), undefined);

      const late = uploadSlot(id('upl', 2));
      await stores.createSlot(late);
      t.equal(
        await stores.putFacts(uploadFacts(late, 'late', late.expiresAt + 300)),
        'stored',
        'a post that began in time may end late',
      );
      t.ok((await stores.getUpload(late.uploadId, late.expiresAt + 301))?.facts);
      await t.rejects(stores.putFacts(uploadFacts(uploadSlot(id('upl', 'never')), 'x')), {
        code: 'not_found',
      });
    });

    await t.test('100 parallel facts of one slot: one is stored', async (t) => {
      const { stores } = opened;
      const slot = uploadSlot(id('upl', 'race'));
      await stores.createSlot(slot);
      const tries = Array.from({ length: 100 }, (_, i) => uploadFacts(slot, `try-${i}`));
      const outcomes = await Promise.all(tries.map((facts) => stores.putFacts(facts)));
      t.equal(outcomes.filter((outcome) => outcome === 'stored').length, 1);
      const winner = tries[outcomes.indexOf('stored')];
      t.strictSame(
        (await stores.getUpload(slot.uploadId, NOW))?.facts,
        winner,
        'and it is the one that was told so',
      );
    });

    await t.test('sweeping takes what has expired, and only that', async (t) => {
      const { stores } = opened;
      const used = uploadSlot(id('upl', 'used'));
      const open = uploadSlot(id('upl', 'open'), NOW + 10 * FACTS_LIFE_SECONDS);
      await stores.createSlot(used);
      await stores.createSlot(open);
      const facts = uploadFacts(used, 'used');
      await stores.putFacts(facts);
      const charge = usageCharge(id('ptr', 'sweep'), 'once', { dedupeUntil: NOW + 20 * FACTS_LIFE_SECONDS });
      await stores.charge(charge);

      while ((await stores.collectExpired(facts.expiresAt - 1, 7)) === 7);
      t.strictSame(await stores.getUpload(used.uploadId, facts.expiresAt - 1), { slot: used, facts });
      while ((await stores.collectExpired(open.expiresAt - 1, 7)) === 7);
      t.equal(await stores.getUpload(used.uploadId, facts.expiresAt), undefined);
      t.strictSame(await stores.getUpload(open.uploadId, open.expiresAt - 1), { slot: open });
      t.equal((await stores.charge({ ...charge, at: charge.dedupeUntil - 1 })).outcome, 'already_charged');
    });

    await t.test('issuing', async (t) => {
      const { stores } = opened;
      const proof = issuedProof(id('prf', 1), id('ptr', 1));
      const draft = audit(proof.partnerId, 'proof_issued', proof.proofId);
      const replay = issuingReplay(id('replay', 1), proof.proofId);
      t.equal(await stores.getProof(proof.proofId), undefined);
      await t.rejects(stores.issueProof(proof, draft, replay), { code: 'conflict' }, 'not reserved');
      await stores.reserveProof(proof.proofId, proof.partnerId, NOW);
      t.strictSame(await stores.getProof(proof.proofId), {
        state: 'pending',
        proofId: proof.proofId,
        partnerId: proof.partnerId,
        reservedAt: NOW,
      });
      await t.rejects(
        stores.reserveProof(proof.proofId, id('ptr', 2), NOW),
        { code: 'conflict' },
        'reserved by another partner',
      );
      await t.rejects(stores.issueProof({ ...proof, partnerId: id('ptr', 2) }, draft), { code: 'conflict' });
      t.equal(await stores.getIssuingReplay(replay.key, NOW), undefined);

      t.equal(await stores.issueProof(proof, draft, replay), 'issued');
      t.strictSame(await stores.getProof(proof.proofId), proof, 'the sidecar’s bytes included');
      t.strictSame(await stores.getIssuingReplay(replay.key, replay.expiresAt - 1), replay);
      t.equal(await stores.getIssuingReplay(replay.key, replay.expiresAt), undefined);
      t.equal(await stores.issueProof(proof, draft, replay), 'issued', 'repeating a call is harmless');
      await t.rejects(
        stores.issueProof({ ...proof, credentialSha256: '0'.repeat(64) }, draft),
        { code: 'conflict' },
        'issuing something else under the same id is not',
      );

      const second = issuedProof(id('prf', 2), id('ptr', 1));
      await stores.reserveProof(second.proofId, second.partnerId, NOW);
      t.equal(
        await stores.issueProof(second, draft, { ...replay, proofId: second.proofId }),
        'replay_exists',
      );
      t.equal((await stores.getProof(second.proofId))?.state, 'pending', 'nothing was written');
      const afterwards = { ...second, createdAt: replay.expiresAt };
      t.equal(
        await stores.issueProof(
          afterwards,
          draft,
          issuingReplay(replay.key, second.proofId, replay.expiresAt + 60),
        ),
        'issued',
        'an expired replay gives way',
      );
      t.equal((await stores.getIssuingReplay(replay.key, replay.expiresAt))?.proofId, second.proofId);
    });

    await t.test('parallel issuing under one key: one is issued', async (t) => {
      const { stores } = opened;
      const proofs = Array.from({ length: 20 }, (_, i) => issuedProof(id('prf', `race-${i}`), id('ptr', 1)));
      await Promise.all(proofs.map((proof) => stores.reserveProof(proof.proofId, proof.partnerId, NOW)));
      const key = id('replay', 'race');
      const outcomes = await Promise.all(
        proofs.map((proof) =>
          stores.issueProof(
            proof,
            audit(proof.partnerId, 'proof_issued', proof.proofId),
            issuingReplay(key, proof.proofId),
          ),
        ),
      );
      t.equal(outcomes.filter((outcome) => outcome === 'issued').length, 1);
      t.equal(outcomes.filter((outcome) => outcome === 'replay_exists').length, 19);
      const winner = proofs[outcomes.indexOf('issued')]!;
      t.equal((await stores.getIssuingReplay(key, NOW))?.proofId, winner.proofId);
      const states = await Promise.all(
        proofs.map(async (proof) => (await stores.getProof(proof.proofId))?.state),
      );
      t.strictSame(
        states,
        outcomes.map((outcome) => (outcome === 'issued' ? 'issued' : 'pending')),
      );
    });

    await t.test('reserved ids that nobody came back for', async (t) => {
      const { stores } = opened;
      const old = id('prf', 'old');
      const young = id('prf', 'young');
      // Long before anything else here was reserved.
      await stores.reserveProof(old, id('ptr', 1), 1000);
      await stores.reserveProof(young, id('ptr', 1), 1001);
      t.notOk((await stores.collectReservations(1000)).includes(old), 'not yet at its own second');
      const swept = await stores.collectReservations(1001);
      t.ok(swept.includes(old));
      t.notOk(swept.includes(young));
      t.equal(await stores.getProof(old), undefined);
      t.equal((await stores.getProof(young))?.state, 'pending');
      await t.rejects(
        stores.issueProof(issuedProof(old, id('ptr', 1)), audit(id('ptr', 1), 'proof_issued', old)),
        { code: 'conflict' },
        'an issuing that was given up cannot end',
      );
    });

    await t.test('charges: dedupe, quota, windows', async (t) => {
      const { stores } = opened;
      const partnerId = id('ptr', 'usage');
      const charge = (dedupeKey: string, over: Partial<UsageCharge> = {}) =>
        stores.charge(usageCharge(partnerId, dedupeKey, over));
      t.equal(await stores.getUsed(partnerId, NOW), 0);
      t.strictSame(await charge('a'), { outcome: 'charged', used: 1 });
      t.strictSame(await charge('a'), { outcome: 'already_charged', used: 1 });
      t.strictSame(await charge('b', { operation: 'identify' }), { outcome: 'charged', used: 2 });
      t.strictSame(await charge('c', { monthlyQuota: 2 }), { outcome: 'quota_exceeded', used: 2 });
      t.strictSame(
        await charge('a', { monthlyQuota: 2 }),
        { outcome: 'already_charged', used: 2 },
        'a repeated call is answered in a full month too',
      );
      t.strictSame(await charge('c'), { outcome: 'charged', used: 3 }, 'a refused call left nothing behind');
      t.strictSame(await charge('odd / key ☃'), { outcome: 'charged', used: 4 });
      t.strictSame(
        await stores.charge(usageCharge(id('ptr', 'usage2'), 'a')),
        { outcome: 'charged', used: 1 },
        'another partner’s dedupeKey is another',
      );
      t.strictSame(await charge('zero', { monthlyQuota: 0 }), { outcome: 'quota_exceeded', used: 4 });

      // One second later is the next day and the next month.
      t.equal(await stores.getUsed(partnerId, NOW + 1), 0);
      t.strictSame(await charge('a', { at: NOW + 1 }), { outcome: 'already_charged', used: 0 });
      t.strictSame(await charge('d', { at: NOW + 1, monthlyQuota: 1 }), { outcome: 'charged', used: 1 });
      t.strictSame(await charge('e', { at: NOW + 1, monthlyQuota: 1 }), {
        outcome: 'quota_exceeded',
        used: 1,
      });
      t.equal(await stores.getUsed(partnerId, NOW), 4, 'the month before keeps its count');

      const until = usageCharge(partnerId, 'a').dedupeUntil;
      t.equal((await charge('a', { at: until - 1 })).outcome, 'already_charged');
      t.equal(
        (await charge('a', { at: until, dedupeUntil: until + 60 })).outcome,
        'charged',
        'at its end a dedupeKey may come again',
      );
      t.equal((await charge('a', { at: until + 59 })).outcome, 'already_charged');

      t.strictSame(await stores.getDailyUsage(partnerId, '2026-03-31', '2026-04-01'), [
        { day: '2026-03-31', operations: { verify: 3, identify: 1 } },
        { day: '2026-04-01', operations: { verify: 2 } },
      ]);
      t.strictSame(await stores.getDailyUsage(partnerId, '2026-04-01', '2026-04-01'), [
        { day: '2026-04-01', operations: { verify: 2 } },
      ]);
      t.strictSame(await stores.getDailyUsage(partnerId, '2026-04-02', '2026-12-31'), []);
      t.strictSame(await stores.getDailyUsage(id('ptr', 'none'), '2026-01-01', '2026-12-31'), []);
    });

    await t.test('200 parallel charges of a quota of 50: 50 pass', async (t) => {
      const { stores } = opened;
      const partnerId = id('ptr', 'quota');
      const results = await Promise.all(
        Array.from({ length: 200 }, (_, i) =>
          stores.charge(usageCharge(partnerId, `call-${i}`, { monthlyQuota: 50 })),
        ),
      );
      const charged = results.filter(({ outcome }) => outcome === 'charged');
      t.equal(charged.length, 50);
      t.strictSame(
        charged.map(({ used }) => used).sort((a, b) => a - b),
        Array.from({ length: 50 }, (_, i) => i + 1),
        'every unit was given once',
      );
      t.equal(results.filter(({ outcome }) => outcome === 'quota_exceeded').length, 150);
      t.equal(await stores.getUsed(partnerId, NOW), 50);
      t.strictSame(await stores.getDailyUsage(partnerId, '2026-03-31', '2026-03-31'), [
        { day: '2026-03-31', operations: { verify: 50 } },
      ]);
    });

    await t.test('200 parallel charges of ten calls: ten are billed', async (t) => {
      const { stores } = opened;
      const partnerId = id('ptr', 'dedupe');
      const results = await Promise.all(
        Array.from({ length: 200 }, (_, i) => stores.charge(usageCharge(partnerId, `call-${i % 10}`))),
      );
      t.equal(results.filter(({ outcome }) => outcome === 'charged').length, 10);
      t.equal(results.filter(({ outcome }) => outcome === 'already_charged').length, 190);
      t.equal(await stores.getUsed(partnerId, NOW), 10);
    });

    await t.test('free counts join the day’s and cost no unit', async (t) => {
      const { stores } = opened;
      const partnerId = id('ptr', 'meter');
      const other = id('ptr', 'meter2');
      await stores.charge(usageCharge(partnerId, 'a'));
      await stores.meter([], NOW);
      await Promise.all([
        ...Array.from({ length: 50 }, () =>
          stores.meter(
            [
              { partnerId, operation: 'list_proofs', count: 2 },
              { partnerId, operation: 'read_record', count: 1 },
              { partnerId: other, operation: 'read_record', count: 3 },
            ],
            NOW,
          ),
        ),
        ...Array.from({ length: 50 }, (_, i) => stores.charge(usageCharge(partnerId, `call-${i}`))),
        stores.meter(
          [
            { partnerId, operation: 'read_record', count: 1 },
            { partnerId, operation: 'read_record', count: 1 },
          ],
          NOW + 1,
        ),
      ]);
      t.equal(await stores.getUsed(partnerId, NOW), 51);
      const told = await takeWaiting(stores);
      await stores.aggregateUsage([...usageOf(told, partnerId), ...usageOf(told, other)]);
      t.equal(await stores.getUsed(other, NOW), 0);
      t.strictSame(await stores.getDailyUsage(partnerId, '2026-03-31', '2026-04-01'), [
        { day: '2026-03-31', operations: { verify: 51, list_proofs: 100, read_record: 50 } },
        { day: '2026-04-01', operations: { read_record: 2 } },
      ]);
      t.strictSame(await stores.getDailyUsage(other, '2026-03-31', '2026-04-01'), [
        { day: '2026-03-31', operations: { read_record: 150 } },
      ]);
    });

    await proofContract(t, contract);
    await declarationContract(t, contract);
    await auditContract(t, contract);
    await outboxContract(t, contract);
    await consumerContract(t, contract);
    // Last, because it sweeps half a year ahead.
    await reviewContract(t, contract);

    await t.test('it answers', async (t) => {
      await t.resolves(opened.stores.ping());
    });

    if (opened.reopen === undefined) return;
    await t.test('everything is there again after closing and opening', async (t) => {
      const slot = uploadSlot(id('upl', 'reopen'));
      const facts = uploadFacts(slot, 'kept');
      const proof = issuedProof(id('prf', 'reopen'), id('ptr', 1));
      const replay = issuingReplay(id('replay', 'reopen'), proof.proofId);
      const partnerId = id('ptr', 'reopen');
      const before = opened.stores;
      const key = partnerKey(id('key', 'reopen'), partnerId);
      const rotated = rotation(key, id('key', 'reopened'), 1);
      const review = reviewCase(id('rev', 'reopen'), partnerId, proof.proofId);
      // One after another where one call needs another's outcome: of calls that are not waited for, a store
      // promises no order.
      await before.createPartner(partner(partnerId), audit(partnerId, 'partner_created', partnerId));
      await before.createKey(key, audit(partnerId, 'key_created', key.keyId));
      await before.rotateKey(
        rotated,
        partnerKey(rotated.newKeyId, partnerId),
        audit(partnerId, 'key_rotated', key.keyId),
      );
      await before.reserveProof(proof.proofId, proof.partnerId, NOW);
      await before.issueProof(proof, audit(proof.partnerId, 'proof_issued', proof.proofId), replay);
      await before.createSlot(slot);
      await Promise.all([
        before.touchKeys([{ partnerId, keyId: key.keyId, at: NOW + 5 }]),
        before.putFacts(facts),
        before.createReview(review, audit(partnerId, 'review_created', review.reviewId)),
        before.charge(usageCharge(partnerId, 'a')),
      ]);
      const declaration = storedDeclaration('sub_reopen');
      await before.recordDeclaration(
        proof.proofId,
        declaration,
        audit(proof.partnerId, 'declaration_recorded', proof.proofId),
      );
      opened = await opened.reopen!();
      const { stores } = opened;
      await t.rejects(before.ping(), DomainError, 'the closed one refuses');
      await t.rejects(before.getProof(proof.proofId), { code: 'unavailable', reason: 'store_unavailable' });
      t.strictSame(await stores.getUpload(slot.uploadId, NOW), { slot, facts });
      t.equal(await stores.putFacts(uploadFacts(slot, 'again')), 'already_used');
      t.strictSame(await stores.getProof(proof.proofId), { ...proof, declarations: [declaration] });
      t.strictSame(await stores.getIssuingReplay(replay.key, NOW), replay);
      t.strictSame(await stores.charge(usageCharge(partnerId, 'a')), { outcome: 'already_charged', used: 1 });
      t.equal((await stores.getKey(key.keyId))?.expiresAt, rotated.previousKeyExpiresAt);
      t.strictSame(await stores.getRotation(key.keyId), rotated);
      t.strictSame([...(await stores.getKeyUses(partnerId, [key.keyId]))], [[key.keyId, NOW + 5]]);
      t.strictSame(await stores.getReview(partnerId, review.reviewId, NOW), review);
      t.strictSame(
        (await stores.readAudit(partnerId, 1, 10)).map(({ sequence, action }) => [sequence, action]),
        [
          [1, 'partner_created'],
          [2, 'key_created'],
          [3, 'key_rotated'],
          [4, 'review_created'],
        ],
      );
    });
  });
}
