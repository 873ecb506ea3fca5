import { randomBytes } from 'node:crypto';
import t from 'tap';
import { embed } from '../../src/credential/embed.js';
import { readEmbedded } from '../../src/credential/read-embedded.js';
import { stateProduction, stateSeal } from '../../src/credential/statement.js';
import { testDevice, testSigning } from '../fixtures/signing.js';
import { wav } from '../fixtures/wav.js';
import { judge, startJudge } from '../fixtures/judge.js';

const random = (length: number): Uint8Array => randomBytes(length);
const now = (): number => Math.floor(Date.now() / 1000);
startJudge();

t.test('smoke', async (t) => {
  for (const algorithm of ['Ed25519', 'ES256'] as const) {
    for (const authorityAlgorithm of ['Ed25519', 'ES256'] as const) {
      const { signer, trust, authority } = testSigning({ algorithm, authorityAlgorithm });
      const statement = stateProduction(signer.identity, { proofId: 'prf_01', createdAt: now(), evidenceSha256: null });
      const { file, plan } = embed(wav(1000), { statement, signer, random });
      const j = await judge(file, authority);
      t.equal(j.state, 'Trusted', j.text);
      const r = readEmbedded(file.subarray(plan.start + 8, plan.start + plan.chunkLength), { offset: plan.start, length: plan.chunkLength }, trust);
      t.equal(r.kind, 'service');
      t.comment(JSON.stringify(r), plan.chunkLength);
    }
  }
  const device = testDevice('Studio, Berlin');
  const { file, plan } = embed(wav(1000), { statement: stateSeal(device.identity, now()), signer: device, random });
  const j = await judge(file, '');
  t.equal(j.state, 'Valid', j.text);
  const r = readEmbedded(file.subarray(plan.start + 8, plan.start + plan.chunkLength), { offset: plan.start, length: plan.chunkLength }, testSigning().trust);
  t.equal(r.kind, 'local_seal');
  t.comment(JSON.stringify(r));
});
