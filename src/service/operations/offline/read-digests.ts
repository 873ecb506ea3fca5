import { defined } from '../../../core/domain/defined.js';
import type { AudioEngine } from '../../../core/ports/audio-engine.js';
import { measure } from '../issuing/issue-proof.js';

/** The digests of a file that a service can look for. */
export interface FileDigests {
  /** The SHA-256 of the whole file. */
  readonly file: string;
  /** The digest that the credential in the file binds. Absent without a credential. */
  readonly bound?: string;
}

/** Reads a file once, without a service, and returns its digests. */
export async function readDigests(
  engine: AudioEngine,
  audio: AsyncIterable<Uint8Array>,
): Promise<FileDigests> {
  const { sha256, bindingSha256 } = await measure(engine, audio);
  return defined({ file: sha256, bound: bindingSha256 });
}
