import type { Recording } from './music.js';

/** 16-bit stereo BWF: `bext` (EBU Tech 3285 version 1), `fmt ` and `data`. */
export function broadcastWave(recording: Recording, title: string): Buffer {
  const fmt = Buffer.alloc(16);
  fmt.writeUInt16LE(1, 0);
  fmt.writeUInt16LE(2, 2);
  fmt.writeUInt32LE(recording.sampleRate, 4);
  fmt.writeUInt32LE(recording.sampleRate * 4, 8);
  fmt.writeUInt16LE(4, 12);
  fmt.writeUInt16LE(16, 14);
  const body = Buffer.concat([
    Buffer.from('WAVE'),
    riffChunk('bext', broadcastExtension(title)),
    riffChunk('fmt ', fmt),
    riffChunk('data', samples(recording, 'little')),
  ]);
  return riffChunk('RIFF', body);
}

/** 16-bit stereo AIFF: `COMM` and `SSND`. */
export function aiff(recording: Recording): Buffer {
  const comm = Buffer.alloc(18);
  comm.writeUInt16BE(2, 0);
  comm.writeUInt32BE(recording.left.length, 2);
  comm.writeUInt16BE(16, 6);
  // The rate as an 80-bit float: exponent biased by 16,383, then the mantissa with its leading one.
  const exponent = Math.floor(Math.log2(recording.sampleRate));
  comm.writeUInt16BE(16_383 + exponent, 8);
  comm.writeBigUInt64BE(BigInt(recording.sampleRate) << BigInt(63 - exponent), 10);
  // Offset and block size, both 0, precede the samples.
  const ssnd = Buffer.concat([Buffer.alloc(8), samples(recording, 'big')]);
  return iffChunk(
    'FORM',
    Buffer.concat([Buffer.from('AIFF'), iffChunk('COMM', comm), iffChunk('SSND', ssnd)]),
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

function riffChunk(id: string, data: Buffer): Buffer {
  const size = Buffer.alloc(4);
  size.writeUInt32LE(data.length);
  return Buffer.concat([Buffer.from(id), size, data, Buffer.alloc(data.length % 2)]);
}

function iffChunk(id: string, data: Buffer): Buffer {
  const size = Buffer.alloc(4);
  size.writeUInt32BE(data.length);
  return Buffer.concat([Buffer.from(id), size, data, Buffer.alloc(data.length % 2)]);
}
