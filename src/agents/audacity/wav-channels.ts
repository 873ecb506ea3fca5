/** Sample types of a WAV file that are read: numbers of the format chunk. */
const PCM = 1;
const FLOAT = 3;
const EXTENSIBLE = 0xfffe;
const MAX_CHANNELS = 256;

/**
 * Samples of a WAV file as float32, one buffer for each channel: 16, 24 and 32 bits, whole numbers divided by the
 * greatest power of two. Undefined where the bytes are no such file.
 */
export function wavChannels(file: Buffer): readonly Buffer[] | undefined {
  if (
    file.length < 12 ||
    file.toString('latin1', 0, 4) !== 'RIFF' ||
    file.toString('latin1', 8, 12) !== 'WAVE'
  )
    return undefined;
  let format: { readonly type: number; readonly channels: number; readonly bits: number } | undefined;
  for (let at = 12; at + 8 <= file.length; ) {
    const size = file.readUInt32LE(at + 4);
    const body = file.subarray(at + 8, Math.min(file.length, at + 8 + size));
    const id = file.toString('latin1', at, at + 4);
    if (id === 'fmt ' && body.length >= 16) {
      const type = body.readUInt16LE(0);
      format = {
        type: type === EXTENSIBLE && body.length >= 26 ? body.readUInt16LE(24) : type,
        channels: body.readUInt16LE(2),
        bits: body.readUInt16LE(14),
      };
    }
    if (id === 'data') return format === undefined ? undefined : split(body, format);
    at += 8 + size + (size % 2);
  }
  return undefined;
}

function split(
  data: Buffer,
  { type, channels, bits }: { readonly type: number; readonly channels: number; readonly bits: number },
): readonly Buffer[] | undefined {
  const read = reader(data, type, bits);
  if (read === undefined || channels < 1 || channels > MAX_CHANNELS) return undefined;
  const width = bits / 8;
  const frames = Math.floor(data.length / (width * channels));
  return Array.from({ length: channels }, (_, channel) => {
    const samples = Buffer.alloc(frames * 4);
    for (let frame = 0; frame < frames; frame += 1)
      samples.writeFloatLE(read((frame * channels + channel) * width), frame * 4);
    return samples;
  });
}

function reader(data: Buffer, type: number, bits: number): ((at: number) => number) | undefined {
  if (type === FLOAT && bits === 32) return (at) => data.readFloatLE(at);
  if (type !== PCM) return undefined;
  if (bits === 16) return (at) => data.readInt16LE(at) / 0x8000;
  if (bits === 24) return (at) => data.readIntLE(at, 3) / 0x80_0000;
  return bits === 32 ? (at) => data.readInt32LE(at) / 0x8000_0000 : undefined;
}
