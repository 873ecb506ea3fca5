import type { Test } from 'tap';
import { type AuditEntry, AuditWalk } from '../../src/service/domain/audit.js';
import { openEvidence, resolveReview, stepEvidence } from '../../src/service/domain/review.js';
import { audit, issuedProof, NOW, partner, partnerKey, reviewCase, rotation } from './samples.js';
import type { Contract, OpenedStore } from './suite.js';

/** Returns a partner's whole log, which it reads in pages. */
export async function auditOf(
  { stores }: Pick<OpenedStore, 'stores'>,
  partnerId: string,
): Promise<readonly AuditEntry[]> {
  const entries: AuditEntry[] = [];
  for (;;) {
    const page = await stores.readAudit(partnerId, entries.length + 1, 500);
    if (page.length === 0) return entries;
    entries.push(...page);
  }
}

export async function actionsOf(
  opened: Pick<OpenedStore, 'stores' | 'audit'>,
  partnerId: string,
): Promise<readonly string[]> {
  return (await auditOf(opened, partnerId)).map(({ action }) => action);
}

/** Tests that the chained log has one entry for each change that took effect, and none for one that did not. */
export async function auditContract(t: Test, { opened, id }: Contract): Promise<void> {
  await t.test(
    'after a mix of parallel calls the audit log has each change once, in one chain',
    async (t) => {
      const {
        stores,
        audit: { key: auditKey, heads },
      } = opened();
      const partnerId = id('ptr', 'audited');
      const many = <Value>(count: number, call: (i: number) => Promise<Value>) =>
        Promise.allSettled(Array.from({ length: count }, (_, i) => call(i)));
      const keys = Array.from({ length: 10 }, (_, i) => partnerKey(id('key', `audited-${i}`), partnerId));
      const proofs = Array.from({ length: 10 }, (_, i) => issuedProof(id('prf', `audited-${i}`), partnerId));
      await many(3, () =>
        stores.createPartner(partner(partnerId), audit(partnerId, 'partner_created', partnerId)),
      );
      await Promise.all([
        ...keys.map(async (key, n) => {
          await many(3, () => stores.createKey(key, audit(partnerId, 'key_created', key.keyId)));
          await many(3, () =>
            stores.createKey({ ...key, name: 'taken' }, audit(partnerId, 'key_created', key.keyId)),
          );
          await many(10, (i) =>
            stores.rotateKey(
              rotation(key, id('key', `audited-${n}-${i}`), i),
              partnerKey(id('key', `audited-${n}-${i}`), partnerId),
              audit(partnerId, 'key_rotated', key.keyId),
            ),
          );
          await many(10, (i) => stores.revokeKey({ partnerId, keyId: key.keyId, at: NOW + i }));
        }),
        ...proofs.map(async (proof, n) => {
          await stores.reserveProof(proof.proofId, partnerId, NOW);
          await many(3, () => stores.issueProof(proof, audit(partnerId, 'proof_issued', proof.proofId)));
          const review = reviewCase(id('rev', `audited-${n}`), partnerId, proof.proofId);
          await many(5, (i) =>
            stores.createReview(
              { ...review, ...(i === 0 ? {} : { reviewId: `${review.reviewId}-${i}` }) },
              NOW,
              audit(partnerId, 'review_created', review.reviewId),
            ),
          );
          await many(5, (i) =>
            stores.changeReview(
              partnerId,
              review.reviewId,
              NOW,
              (now) => openEvidence(now, 'source_evidence', id('req', i), NOW),
              audit(partnerId, 'review_evidence_opened', review.reviewId),
            ),
          );
          await many(5, () =>
            stores.changeReview(
              partnerId,
              review.reviewId,
              NOW,
              (now) => stepEvidence(now, id('req', 0), 'accept', undefined, NOW),
              audit(partnerId, 'review_evidence_closed', review.reviewId),
            ),
          );
          await many(5, () =>
            stores.changeReview(
              partnerId,
              review.reviewId,
              NOW,
              (now) => resolveReview(now, 'held', NOW),
              audit(partnerId, 'review_resolved', review.reviewId),
            ),
          );
          await many(5, () =>
            stores.eraseProof(proof.proofId, partnerId, NOW, audit(partnerId, 'proof_erased', proof.proofId)),
          );
        }),
      ]);
      const entries = await auditOf(opened(), partnerId);
      const counts: Record<string, number> = {};
      for (const { action } of entries) counts[action] = (counts[action] ?? 0) + 1;
      t.strictSame(counts, {
        partner_created: 1,
        key_created: 10,
        proof_issued: 10,
        key_rotated: 10,
        key_revoked: 10,
        review_created: 10,
        review_evidence_opened: 10,
        review_evidence_closed: 10,
        review_resolved: 10,
        proof_erased: 10,
      });
      t.equal(
        new Set(entries.map(({ action, subjects }) => `${action} ${subjects.join()}`)).size,
        entries.length,
        'each once',
      );

      const head = await heads.get(partnerId);
      t.strictSame(
        head,
        { partnerId, sequence: entries.length, mac: entries.at(-1)?.mac },
        'the head was recorded before the calls resolved',
      );
      const walk = new AuditWalk([auditKey], head);
      for (const entry of entries) walk.take(entry);
      t.strictSame(walk.end(), { ok: true, entries: 91, head: 91 });
      t.strictSame(
        entries.map(({ sequence }) => sequence),
        Array.from({ length: 91 }, (_, i) => i + 1),
      );
      t.strictSame(await stores.readAudit(partnerId, 5, 3), entries.slice(4, 7));
      t.strictSame(await stores.readAudit(partnerId, 92, 3), []);
      t.strictSame(await stores.readAudit(id('ptr', 'audited2'), 1, 3), []);

      const log = id('ptr', 'appended');
      const draft = {
        partnerId: log,
        action: 'signer_revoked',
        at: 5,
        actor: 'operator',
        subjects: ['kid', '4', 'superseded'],
      } as const;
      await Promise.all(Array.from({ length: 5 }, () => stores.appendAudit(draft)));
      t.match(
        await stores.readAudit(log, 1, 10),
        Array.from({ length: 5 }, (_, i) => ({ ...draft, sequence: i + 1 })),
        'an entry by itself, as often as it is asked for',
      );
      t.equal((await heads.get(log))?.sequence, 5);
    },
  );

  await t.test(
    'an entry keeps the id of its request, and the log is intact with and without ids',
    async (t) => {
      const {
        stores,
        audit: { key: auditKey, heads },
      } = opened();
      const partnerId = id('ptr', 'requested');
      const keyId = id('key', 'requested');
      await stores.createPartner(partner(partnerId), audit(partnerId, 'partner_created', partnerId));
      await stores.createKey(partnerKey(keyId, partnerId), {
        ...audit(partnerId, 'key_created', keyId),
        requestId: 'rq_1',
      });
      await stores.revokeKey({ partnerId, keyId, at: NOW, requestId: 'rq_2' });
      await stores.appendAudit({ ...audit(partnerId, 'consent_granted', partnerId), requestId: 'rq_3' });
      const entries = await auditOf(opened(), partnerId);
      t.strictSame(
        entries.map(({ action, requestId }) => [action, requestId]),
        [
          ['partner_created', undefined],
          ['key_created', 'rq_1'],
          ['key_revoked', 'rq_2'],
          ['consent_granted', 'rq_3'],
        ],
      );
      const walk = new AuditWalk([auditKey], await heads.get(partnerId));
      for (const entry of entries) walk.take(entry);
      t.strictSame(walk.end(), { ok: true, entries: 4, head: 4 });
    },
  );
}
