import { chunk, fmtChunk, riff } from '../../service/operations/sandbox/wave-file.js';
import type { Recording } from './music.js';

/** Returns a 16-bit stereo BWF with `bext` (EBU Tech 3285 version 1), `fmt ` and `data`. */
export function broadcastWave(recording: Recording, title: string): Buffer {
  return riff([
    chunk({ id: 'bext', data: broadcastExtension(title) }),
    fmtChunk({ channels: 2, sampleRate: recording.sampleRate }),
    chunk({ id: 'data', data: samples(recording, 'little') }),
  ]);
}

/** Returns a 16-bit stereo AIFF with `COMM` and `SSND`. */
export function aiff(recording: Recording): Buffer {
  const comm = Buffer.alloc(18);
  comm.writeUInt16BE(2, 0);
  comm.writeUInt32BE(recording.left.length, 2);
  comm.writeUInt16BE(16, 6);
  extended(recording.sampleRate).copy(comm, 8);
  // Offset and block size, both 0, precede the samples.
  const ssnd = Buffer.concat([Buffer.alloc(8), samples(recording, 'big')]);
  return aiffChunk(
    'FORM',
    Buffer.concat([Buffer.from('AIFF'), aiffChunk('COMM', comm), aiffChunk('SSND', ssnd)]),
  );
}

function samples({ left, right }: Recording, order: 'little' | 'big'): Buffer {
  const bytes = Buffer.alloc(left.length * 4);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  for (let i = 0; i < left.length; i += 1) {
    view.setInt16(i * 4, Math.round((left[i] ?? 0) * 32_767), order === 'little');
    view.setInt16(i * 4 + 2, Math.round((right[i] ?? 0) * 32_767), order === 'little');
  }
  return bytes;
}

function broadcastExtension(title: string): Buffer {
  const bext = Buffer.alloc(602);
  bext.write(title, 0, 256, 'latin1');
  bext.write('Takemark demo', 256, 32, 'latin1');
  bext.write('TAKEMARKDEMO0001', 288, 32, 'latin1');
  bext.write('2026-01-3112:00:00', 320, 18, 'latin1');
  bext.writeUInt16LE(1, 346);
  return Buffer.concat([bext, Buffer.from('A=PCM,F=44100,W=16,M=stereo,T=synthesis\r\n')]);
}

/** Returns the chunk of an AIFF file. */
export function aiffChunk(id: string, data: Uint8Array): Buffer {
  const header = Buffer.alloc(8);
  header.write(id, 'latin1');
  header.writeUInt32BE(data.length, 4);
  return Buffer.concat([header, data, Buffer.alloc(data.length % 2)]);
}

/**
 * Returns a whole number from 1 to 2^32 - 1 as an 80-bit float: the exponent biased by 16,383, then the mantissa with
 * its leading one.
 */
export function extended(value: number): Buffer {
  const exponent = Math.floor(Math.log2(value));
  const bytes = Buffer.alloc(10);
  bytes.writeUInt16BE(16_383 + exponent, 0);
  bytes.writeBigUInt64BE(BigInt(value) << BigInt(63 - exponent), 2);
  return bytes;
}
