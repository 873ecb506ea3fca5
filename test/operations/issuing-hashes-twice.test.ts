/** Issuing on an engine that measures one wrong digest: nothing is signed, published or registered with it. */
import { randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import t from 'tap';
import { formatIdentifier } from '../../src/core/domain/identifiers.js';
import { createAudioEngine } from '../../src/core/engine/create-engine.js';
import type { AudioEngine } from '../../src/core/ports/audio-engine.js';
import { type IssueProofDeps, issueProof } from '../../src/service/operations/issuing/issue-proof.js';
import type { StagedAsset } from '../../src/service/ports/assets.js';
import { testSigning } from '../fixtures/signing.js';
import { wav } from '../fixtures/wav.js';

const engine = createAudioEngine({ kind: 'native', workers: 1 });
await engine.start();
t.teardown(() => engine.stop());

/** The engine, whose measurement number `wrong` has another digest of the whole file. */
function wrongAt(wrong: number): AudioEngine {
  let ended = 0;
  return {
    start: () => engine.start(),
    stop: () => engine.stop(),
    stats: () => engine.stats(),
    open: (owner) => {
      const ingest = engine.open(owner);
      return {
        signal: ingest.signal,
        write: (part) => ingest.write(part),
        abort: () => ingest.abort(),
        end: async () => {
          const measurement = await ingest.end();
          ended += 1;
          return ended === wrong ? { ...measurement, sha256: '0'.repeat(64) } : measurement;
        },
      };
    },
  };
}

class MemoryStaged implements StagedAsset {
  #bytes = Buffer.alloc(0);
  ended: string[] = [];

  async append(part: Uint8Array): Promise<void> {
    this.#bytes = Buffer.concat([this.#bytes, part]);
  }

  async patch(offset: number, bytes: Uint8Array): Promise<void> {
    this.#bytes.set(bytes, offset);
  }

  read(): Readable {
    return Readable.from([Buffer.from(this.#bytes)]);
  }

  async publish(): Promise<void> {
    this.ended.push('published');
  }

  async discard(): Promise<void> {
    this.ended.push('discarded');
  }
}

/** Issues with one wrong measurement. */
async function issueWrong(carrier: 'embedded' | 'sidecar', audio: Buffer, wrong: number, mend = false) {
  const staged = new MemoryStaged();
  const faults: string[] = [];
  let signed = 0;
  const { signer } = testSigning();
  const deps = {
    engine: wrongAt(wrong),
    stores: { getPartner: async () => ({}), reserveProof: async () => undefined },
    assets: { stage: async () => staged },
    signer: {
      identity: signer.identity,
      sign: (message: Uint8Array) => {
        signed += 1;
        return signer.sign(message);
      },
    },
    certificates: { chain: [], renewal: '' },
    revocations: { find: async () => undefined },
    clock: { now: () => Date.now() },
    ids: {
      next: (kind: 'proof') => formatIdentifier(kind, Date.now(), randomBytes(10)),
      random: (length: number) => randomBytes(length),
    },
    observer: { fault: (where: string) => faults.push(where) },
  } as unknown as IssueProofDeps;
  const error: unknown = await issueProof(deps, {
    partnerId: 'ptr_1',
    songTitle: 'Take one',
    fileName: 'take.wav',
    carrier,
    mend,
    audio: Readable.from([audio.subarray(0, 100), audio.subarray(100)]),
  }).then(
    () => 'issued',
    (refusal: unknown) => refusal,
  );
  return { error, signed, faults, ended: staged.ended };
}

const REFUSED = {
  code: 'unavailable',
  reason: 'engine_failed',
  cause: { message: 'the digests of the engine and of Node differ' },
};

for (const carrier of ['embedded', 'sidecar'] as const)
  t.test(`nothing is signed when the digest of the sent audio is wrong, ${carrier}`, async (t) => {
    const { error, ...rest } = await issueWrong(carrier, wav(5000), 1);
    t.match(error, REFUSED);
    t.strictSame(rest, { signed: 0, faults: ['engine'], ended: ['discarded'] });
  });

t.test('nothing is published when the digest of the credentialed file is wrong', async (t) => {
  const { error, ...rest } = await issueWrong('embedded', wav(5000), 2);
  t.match(error, REFUSED);
  t.strictSame(rest, { signed: 1, faults: ['engine'], ended: ['discarded'] });
});

t.test('nothing is signed when the digest of the mended audio is wrong', async (t) => {
  const broken = wav(5000);
  // The size of the RIFF, one too small.
  broken.writeUInt32LE(broken.readUInt32LE(4) - 1, 4);
  const { error, ...rest } = await issueWrong('embedded', broken, 2, true);
  t.match(error, REFUSED);
  t.strictSame(rest, { signed: 0, faults: ['engine'], ended: ['discarded'] });
});
