/** Chunk of a RIFF file, honest or not. */
export interface ChunkSpec {
  readonly id: string;
  readonly data: Uint8Array;
  /** Size field as written, where it is to lie. */
  readonly size?: number;
  /** Pad byte after odd data; `null` leaves it out. */
  readonly pad?: number | null;
}

/** The bytes of a chunk: header, data, and the pad byte where there is one. */
export function chunk(spec: ChunkSpec): Buffer {
  const header = Buffer.alloc(8);
  header.write(spec.id, 'latin1');
  header.writeUInt32LE((spec.size ?? spec.data.length) >>> 0, 4);
  const pad = spec.data.length % 2 === 1 && spec.pad !== null ? [Buffer.from([spec.pad ?? 0])] : [];
  return Buffer.concat([header, spec.data, ...pad]);
}

/** Wraps chunks in a RIFF/WAVE header; `riffSize` lies where it is given. */
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

/** A fmt chunk of 16 bytes whose fields agree. */
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
