/** A chunk of a RIFF file, valid or deliberately invalid. */
export interface ChunkSpec {
  readonly id: string;
  readonly data: Uint8Array;
  /** The value of the size field, if it must differ from the true size. */
  readonly size?: number;
  /** The pad byte after data of odd length. `null` omits it. */
  readonly pad?: number | null;
}

/** Returns the bytes of a chunk: header, data and, after data of odd length, the pad byte. */
export function chunk(spec: ChunkSpec): Buffer {
  const header = Buffer.alloc(8);
  header.write(spec.id, 'latin1');
  header.writeUInt32LE((spec.size ?? spec.data.length) >>> 0, 4);
  const pad = spec.data.length % 2 === 1 && spec.pad !== null ? [Buffer.from([spec.pad ?? 0])] : [];
  return Buffer.concat([header, spec.data, ...pad]);
}

/** Wraps chunks in a RIFF/WAVE header. A given `riffSize` replaces the true size. */
export function riff(
  chunks: readonly Uint8Array[],
  { magic = 'RIFF', form = 'WAVE', riffSize }: { magic?: string; form?: string; riffSize?: number } = {},
): Buffer {
  const body = Buffer.concat(chunks);
  const header = Buffer.alloc(12);
  header.write(magic, 'latin1');
  header.writeUInt32LE((riffSize ?? body.length + 4) >>> 0, 4);
  header.write(form, 8, 'latin1');
  return Buffer.concat([header, body]);
}

export interface FormatSpec {
  readonly tag?: number;
  readonly channels?: number;
  readonly sampleRate?: number;
  readonly bits?: number;
}

/** Returns a fmt chunk of 16 bytes with consistent fields. */
export function fmtChunk({ tag = 1, channels = 1, sampleRate = 44_100, bits = 16 }: FormatSpec = {}): Buffer {
  const data = Buffer.alloc(16);
  const blockAlign = channels * Math.ceil(bits / 8);
  data.writeUInt16LE(tag, 0);
  data.writeUInt16LE(channels, 2);
  data.writeUInt32LE(sampleRate, 4);
  data.writeUInt32LE(sampleRate * blockAlign, 8);
  data.writeUInt16LE(blockAlign, 12);
  data.writeUInt16LE(bits, 14);
  return chunk({ id: 'fmt ', data });
}

/**
 * Returns an ID3v2 tag with a body of `bytes` zeros, which readers take for padding (ID3v2.4 structure,
 * section 3.1).
 */
export function id3Tag(bytes = 10, { version = 4, flags = 0 } = {}): Buffer {
  const header = Buffer.from([0x49, 0x44, 0x33, version, 0, flags, 0, 0, 0, 0]);
  for (let at = 0; at < 4; at += 1) header[9 - at] = (bytes >> (7 * at)) & 0x7f;
  return Buffer.concat([header, Buffer.alloc(bytes)]);
}
