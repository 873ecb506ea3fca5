import { createHash } from 'node:crypto';
import { type EmbeddingPlan, finishEmbedding, planEmbedding } from '../../../core/credential/embed.js';
import { writeSidecar } from '../../../core/credential/sidecar.js';
import { stateSeal } from '../../../core/credential/statement.js';
import { DomainError } from '../../../core/domain/errors.js';
import type { SealStatement } from '../../../core/domain/parsed-credential.js';
import type { AudioEngine } from '../../../core/ports/audio-engine.js';
import type { LocalSigner } from '../../../core/ports/signing.js';
import type { Clock } from '../../ports/system.js';
import { measure, refuseNoAudio, refuseUnembeddable } from './issue-proof.js';

export interface SealAudioDeps {
  readonly engine: AudioEngine;
  /** The signer of the device. */
  readonly signer: LocalSigner;
  readonly clock: Clock;
  readonly random: (length: number) => Uint8Array;
}

/** A file before it is sealed. */
export interface PlainAudio {
  readonly bytes: number;
  /** Reads the file. `sealInFile` reads the file twice: first to measure it, then to bind and write it. */
  read(): AsyncIterable<Uint8Array>;
}

/** A device may seal a file of any format, because no reader takes a seal for an issued credential. */
const ANY_CONTAINER = { allowUnknownContainer: true };

export type SealFacts = Pick<SealStatement, 'sealedAt' | 'kid' | 'device'>;

/**
 * Embeds a seal in a WAV/BWF file, as an artist's device does: offline and unregistered.
 * @returns `file` yields the sealed file once. If it throws, discard the bytes that it yielded
 * @throws DomainError `unprocessable` for a file that cannot contain a seal
 */
export async function sealInFile(
  deps: SealAudioDeps,
  audio: PlainAudio,
): Promise<SealFacts & { readonly file: AsyncIterable<Uint8Array> }> {
  const measurement = await measure(deps.engine, audio.read());
  refuseNoAudio(measurement, ANY_CONTAINER);
  await refuseUnembeddable(measurement, () => audio.read());
  const statement = stateSeal(deps.signer.identity, Math.floor(deps.clock.now() / 1000));
  const plan = planEmbedding({
    audioBytes: measurement.bytes,
    statement,
    signer: deps.signer,
    random: deps.random,
  });
  return { ...factsOf(statement), file: sealedFile(plan, audio) };
}

/** Seals any file as the audio of a pair, with the seal in a sidecar. */
export async function sealBesideFile(
  deps: SealAudioDeps,
  audio: PlainAudio,
): Promise<SealFacts & { readonly sidecar: Uint8Array }> {
  const measurement = await measure(deps.engine, audio.read());
  refuseNoAudio(measurement, ANY_CONTAINER);
  const { bytes, sha256 } = measurement;
  const statement = stateSeal(deps.signer.identity, Math.floor(deps.clock.now() / 1000));
  return {
    ...factsOf(statement),
    sidecar: writeSidecar({ statement, binding: { bytes, sha256 }, signer: deps.signer }),
  };
}

function factsOf({ sealedAt, kid, device }: SealStatement): SealFacts {
  return { sealedAt, kid, device };
}

/**
 * Yields the sealed file. It binds the bytes that it yields, so that the seal fits the written file even if
 * the source changes.
 */
async function* sealedFile(plan: EmbeddingPlan, audio: PlainAudio): AsyncGenerator<Uint8Array> {
  const binding = createHash('sha256');
  let at = 0;
  for await (const chunk of audio.read()) {
    const bytes = withRiffSize(chunk, at, plan.riffSize);
    at += chunk.length;
    binding.update(bytes);
    yield bytes;
  }
  if (at !== plan.start) throw new DomainError('conflict', 'The file changed while it was being sealed.');
  yield (await finishEmbedding(plan, binding.update(new Uint8Array(plan.pad)).digest('hex'))).bytes;
}

/** Writes the RIFF size into bytes 4 to 7 of the file. A chunk may contain any part of them. */
export function withRiffSize(chunk: Uint8Array, at: number, riffSize: number): Uint8Array {
  if (at >= 8) return chunk;
  const field = new Uint8Array(4);
  new DataView(field.buffer).setUint32(0, riffSize, true);
  const patched = Uint8Array.from(chunk);
  for (const [index, byte] of field.entries()) {
    const position = 4 + index - at;
    if (position >= 0 && position < patched.length) patched[position] = byte;
  }
  return patched;
}
