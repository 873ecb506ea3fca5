import type { Test } from 'tap';
import { audit, issuedProof, issuingReplay, NOW, takeBack } from './samples.js';
import type { Contract } from './suite.js';

export async function issuingContract(t: Test, { opened, id }: Contract): Promise<void> {
  await t.test('a reserved id is issued once, and its key replays until it expires', async (t) => {
    const { stores } = opened();
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

    while ((await stores.collectExpired(replay.expiresAt + 60, 100)) === 100);
    t.strictSame(
      await stores.getIssuingReplay(replay.key, replay.expiresAt - 1),
      replay,
      'an issuing that began in time may look for it after the collection',
    );

    const second = issuedProof(id('prf', 2), id('ptr', 1));
    await stores.reserveProof(second.proofId, second.partnerId, NOW);
    t.equal(await stores.issueProof(second, draft, { ...replay, proofId: second.proofId }), 'replay_exists');
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

  await t.test('of parallel issuings under one key one is issued', async (t) => {
    const { stores } = opened();
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

  await t.test('reserved ids are taken back when they were abandoned', async (t) => {
    const { stores } = opened();
    const old = id('prf', 'old');
    const young = id('prf', 'young');
    // Times long before anything else of this suite was reserved.
    await stores.reserveProof(old, id('ptr', 1), 1000);
    await stores.reserveProof(young, id('ptr', 1), 1001);
    t.notOk((await takeBack(stores, 1000)).includes(old), 'not yet at its own second');
    const collected = await takeBack(stores, 1001);
    t.ok(collected.includes(old));
    t.notOk(collected.includes(young));
    t.equal(await stores.getProof(old), undefined);
    t.equal((await stores.getProof(young))?.state, 'pending');
    await t.rejects(
      stores.issueProof(issuedProof(old, id('ptr', 1)), audit(id('ptr', 1), 'proof_issued', old)),
      { code: 'conflict' },
      'an issuing that was given up cannot end',
    );
  });

  await t.test(
    'an id is issued no more before its files go, and one whose files stay holds up no other',
    async (t) => {
      const { stores } = opened();
      const [stuck, other, partnerId] = [id('prf', 'stuck'), id('prf', 'unstuck'), id('ptr', 1)];
      for (const proofId of [stuck, other]) await stores.reserveProof(proofId, partnerId, 900);
      const asked: string[] = [];
      await stores.collectReservations(901, async (proofId) => {
        asked.push(proofId);
        // Amid the removal, too.
        await t.rejects(
          stores.issueProof(issuedProof(proofId, partnerId), audit(partnerId, 'proof_issued', proofId)),
          'nothing is issued under an id whose files go',
        );
        return proofId !== stuck;
      });
      t.ok(
        [stuck, other].every((proofId) => asked.includes(proofId)),
        'one does not hold up the others',
      );
      t.equal(await stores.getProof(stuck), undefined);
      await t.rejects(stores.reserveProof(stuck, partnerId, 950), { code: 'conflict' });
      await t.rejects(
        stores.issueProof(issuedProof(stuck, partnerId), audit(partnerId, 'proof_issued', stuck)),
        { code: 'conflict' },
      );
      t.notOk((await takeBack(stores, 901)).includes(other));
    },
  );
}
