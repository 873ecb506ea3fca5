/**
 * Audio files as a session holds them: WAVE and its 64-bit form. The header of a file that grows says nothing of its
 * length; where its data begins is enough.
 */
import { createHash } from 'node:crypto';
import { type FileHandle, open } from 'node:fs/promises';

export interface WaveLayout {
  readonly dataStart: number;
  /** The bytes of the data according to the header. A file that is not closed has more or less. */
  readonly dataBytes: number;
  readonly channels: number;
  readonly rate: number;
  readonly bits: number;
  readonly isFloat: boolean;
  readonly frameBytes: number;
}

/** The most bytes of a header before the data. An archive's metadata may be long. */
const MAX_HEADER_BYTES = 1_048_576;
const MAX_CHUNKS = 64;
const MAX_RATE = 6_144_000;
const CHUNK_BYTES = 1_048_576;
const EXTENSIBLE = 0xfffe;
const IN_DS64 = 0xffffffff;

/** Returns the layout of a PCM or float WAVE file, or undefined for any other file or a header not yet written. */
export async function readWaveLayout(file: FileHandle): Promise<WaveLayout | undefined> {
  const head = Buffer.alloc(12);
  if ((await file.read(head, 0, 12, 0)).bytesRead < 12 || head.toString('latin1', 8, 12) !== 'WAVE')
    return undefined;
  if (!['RIFF', 'RF64', 'BW64'].includes(head.toString('latin1', 0, 4))) return undefined;
  let format: Omit<WaveLayout, 'dataStart' | 'dataBytes'> | undefined;
  let longData: number | undefined;
  let at = 12;
  for (let chunk = 0; chunk < MAX_CHUNKS && at < MAX_HEADER_BYTES; chunk += 1) {
    const body = Buffer.alloc(48);
    const { bytesRead } = await file.read(body, 0, 48, at);
    if (bytesRead < 8) return undefined;
    const name = body.toString('latin1', 0, 4);
    const size = body.readUInt32LE(4);
    if (name === 'ds64' && bytesRead >= 24) longData = Number(body.readBigUInt64LE(16));
    if (name === 'fmt ' && bytesRead >= 24) format = readFormat(body.subarray(8, bytesRead), size);
    if (name === 'data') {
      if (format === undefined) return undefined;
      const dataBytes = size === IN_DS64 && longData !== undefined ? longData : size;
      return { ...format, dataStart: at + 8, dataBytes };
    }
    at += 8 + size + (size % 2);
  }
  return undefined;
}

function readFormat(body: Buffer, size: number): Omit<WaveLayout, 'dataStart' | 'dataBytes'> | undefined {
  const tag = body.readUInt16LE(0);
  const kind = tag === EXTENSIBLE && size >= 26 && body.length >= 26 ? body.readUInt16LE(24) : tag;
  const channels = body.readUInt16LE(2);
  const rate = body.readUInt32LE(4);
  const frameBytes = body.readUInt16LE(12);
  const bits = body.readUInt16LE(14);
  const isWhole =
    channels >= 1 && channels <= 256 && rate >= 1 && rate <= MAX_RATE && frameBytes * 8 === channels * bits;
  return (kind === 1 || kind === 3) && isWhole
    ? { channels, rate, bits, isFloat: kind === 3, frameBytes }
    : undefined;
}

export interface AudioDigest {
  readonly fileSha256: string;
  /** The SHA-256 of the data alone of a WAVE file. The format below is the header's, but the frames are counted. */
  readonly samplesSha256?: string;
  readonly frames?: number;
  readonly rate?: number;
  readonly channels?: number;
  readonly bits?: number;
  readonly isFloat?: boolean;
}

/** Returns the digest of a whole file and, for a WAVE file, the digest and the format of its samples. */
export async function digestAudio(path: string): Promise<AudioDigest> {
  const file = await open(path, 'r');
  try {
    const layout = await readWaveLayout(file);
    const { size } = await file.stat();
    const whole = createHash('sha256');
    const samples = createHash('sha256');
    const dataStart = layout?.dataStart ?? 0;
    const data = Math.min(layout?.dataBytes ?? 0, Math.max(0, size - dataStart));
    const dataEnd = dataStart + data - (layout === undefined ? 0 : data % layout.frameBytes);
    for await (const [at, bytes] of read(file)) {
      whole.update(bytes);
      const [from, to] = [Math.max(dataStart - at, 0), Math.min(dataEnd - at, bytes.length)];
      if (to > from) samples.update(bytes.subarray(from, to));
    }
    const fileSha256 = whole.digest('hex');
    if (layout === undefined) return { fileSha256 };
    const { rate, channels, bits, isFloat, frameBytes } = layout;
    const frames = (dataEnd - dataStart) / frameBytes;
    return { fileSha256, samplesSha256: samples.digest('hex'), frames, rate, channels, bits, isFloat };
  } finally {
    await file.close();
  }
}

