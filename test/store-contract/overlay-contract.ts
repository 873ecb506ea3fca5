import type { Test } from 'tap';
import type { IssuedProof } from '../../src/service/domain/proof.js';
import type { Stores } from '../../src/service/ports/stores.js';
import {
  addDeclaration,
  type DeclarationStep,
  MAX_DECLARATIONS,
  type StoredDeclaration,
} from '../../src/witness/domain/declaration.js';
import { actionsOf } from './audit-contract.js';
import { audit, issuedProof, NOW, overlayOf, storedDeclaration, summaryOf } from './samples.js';
import type { Contract } from './suite.js';

/** Tests that an overlay is part of the proof. A rule changes it in one step, and it is gone with the proof. */
export async function overlayContract(t: Test, { opened, id }: Contract): Promise<void> {
  const issued = async (name: string) => {
    const proof = issuedProof(id('prf', name), id('ptr', name));
    const { stores } = opened();
    await stores.reserveProof(proof.proofId, proof.partnerId, NOW);
    await stores.issueProof(proof, audit(proof.partnerId, 'proof_issued', proof.proofId));
    return { stores, proof };
  };

  await t.test('a declaration is recorded once and read with its proof', async (t) => {
    const { stores, proof } = await issued('declared');
    const { proofId, partnerId } = proof;
    const first = storedDeclaration('sub_1');
    t.strictSame(await record(stores, proof, first), { outcome: 'recorded', declarations: [first] });
    t.strictSame(await stores.getProof(proofId), { ...proof, overlay: overlayOf([first]) });
    const retried = storedDeclaration('sub_1', { recordedAt: NOW + 60, mac: 'cd'.repeat(32) });
    t.strictSame(
      await record(stores, proof, retried),
      { outcome: 'already_recorded', declaration: first },
      'the first one stays',
    );
    for (const over of [
      { subject: 'creator_2' },
      { submittedAt: NOW - 61 },
      { surveyVersion: '2' },
      { answers: { manualWork: 'some' } },
    ] as const) {
      t.strictSame(await record(stores, proof, storedDeclaration('sub_1', over)), {
        outcome: 'refused',
        reason: 'submission_id_reused',
      });
    }
    const second = storedDeclaration('sub_2', {
      answers: { disputedAssessment: 'disputed', aiRoles: ['vocals', 'lyrics'] },
    });
    t.equal((await recorded(stores, proof, second)).outcome, 'recorded');
    const declared = { ...proof, overlay: overlayOf([first, second]) };
    t.strictSame(await stores.getProof(proofId), declared, 'and nothing else of the proof has changed');
    t.strictSame(await stores.listProofs(partnerId, { limit: 10 }), [declared]);
    t.equal(
      await stores.issueProof(proof, audit(partnerId, 'proof_issued', proofId)),
      'issued',
      'an issuing that is repeated',
    );
    t.strictSame(await stores.getProof(proofId), declared, 'takes none away');
    t.strictSame(
      await actionsOf(opened(), partnerId),
      ['proof_issued', 'declaration_recorded', 'declaration_recorded'],
      'what was not written is not audited',
    );
  });

  await t.test('a rule that throws changes nothing, and one that says so neither', async (t) => {
    const { stores, proof } = await issued('overlay-unchanged');
    const change = (rule: Parameters<Stores['changeOverlay']>[1]) =>
      stores.changeOverlay(
        proof.proofId,
        rule,
        audit(proof.partnerId, 'declaration_recorded', proof.proofId),
      );
    t.equal(await change(({ createdAt }) => ({ result: createdAt })), NOW, 'the rule sees the proof');
    await t.rejects(
      change(() => {
        throw new RangeError('no');
      }),
      RangeError,
    );
    t.strictSame(await stores.getProof(proof.proofId), proof);
    t.strictSame(await actionsOf(opened(), proof.partnerId), ['proof_issued']);
  });

  await t.test('a summary is written beside the overlay or alone, and is not audited', async (t) => {
    const { stores, proof } = await issued('summary');
    const { proofId, partnerId } = proof;
    const alone = summaryOf('', 'trace_truncated');
    t.equal(await stores.changeSummary(proofId, () => ({ summary: alone })), 'settled');
    t.strictSame(await stores.getProof(proofId), { ...proof, summary: alone });
    t.equal(await stores.changeSummary(proofId, () => undefined), 'settled');
    const overlay = overlayOf([storedDeclaration('sub_1')]);
    const summary = summaryOf(overlay.mac, 'creator_declaration');
    await stores.changeOverlay(
      proofId,
      () => ({ result: 'changed', overlay, summary }),
      audit(partnerId, 'declaration_recorded', proofId),
    );
    const changed = { ...proof, overlay, summary };
    t.strictSame(await stores.getProof(proofId), changed);
    t.strictSame(await stores.listProofs(partnerId, { limit: 10 }), [changed], 'a list has the summary');
    const later = overlayOf([], 2);
    await stores.changeOverlay(
      proofId,
      () => ({ result: 'changed', overlay: later }),
      audit(partnerId, 'consent_revoked', proofId),
    );
    t.strictSame(
      await stores.getProof(proofId),
      { ...proof, overlay: later, summary },
      'the former one stays',
    );
    t.strictSame(await actionsOf(opened(), partnerId), [
      'proof_issued',
      'declaration_recorded',
      'consent_revoked',
    ]);
    await erase(stores, proof);
    t.equal(await stores.changeSummary(proofId, () => ({ summary })), 'proof_gone');
    t.match(await stores.getProof(proofId), { state: 'erased', summary: undefined });
  });

  await t.test('of parallel changes none is lost', async (t) => {
    const { stores, proof } = await issued('overlay-parallel');
    const revisions = await Promise.all(
      Array.from({ length: 20 }, () =>
        stores.changeOverlay(
          proof.proofId,
          ({ overlay }) => {
            const revision = (overlay?.revision ?? 0) + 1;
            return { result: revision, overlay: overlayOf([], revision) };
          },
          audit(proof.partnerId, 'declaration_recorded', proof.proofId),
        ),
      ),
    );
    t.strictSame(
      revisions.map(Number).sort((one, other) => one - other),
      Array.from({ length: 20 }, (_, i) => i + 1),
    );
    t.equal((await actionsOf(opened(), proof.partnerId)).length, 21, 'each audited once');
  });

  await t.test('only an issued proof takes a declaration', async (t) => {
    const { stores, proof } = await issued('declared-gone');
    const gone = 'proof_gone';
    const pending = issuedProof(id('prf', 'declared-pending'), proof.partnerId);
    t.strictSame(await record(stores, pending, storedDeclaration('sub_1')), gone, 'never issued');
    await stores.reserveProof(pending.proofId, pending.partnerId, NOW);
    t.strictSame(await record(stores, pending, storedDeclaration('sub_1')), gone, 'reserved');
    await record(stores, proof, storedDeclaration('sub_1'));
    await erase(stores, proof);
    t.strictSame(
      await stores.getProof(proof.proofId),
      { state: 'erased', proofId: proof.proofId, partnerId: proof.partnerId, erasedAt: NOW },
      'the tombstone holds none',
    );
    t.strictSame(await record(stores, proof, storedDeclaration('sub_1')), gone, 'erased');
    t.strictSame(await actionsOf(opened(), proof.partnerId), [
      'proof_issued',
      'declaration_recorded',
      'proof_erased',
    ]);
  });

  await t.test('of 100 parallel recordings of one submission one is written', async (t) => {
    const { stores, proof } = await issued('declared-race');
    const tries = Array.from({ length: 100 }, (_, i) => storedDeclaration('sub_1', { recordedAt: NOW + i }));
    const steps = await Promise.all(tries.map((declaration) => recorded(stores, proof, declaration)));
    const winner = steps.findIndex(({ outcome }) => outcome === 'recorded');
    for (const [i, step] of steps.entries())
      if (i !== winner) t.strictSame(step, { outcome: 'already_recorded', declaration: tries[winner] });
    t.strictSame(await stores.getProof(proof.proofId), { ...proof, overlay: overlayOf([tries[winner]!]) });
  });

  await t.test(
    'of more submissions at once than a proof holds, as many as it holds are written, each once',
    async (t) => {
      const { stores, proof } = await issued('declared-full');
      const tries = Array.from({ length: 100 }, (_, i) => storedDeclaration(`sub_${i}`));
      // Most come one after another: a store gives up calls that wait for seconds.
      const early = MAX_DECLARATIONS - 8;
      const steps: DeclarationStep[] = [];
      for (const declaration of tries.slice(0, early)) steps.push(await recorded(stores, proof, declaration));
      steps.push(
        ...(await Promise.all(tries.slice(early).map((declaration) => recorded(stores, proof, declaration)))),
      );
      const taken = tries
        .filter((_, i) => steps[i]!.outcome === 'recorded')
        .map(({ submissionId }) => submissionId);
      t.equal(taken.length, MAX_DECLARATIONS);
      for (const step of steps)
        if (step.outcome !== 'recorded')
          t.strictSame(step, { outcome: 'refused', reason: 'declarations_full' });
      const row = await stores.getProof(proof.proofId);
      t.strictSame(
        row?.state === 'issued' &&
          row.overlay?.declarations.map(({ submissionId }) => submissionId).toSorted(),
        taken.toSorted(),
      );
      t.equal(
        (await recorded(stores, proof, tries.find(({ submissionId }) => submissionId === taken[0])!)).outcome,
        'already_recorded',
        'a full proof still answers again',
      );
    },
  );

  await t.test('a declaration recorded beside an erasure does not outlive the proof', async (t) => {
    const { stores } = opened();
    const proofs = await Promise.all(
      Array.from({ length: 30 }, async (_, i) => (await issued(`declared-erased-${i}`)).proof),
    );
    await Promise.all(
      proofs.map(async (proof) => {
        await Promise.all([
          record(stores, proof, storedDeclaration('sub_1')),
          erase(stores, proof),
          record(stores, proof, storedDeclaration('sub_2')),
        ]);
        t.strictSame(await stores.getProof(proof.proofId), {
          state: 'erased',
          proofId: proof.proofId,
          partnerId: proof.partnerId,
          erasedAt: NOW,
        });
      }),
    );
  });
}

/** Adds a declaration by a rule, as the service does. */
function record(stores: Stores, { proofId, partnerId }: IssuedProof, declaration: StoredDeclaration) {
  return stores.changeOverlay<DeclarationStep>(
    proofId,
    ({ overlay }) => {
      const result = addDeclaration(overlay?.declarations ?? [], declaration);
      return result.outcome === 'recorded' ? { result, overlay: overlayOf(result.declarations) } : { result };
    },
    audit(partnerId, 'declaration_recorded', proofId, declaration.submissionId),
  );
}

async function recorded(...args: Parameters<typeof record>): Promise<DeclarationStep> {
  const step = await record(...args);
  if (step === 'proof_gone') throw new Error('the proof is gone');
  return step;
}

function erase(stores: Stores, { proofId, partnerId }: IssuedProof) {
  return stores.eraseProof(proofId, partnerId, NOW, audit(partnerId, 'proof_erased', proofId));
}
