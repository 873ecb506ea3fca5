/** The pass that computes the samples digests of proofs of earlier versions. */
import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import t from 'tap';
import { createAudioEngine } from '../../src/core/engine/create-engine.js';
import type { AddedDigests } from '../../src/service/domain/digests.js';
import type { IssuedProof, Proof } from '../../src/service/domain/proof.js';
import { type FillSamplesDeps, fillSamples } from '../../src/service/operations/proofs/fill-samples.js';
import { noise, wav } from '../fixtures/wav.js';
import { issuedProof } from '../store-contract/samples.js';

const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

t.test('each proof without samples gets them from its file, in steps that continue', async (t) => {
  const engine = createAudioEngine({ kind: 'wasm', workers: 1 });
  await engine.start();
  t.teardown(() => engine.stop());
  const files = new Map<string, Uint8Array>([
    ['prf_1', wav(800, {}, 1)],
    ['prf_2', noise(800)],
    ['prf_3', wav(800, {}, 3)],
    ['prf_damaged', wav(800, {}, 4)],
  ]);
  const record = (proofId: string, over: Partial<IssuedProof> = {}): Proof => {
    const file = files.get(proofId) ?? Buffer.alloc(0);
    const asset = { bytes: file.length, sha256: sha256(file), fileName: 'a.wav', mediaType: 'audio/wav' };
    return issuedProof(proofId, 'ptr_1', { asset, ...over });
  };
  const proofs = new Map<string, Proof>([
    ['prf_1', record('prf_1')],
    ['prf_2', record('prf_2')],
    ['prf_3', record('prf_3', { samplesSha256: sha256(Buffer.from('known')) })],
    ['prf_damaged', record('prf_damaged', { asset: { ...(record('prf_1') as IssuedProof).asset } })],
    ['prf_lost', record('prf_lost')],
    ['prf_imported', record('prf_imported', { legacy: { importedAt: 1 } })],
    ['prf_erased', { state: 'erased', proofId: 'prf_erased', partnerId: 'ptr_1', erasedAt: 1 }],
  ]);
  const ids = [...proofs.keys()];
  const added: [string, AddedDigests][] = [];
  const deps: FillSamplesDeps = {
    engine,
    samplesRate: 1e9,
    encrypted: { getProof: async (proofId) => proofs.get(proofId) },
    stores: {
      getProof: async (proofId) => proofs.get(proofId),
      addDigests: async (proofId, digests) => {
        added.push([proofId, digests]);
        proofs.set(proofId, { ...(proofs.get(proofId) as IssuedProof), ...digests });
        return 'added';
      },
    },
    assets: {
      read: async (proofId) => {
        const file = files.get(proofId);
        return file && Readable.from([file]);
      },
    },
    audited: {
      // Two pages.
      proofs: async (after) =>
        after === undefined ? { items: ids.slice(0, 3), next: 'page:2' } : { items: ids.slice(3) },
    },
  };
  t.strictSame(await fillSamples(deps, {}), {
    looked: 3,
    filled: 1,
    without: 1,
    failed: [],
    next: '0:page:2',
  });
  t.match(added, [
    ['prf_1', { samplesSha256: /^[0-9a-f]{64}$/ }],
    ['prf_2', { samplesReason: 'container_unsupported' }],
  ]);
  t.strictSame(await fillSamples(deps, { from: '0:page:2' }), {
    looked: 4,
    filled: 0,
    without: 0,
    failed: ['prf_damaged', 'prf_lost'],
  });
  t.strictSame(await fillSamples(deps, { from: '2:page:2' }), {
    looked: 2,
    filled: 0,
    without: 0,
    failed: [],
  });
  t.equal(added.length, 2, 'nothing is computed twice');
  t.match(await fillSamples(deps, {}), { looked: 3, filled: 0, without: 0 });
  for (const from of ['x', '1234:', ':'])
    await t.rejects(fillSamples(deps, { from }), { code: 'invalid_request', reason: 'invalid_member' });
});
