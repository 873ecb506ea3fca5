/** Pairs of each format of masters, issued and verified as large files. In the laboratory they are above 65 MiB. */
import { createHash } from 'node:crypto';
import t from 'tap';
import { MAX_UPLOAD_BYTES } from '../../src/service/domain/upload.js';
import type { Caller } from '../../src/service/operations/caller.js';
import {
  aiffForm,
  cafData,
  cafFile,
  commChunk,
  descChunk,
  type SampleFormat,
  ssndChunk,
} from '../fixtures/samples.js';
import { collect, inPieces, TestService } from '../fixtures/service.js';
import { chunk, fmtChunk, noise } from '../fixtures/wav.js';

const IN_LABORATORY = process.env['TAKEMARK_LAB'] === 'large-files';
const FORMAT: SampleFormat = { bits: 24, channels: 2, rate: 96_000 };
const FRAME_BYTES = 6;
const FRAMES = IN_LABORATORY ? 12_500_000 : 10_000;
const AUDIO_BYTES = FRAMES * FRAME_BYTES;
const UNKNOWN_SIZE = 0xffff_ffff;

/** Returns a file whose 64-bit sizes are in its `ds64` chunk. */
function longWave(form: 'RF64' | 'BW64', audio: Buffer, chunks: readonly Buffer[] = []): Buffer {
  const sizes = Buffer.alloc(28);
  const rest = [
    chunk({ id: 'ds64', data: sizes }),
    fmtChunk({ channels: 2, sampleRate: 96_000, bits: 24 }),
    chunk({ id: 'data', data: audio, size: UNKNOWN_SIZE }),
    ...chunks,
  ];
  const head = Buffer.from(`${form}\xff\xff\xff\xffWAVE`, 'latin1');
  const riffBytes = rest.reduce((sum, { length }) => sum + length, 4);
  const file = Buffer.concat([head, ...rest]);
  file.writeBigUInt64LE(BigInt(riffBytes), head.length + 8);
  file.writeBigUInt64LE(BigInt(audio.length), head.length + 16);
  file.writeBigUInt64LE(BigInt(FRAMES), head.length + 24);
  return file;
}

/** Returns a FLAC file with a header, padding, and bytes in place of frames. */
function flac(audio: Buffer): Buffer {
  const block = (type: number, data: Uint8Array) => {
    const head = Buffer.alloc(4);
    head.writeUInt32BE(((type << 24) | data.length) >>> 0);
    return Buffer.concat([head, data]);
  };
  const info = Buffer.from(
    `10001000${'000000'.repeat(2)}${'17701370000'.padEnd(16, '0')}${'0'.repeat(32)}`,
    'hex',
  );
  return Buffer.concat([Buffer.from('fLaC'), block(0, info), block(0x81, Buffer.alloc(1000)), audio]);
}

/** Returns a box of an MP4 file. */
function box(type: string, data: Uint8Array): Buffer {
  const head = Buffer.alloc(8);
  head.writeUInt32BE(data.length + 8);
  head.write(type, 4, 'latin1');
  return Buffer.concat([head, data]);
}

/** Returns the frames of an MP3 file of 128 kbit/s. Each has 417 bytes. */
function mp3(bytes: number): Buffer {
  const frame = Buffer.alloc(417);
  frame.writeUInt32BE(0xfffb_9000);
  return Buffer.alloc(Math.ceil(bytes / frame.length) * frame.length, frame);
}

const FORMATS: readonly [
  name: string,
  container: string,
  mediaType: string,
  make: (audio: Buffer) => Buffer,
][] = [
  ['RF64', 'rf64', 'audio/wav', (audio) => longWave('RF64', audio)],
  [
    'BW64 with ADM',
    'bw64',
    'audio/wav',
    (audio) =>
      longWave('BW64', audio, [
        chunk({ id: 'axml', data: Buffer.from('<?xml version="1.0"?><ebuCoreMain/>\n') }),
        chunk({ id: 'chna', data: Buffer.alloc(44) }),
      ]),
  ],
  ['AIFF', 'aiff', 'audio/aiff', (audio) => aiffForm([commChunk(FORMAT, FRAMES), ssndChunk(audio)])],
  ['CAF', 'caf', 'audio/x-caf', (audio) => cafFile([descChunk({ ...FORMAT, flags: 2 }), cafData(audio)])],
  ['FLAC', 'flac', 'audio/flac', flac],
  ['MP3', 'mp3', 'audio/mpeg', (audio) => mp3(audio.length)],
  [
    'M4A',
    'mp4',
    'audio/mp4',
    (audio) =>
      Buffer.concat([
        box('ftyp', Buffer.from('M4A \0\0\0\0M4A isom')),
        box('moov', box('mvhd', Buffer.alloc(100))),
        box('mdat', audio),
      ]),
  ],
];

t.test('a large pair of each format is issued, verified with verify_large, and read', async (t) => {
  const service = await TestService.start();
  t.teardown(() => service.stop());
  const { partnerId, caller } = await service.partner();
  const { operator, partner } = service.service.operations;
  const verify = async (by: Caller, audio: Buffer, sidecar: Uint8Array) => {
    const slot = await partner.createUpload(by, { purpose: 'verify_large', contentLength: audio.length });
    const receiver = await partner.receiveUpload(slot.uploadId, new Map(Object.entries(slot.fields)));
    for await (const piece of inPieces(audio)) await receiver.write(piece);
    await receiver.finish();
    return partner.verifyUpload(by, { uploadId: slot.uploadId, sidecar });
  };
  const audio = Buffer.alloc(AUDIO_BYTES, noise(60_000));
  for (const [name, container, mediaType, make] of FORMATS) {
    const file = make(audio);
    const sha256 = createHash('sha256').update(file).digest('hex');
    const { proofId, asset } = await operator.issueProof({
      partnerId,
      songTitle: 'Master',
      fileName: 'master',
      carrier: 'sidecar',
      large: true,
      audio: inPieces(file),
    });
    t.match(asset, { bytes: file.length, sha256, mediaType }, name);
    t.equal(
      asset.uploadPurpose,
      file.length > MAX_UPLOAD_BYTES ? 'verify_large' : undefined,
      `${name}: ${file.length} bytes`,
    );
    const sidecar = await collect(await (await operator.readAsset(proofId, 'sidecar')).read());
    t.match(
      await verify(caller, file, sidecar),
      { verdict: 'valid', proofId, audio: { container, bytes: file.length, sha256 } },
      `${name}: valid`,
    );
    const range = { start: file.length - 1000, end: file.length - 1 };
    t.ok(
      (await collect(await (await partner.readAsset(caller, proofId, 'audio')).read(range))).equals(
        file.subarray(range.start),
      ),
      `${name}: a range of the download`,
    );
    file[file.length - 1]! ^= 1;
    t.match(await verify(caller, file, sidecar), { verdict: 'audioChanged' }, `${name}: a changed byte`);
  }
});
