import type { Test } from 'tap';
import type { IssuedProof } from '../../src/service/domain/proof.js';
import {
  type EvidencePart,
  MAX_EVIDENCE_ROW,
  MAX_INLINE_EVIDENCE,
} from '../../src/witness/domain/evidence.js';
import { audit, issuedProof, issuingReplay, NOW, takeBack } from './samples.js';
import type { Contract } from './suite.js';

/** Tests that evidence exists as long as its proof. */
export async function evidenceContract(t: Test, { opened, id }: Contract): Promise<void> {
  const bodies = (mark: number) => [
    { part: 'facts' as const, body: new Uint8Array(MAX_INLINE_EVIDENCE).fill(mark) },
    { part: 'detail' as const, body: Uint8Array.of(mark, 2, 3) },
  ];
  const reserved = async (name: string, over: Partial<IssuedProof> = {}) => {
    const traceSha256 = 'fe'.repeat(32);
    const parts = (['facts', 'detail'] as const).map((part) => ({
      part,
      bytes: 3,
      sha256: 'dc'.repeat(32),
      place: 'registry' as const,
    }));
    const proof = issuedProof(id('prf', name), id('ptr', name), {
      evidence: { engineVersion: 1, traceSha256, parts },
      ...over,
    });
    await opened().stores.reserveProof(proof.proofId, proof.partnerId, NOW);
    return proof;
  };
  const issue = (proof: IssuedProof, mark = 1) =>
    opened().stores.issueProof(
      proof,
      audit(proof.partnerId, 'proof_issued', proof.proofId),
      undefined,
      bodies(mark),
    );
  const erase = ({ proofId, partnerId }: IssuedProof) =>
    opened().stores.eraseProof(proofId, partnerId, NOW, audit(partnerId, 'proof_erased', proofId));
  const read = (proof: IssuedProof) =>
    Promise.all(
      (['facts', 'detail', 'trace'] satisfies EvidencePart[]).map((part) =>
        opened().stores.readEvidence(proof.proofId, part),
      ),
    );
  const NOTHING = [undefined, undefined, undefined];

  await t.test('evidence is read as it was issued, each part by itself', async (t) => {
    const proof = await reserved('evidence');
    t.strictSame(await read(proof), NOTHING, 'of a reserved id');
    t.equal(await issue(proof), 'issued');
    const written = [...bodies(1).map(({ body }) => body), undefined];
    t.strictSame((await read(proof)).map(plain), written.map(plain));
    t.strictSame(await opened().stores.getProof(proof.proofId), proof, 'the record has the reference');
    t.equal(await issue(proof, 9), 'issued', 'an issuing that is repeated');
    t.strictSame((await read(proof)).map(plain), written.map(plain), 'changes nothing');

    const without = await reserved('evidence-without');
    await opened().stores.issueProof(without, audit(without.partnerId, 'proof_issued', without.proofId));
    t.strictSame(await read(without), NOTHING);
  });

  await t.test('a body above the bound is refused before anything is written', async (t) => {
    const proof = await reserved('evidence-large');
    await t.rejects(
      opened().stores.issueProof(proof, audit(proof.partnerId, 'proof_issued', proof.proofId), undefined, [
        { part: 'facts', body: new Uint8Array(MAX_EVIDENCE_ROW + 1) },
      ]),
      RangeError,
    );
    t.equal((await opened().stores.getProof(proof.proofId))?.state, 'pending');
  });

  await t.test(
    'an erasure takes evidence along, and a repeated issuing does not bring it back',
    async (t) => {
      const proof = await reserved('evidence-erased');
      await issue(proof);
      t.match(await erase(proof), { outcome: 'erased' });
      t.strictSame(await read(proof), NOTHING);
      await t.rejects(issue(proof), { code: 'conflict' });
      t.strictSame(await read(proof), NOTHING);
      t.equal(await opened().stores.confirmErasure(proof.proofId, NOW + 1), 'confirmed');
      t.strictSame(await read(proof), NOTHING);
    },
  );

  await t.test('evidence of an issuing that came to nothing is not read', async (t) => {
    const { stores } = opened();
    const first = await reserved('evidence-first');
    const second = await reserved('evidence-second', { partnerId: first.partnerId });
    const key = id('replay', 'evidence');
    const draft = audit(first.partnerId, 'proof_issued', first.proofId);
    t.equal(await stores.issueProof(first, draft, issuingReplay(key, first.proofId), bodies(1)), 'issued');
    t.equal(
      await stores.issueProof(second, draft, issuingReplay(key, second.proofId), bodies(2)),
      'replay_exists',
    );
    t.strictSame(await read(second), NOTHING);
    t.strictSame((await read(first))[1]?.[0], 1);
    t.ok((await takeBack(stores, NOW + 1)).includes(second.proofId));
    t.strictSame(await read(second), NOTHING);
  });
}

/** Returns bytes in a comparable form, without the class of their array. */
function plain(body: Uint8Array | undefined): string | undefined {
  return body && Buffer.from(body).toString('base64');
}
