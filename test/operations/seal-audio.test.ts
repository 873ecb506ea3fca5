import { createHash, randomBytes } from 'node:crypto';
import { buffer } from 'node:stream/consumers';
import t from 'tap';
import { createAudioEngine } from '../../src/core/engine/create-engine.js';
import {
  type PlainAudio,
  sealBesideFile,
  sealInFile,
} from '../../src/service/operations/issuing/seal-audio.js';
import { readPair, readStore } from '../fixtures/credentialed-file.js';
import { judge, startJudge } from '../fixtures/judge.js';
import { testDevice, testSigning } from '../fixtures/signing.js';
import { chunk, fmtChunk, noise, riff, wav } from '../fixtures/wav.js';

const SEALED_AT = Math.floor(Date.now() / 1000);

function inChunks(file: Uint8Array, size: number): PlainAudio {
  return {
    bytes: file.length,
    read: async function* () {
      for (let at = 0; at < file.length; at += size) yield file.subarray(at, at + size);
    },
  };
}

async function refusal(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => undefined,
    (error: unknown) => error,
  );
}

t.test('a sealed file verifies as the seal of a device', async (t) => {
  const engine = createAudioEngine({ kind: 'native', workers: 1 });
  await engine.start();
  t.teardown(() => engine.stop());
  startJudge();
  const { trust } = testSigning();

  for (const algorithm of ['Ed25519', 'ES256'] as const) {
    const deps = {
      engine,
      signer: testDevice('Studio laptop', algorithm),
      clock: { now: () => SEALED_AT * 1000 },
      random: (length: number) => randomBytes(length),
    };
    for (const [dataBytes, size] of [
      [1000, 1],
      [1001, 5],
      [300_000, 65_536],
    ] as const) {
      const plain = wav(dataBytes, dataBytes % 2 === 1 ? { bits: 8 } : {});
      const before = Buffer.from(plain);
      const { file, ...facts } = await sealInFile(deps, inChunks(plain, size));
      const sealed = await buffer(file);
      t.strictSame(plain, before, 'the source is left as it was');
      t.match(facts, { sealedAt: SEALED_AT, kid: deps.signer.identity.kid, device: 'Studio laptop' });
      t.equal(sealed.readUInt32LE(4) + 8, sealed.length);
      t.strictSame(sealed.subarray(8, plain.length), plain.subarray(8));

      const ingest = engine.open('test');
      await ingest.write(sealed);
      const measurement = await ingest.end();
      t.strictSame(measurement.findings, []);
      const reading = readStore(measurement.credential!.data, measurement.credential!, trust);
      t.match(reading, {
        kind: 'local_seal',
        statement: facts,
        binding: { sha256: measurement.bindingSha256 },
      });
      const judged = await judge(sealed);
      t.equal(judged.state, 'Valid', `${algorithm}, ${dataBytes} bytes: ${judged.text.slice(0, 200)}`);
      t.ok(judged.codes.includes('assertion.dataHash.match'));
      t.match(await refusal(sealInFile(deps, inChunks(sealed, 1000))), {
        reason: 'audio_already_credentialed',
      });
    }
    const audio = noise(12_345);
    const { sidecar, ...facts } = await sealBesideFile(deps, inChunks(audio, 1000));
    t.match(readPair(sidecar, trust), {
      kind: 'local_seal',
      statement: facts,
      binding: { bytes: 12_345, sha256: createHash('sha256').update(audio).digest('hex') },
    });

    t.match(await refusal(sealInFile(deps, inChunks(audio, 1000))), { reason: 'container_needs_sidecar' });
    t.match(await refusal(sealInFile(deps, inChunks(Buffer.concat([wav(10), Buffer.from('tail')]), 1000))), {
      reason: 'audio_malformed',
    });
    t.match(
      await refusal(
        sealInFile(deps, inChunks(riff([fmtChunk(), chunk({ id: 'data', data: Buffer.alloc(0) })]), 1000)),
      ),
      { reason: /audio_/ },
    );
    t.match(await refusal(sealBesideFile(deps, inChunks(Buffer.alloc(0), 1))), { reason: 'audio_empty' });

    let reads = 0;
    const shrinking = { bytes: 1044, read: () => inChunks(reads++ === 0 ? wav(1000) : wav(998), 100).read() };
    const { file } = await sealInFile(deps, shrinking);
    t.match(await refusal(buffer(file)), { code: 'conflict' }, 'a file that changes is not sealed');
  }
});
