import type { Test } from 'tap';
import { DomainError } from '../../src/core/domain/errors.js';
import type { AuditHeads } from '../../src/service/ports/journals.js';
import type { Stores } from '../../src/service/ports/stores.js';
import { auditContract } from './audit-contract.js';
import { consumerContract } from './consumer-contract.js';
import { evidenceContract } from './evidence-contract.js';
import { issuingContract } from './issuing-contract.js';
import { keyContract } from './key-contract.js';
import { outboxContract } from './outbox-contract.js';
import { overlayContract } from './overlay-contract.js';
import { proofContract } from './proof-contract.js';
import { reviewContract } from './review-contract.js';
import {
  audit,
  issuedProof,
  issuingReplay,
  NOW,
  overlayOf,
  partner,
  partnerKey,
  reviewCase,
  rotation,
  storedDeclaration,
  uploadFacts,
  uploadSlot,
  usageCharge,
} from './samples.js';
import { uploadContract } from './upload-contract.js';
import { usageContract } from './usage-contract.js';

/** A store under test. */
export interface OpenedStore {
  readonly stores: Stores;
  /** Options of the audit log. */
  readonly audit: { readonly key: Uint8Array; readonly heads: AuditHeads };
  /** Whether a full outbox refuses a charge. Otherwise its event stays in the store alone. */
  readonly refusesCharges: boolean;
  readonly close: () => Promise<void>;
  /** Closes the store and opens the same data again. The former object is no longer used. */
  readonly reopen?: () => Promise<OpenedStore>;
}

export interface OpenOptions {
  /** The number of events that may wait. Default: the store's own limit. */
  readonly outboxLimit?: number;
}

/** The store under test, for the parts of the suite. */
export interface Contract {
  /** Opens one more store, of the same data or of its own. */
  readonly open: (options: OpenOptions) => Promise<OpenedStore>;
  /** Returns the open store. */
  readonly opened: () => OpenedStore;
  /** Returns an id that no earlier run had. */
  readonly id: (kind: string, of: string | number) => string;
}

/** Tests the contract of every store. Ids are new in every run, so a store may have data of earlier runs. */
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

    await uploadContract(t, contract);
    await issuingContract(t, contract);
    await usageContract(t, contract);
    await proofContract(t, contract);
    await overlayContract(t, contract);
    await evidenceContract(t, contract);
    await auditContract(t, contract);
    await outboxContract(t, contract);
    await consumerContract(t, contract);
    // Last, because it collects half a year ahead.
    await reviewContract(t, contract);

    await t.test('a ping is answered', async (t) => {
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
      // Calls that depend on each other are awaited one after another, because a store does not order
      // concurrent calls.
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
        before.createReview(review, review.createdAt, audit(partnerId, 'review_created', review.reviewId)),
        before.charge(usageCharge(partnerId, 'a')),
      ]);
      const overlay = overlayOf([storedDeclaration('sub_reopen')], 1);
      await before.changeOverlay(
        proof.proofId,
        () => ({ result: 'changed', overlay }),
        audit(proof.partnerId, 'declaration_recorded', proof.proofId),
      );
      opened = await opened.reopen!();
      const { stores } = opened;
      await t.rejects(before.ping(), DomainError, 'the closed one refuses');
      await t.rejects(before.getProof(proof.proofId), { code: 'unavailable', reason: 'store_unavailable' });
      t.strictSame(await stores.getUpload(slot.uploadId, NOW), { slot, facts });
      t.equal(await stores.putFacts(uploadFacts(slot, 'again')), 'already_used');
      t.strictSame(await stores.getProof(proof.proofId), { ...proof, overlay });
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
