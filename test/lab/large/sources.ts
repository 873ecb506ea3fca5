/** WAV files of any length, made while they are read. */
import { chunk, fmtChunk, noise, riff } from '../../fixtures/wav.js';

const MIB = 1_048_576;
const HEAD_BYTES = 44;
const PIECE = noise(MIB, 42);

/** Yields a stereo WAV file of 24 bits at 96 kHz. @param bytes the length of the file, even and above 44 */
export function* master(bytes: number): Generator<Uint8Array> {
  const format = fmtChunk({ channels: 2, sampleRate: 96_000, bits: 24 });
  const data = chunk({ id: 'data', data: Buffer.alloc(0), size: bytes - HEAD_BYTES });
  yield riff([format, data], { riffSize: bytes - 8 });
  for (let left = bytes - HEAD_BYTES; left > 0; left -= MIB) yield PIECE.subarray(0, left);
}

/** Returns the length of a master of about so many MiB, in whole frames. */
export function masterBytes(mebibytes: number): number {
  return mebibytes * MIB - ((mebibytes * MIB - HEAD_BYTES) % 12);
}