/** The number of frames of a window that is compared. */
const WINDOW_FRAMES = 4096;
/**
 * The greatest difference that dither makes between two 16-bit samples. Ardour's shaped dither is noise that continues
 * from one export of a process to the next. In trials it made differences of up to 4.
 */
const DITHER_STEPS = 8;

/**
 * Compares the samples of two WAVE files in windows of 4,096 frames. Windows of 16-bit samples are equal if they differ
 * only by dither.
 * @returns undefined for files of different formats, or that are not WAVE
 */
export async function compareWindows(
  one: string,
  other: string,
): Promise<{ readonly windows: number; readonly equalWindows: number } | undefined> {
  const [first, second] = [await open(one, 'r'), await open(other, 'r').catch(() => undefined)];
  try {
    const layouts = [await readWaveLayout(first), second && (await readWaveLayout(second))] as const;
    const [left, right] = layouts;
    if (second === undefined || left === undefined || right === undefined) return undefined;
    if (left.frameBytes !== right.frameBytes || left.isFloat !== right.isFloat) return undefined;
    const bytes = WINDOW_FRAMES * left.frameBytes;
    const [mine, yours] = [Buffer.alloc(bytes), Buffer.alloc(bytes)];
    const end = Math.min(left.dataBytes, (await first.stat()).size - left.dataStart);
    let windows = 0;
    let equalWindows = 0;
    for (let at = 0; at < end; at += bytes) {
      const length = Math.min(bytes, end - at);
      await first.read(mine, 0, length, left.dataStart + at);
      const { bytesRead } = await second.read(yours, 0, length, right.dataStart + at);
      windows += 1;
      if (bytesRead !== length) continue;
      const [one, other] = [mine.subarray(0, length), yours.subarray(0, length)];
      if (one.equals(other) || (left.bits === 16 && differsByDither(one, other))) equalWindows += 1;
    }
    return { windows, equalWindows };
  } finally {
    await first.close();
    await second?.close();
  }
}

function differsByDither(one: Buffer, other: Buffer): boolean {
  for (let at = 0; at + 1 < one.length; at += 2)
    if (Math.abs(one.readInt16LE(at) - other.readInt16LE(at)) > DITHER_STEPS) return false;
  return true;
}

async function* read(file: FileHandle): AsyncGenerator<readonly [at: number, bytes: Buffer]> {
  const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
  for (let at = 0; ; ) {
    const { bytesRead } = await file.read(chunk, 0, CHUNK_BYTES, at);
    if (bytesRead === 0) return;
    yield [at, chunk.subarray(0, bytesRead)];
    at += bytesRead;
  }
}

/**
 * Returns the digest of each channel's samples as a session of float samples holds them: 16 and 24 bit become float
 * without loss. Returns undefined for every format but these and 32-bit float: a session may round its samples.
 */
export async function digestChannels(path: string): Promise<readonly string[] | undefined> {
  const file = await open(path, 'r');
  try {
    const layout = await readWaveLayout(file);
    if (layout === undefined || layout.channels > 32) return undefined;
    const convert = converterOf(layout);
    if (convert === undefined) return undefined;
    const { size } = await file.stat();
    const bytes = Math.min(layout.dataBytes, size - layout.dataStart);
    const end = layout.dataStart + bytes - (bytes % layout.frameBytes);
    const hashes = Array.from({ length: layout.channels }, () => createHash('sha256'));
    const frames = Math.floor(CHUNK_BYTES / layout.frameBytes);
    const chunk = Buffer.allocUnsafe(frames * layout.frameBytes);
    const floats = Buffer.allocUnsafe(frames * 4);
    const sampleBytes = layout.bits / 8;
    for (let at = layout.dataStart; at < end; ) {
      const { bytesRead } = await file.read(chunk, 0, Math.min(chunk.length, end - at), at);
      const count = Math.floor(bytesRead / layout.frameBytes);
      if (count === 0) break;
      for (const [channel, hash] of hashes.entries()) {
        for (let frame = 0; frame < count; frame += 1)
          floats.writeFloatLE(convert(chunk, frame * layout.frameBytes + channel * sampleBytes), frame * 4);
        hash.update(floats.subarray(0, count * 4));
      }
      at += count * layout.frameBytes;
    }
    return hashes.map((hash) => hash.digest('hex'));
  } finally {
    await file.close();
  }
}

function converterOf({ bits, isFloat }: WaveLayout): ((bytes: Buffer, at: number) => number) | undefined {
  if (isFloat) return bits === 32 ? (bytes, at) => bytes.readFloatLE(at) : undefined;
  if (bits === 16) return (bytes, at) => bytes.readInt16LE(at) / 32_768;
  return bits === 24 ? (bytes, at) => bytes.readIntLE(at, 3) / 8_388_608 : undefined;
}
