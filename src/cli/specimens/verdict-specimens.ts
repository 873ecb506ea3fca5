import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import type { KnownVerdict } from '../../client/index.js';
import { RuntimeError } from '../command.js';
import type { Sealer } from '../sealer.js';

/** A file, its history, and the expected verdict. */
export interface Specimen {
  readonly fileName: string;
  readonly story: string;
  readonly audio: Uint8Array;
  readonly sidecar?: Uint8Array;
  readonly expected: KnownVerdict;
}

/** An audio file with its issued credential, either embedded or as a sidecar. */
export interface Issued {
  readonly proofId: string;
  readonly audio: Buffer;
  readonly sidecar?: Buffer;
}

export interface Fixtures {
  readonly wav: Buffer;
  readonly embedded: Issued;
  readonly pair: Issued;
  /** An audio file whose credential another environment issued under another authority. */
  readonly foreign: Issued;
  readonly sealed: Buffer;
}

/** Returns at least one specimen for each of the six verdicts. */
export function specimens({ wav, embedded, pair, foreign, sealed }: Fixtures): readonly Specimen[] {
  const sidecar = pair.sidecar === undefined ? {} : { sidecar: pair.sidecar };
  return [
    { fileName: 'take.wav', story: 'issued, credential embedded', audio: embedded.audio, expected: 'valid' },
    {
      fileName: 'take.aiff + take.sidecar',
      story: 'issued as a pair',
      audio: pair.audio,
      ...sidecar,
      expected: 'valid',
    },
    {
      fileName: 'louder.aiff + take.sidecar',
      story: 'one sample of the pair changed',
      audio: flipped(pair.audio, Math.floor(pair.audio.length / 2)),
      ...sidecar,
      expected: 'audioChanged',
    },
    {
      fileName: 'renamed.wav',
      story: 'proof id in the credential replaced',
      audio: withOtherProofId(embedded),
      expected: 'tampered',
    },
    {
      fileName: 'beta.wav',
      story: 'issued by another environment',
      audio: foreign.audio,
      expected: 'unregistered',
    },
    {
      fileName: 'edited.wav',
      story: 'one sample changed after issuing',
      audio: flipped(embedded.audio, Math.floor(wav.length / 2)),
      expected: 'unreadable',
    },
    { fileName: 'plain.wav', story: 'not issued, no credential', audio: wav, expected: 'unreadable' },
    {
      fileName: 'sealed.wav',
      story: "sealed offline by an artist's device",
      audio: sealed,
      expected: 'local_seal',
    },
  ];
}

export async function sealedCopy(sealer: Sealer, audio: Uint8Array): Promise<Buffer> {
  const { file } = await sealer.embed({
    bytes: audio.length,
    read: async function* () {
      yield audio;
    },
  });
  return buffer(file);
}

/** Writes the specimens to a directory. */
export async function writeSpecimens(directory: string, list: readonly Specimen[]): Promise<void> {
  for (const { fileName, audio, sidecar } of list) {
    const [audioName = fileName, sidecarName] = fileName.split(' + ');
    await writeFile(join(directory, audioName), audio);
    if (sidecar !== undefined && sidecarName !== undefined)
      await writeFile(join(directory, sidecarName), sidecar);
  }
}

function flipped(bytes: Uint8Array, at: number): Buffer {
  const copy = Buffer.from(bytes);
  copy[at] = (copy[at] ?? 0) ^ 1;
  return copy;
}

/** Swaps the last character of the proof id that is written in the credential. */
function withOtherProofId({ proofId, audio }: Issued): Buffer {
  const at = audio.lastIndexOf(proofId, undefined, 'latin1');
  if (at < 0) throw new RuntimeError('the credential does not name its proof');
  const copy = Buffer.from(audio);
  copy.write(proofId.endsWith('0') ? '1' : '0', at + proofId.length - 1, 'latin1');
  return copy;
}
