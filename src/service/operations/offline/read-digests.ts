import type { MeasuredSamples } from '../../../core/domain/audio.js';
import { defined } from '../../../core/domain/defined.js';
import type { AudioEngine } from '../../../core/ports/audio-engine.js';
import { measure } from '../issuing/issue-proof.js';

/** The digests of a file that a service can look for. */
export interface FileDigests {
  /** The SHA-256 of the whole file. */
  readonly file: string;
  /** The digest that the credential in the file binds. Absent without a credential. */
  readonly bound?: string;
  /** The samples digest. Absent if the file has none. */
  readonly samples?: string;
}

function samplesOf(samples: MeasuredSamples | undefined): Pick<FileDigests, 'samples'> {
  return samples !== undefined && 'sha256' in samples ? { samples: samples.sha256 } : {};
}

/** Reads a file once, without a service, and returns its digests. */
export async function readDigests(
  engine: AudioEngine,
  audio: AsyncIterable<Uint8Array>,
): Promise<FileDigests> {
  const { sha256, bindingSha256, samples } = await measure(engine, audio, { samples: true });
  return defined({ file: sha256, bound: bindingSha256, ...samplesOf(samples) });
}
