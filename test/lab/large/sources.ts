/** WAV files of any length, made while they are read. */
import { noise } from '../../fixtures/wav.js';

const MIB = 1_048_576;
const HEAD_BYTES = 44;
const PIECE = noise(MIB, 42);

/** Yields a stereo WAV file of 24 bits at 96 kHz. @param bytes the length of the file, even and above 44 */
export function* master(bytes: number): Generator<Uint8Array> {
  const head = Buffer.alloc(HEAD_BYTES);
  head.write('RIFF', 0, 'latin1');
  head.writeUInt32LE(bytes - 8, 4);
  head.write('WAVEfmt ', 8, 'latin1');
  head.writeUInt32LE(16, 16);
  head.writeUInt16LE(1, 20);
  head.writeUInt16LE(2, 22);
  head.writeUInt32LE(96_000, 24);
  head.writeUInt32LE(576_000, 28);
  head.writeUInt16LE(6, 32);
  head.writeUInt16LE(24, 34);
  head.write('data', 36, 'latin1');
  head.writeUInt32LE(bytes - HEAD_BYTES, 40);
  yield head;
  for (let left = bytes - HEAD_BYTES; left > 0; left -= MIB) yield PIECE.subarray(0, left);
}

/** Returns the length of a master of about so many MiB, in whole frames. */
export function masterBytes(mebibytes: number): number {
  return mebibytes * MIB - ((mebibytes * MIB - HEAD_BYTES) % 12);
}
