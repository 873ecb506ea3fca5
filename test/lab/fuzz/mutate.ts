/** Returns a whole number below `bound`. The seed determines the sequence. */
export type RandomNumbers = (bound: number) => number;

const INTERESTING = [0, 1, 0x7f, 0x80, 0xff, 0x0d, 0x0a, 0x20, 0x22, 0x2d, 0x5c];
const LENGTHS = [
  0, 1, 2, 7, 8, 15, 16, 23, 24, 31, 32, 63, 64, 127, 128, 255, 256, 0x7fff, 0x8000, 0xffff, 0x7fff_ffff,
  0x8000_0000, 0xffff_fff7, 0xffff_ffff,
];
const MOST_AT_ONCE = 6;

/**
 * Returns a copy with one to six changes of bytes, lengths, blocks and words. `others` are inputs from which
 * blocks are copied. `words` are byte strings with a meaning for the reader.
 */
export function mutate(
  input: Uint8Array,
  others: readonly Uint8Array[],
  words: readonly Uint8Array[],
  maxBytes: number,
  random: RandomNumbers,
): Buffer {
  let bytes: Buffer = Buffer.from(input);
  for (let changes = 1 + random(MOST_AT_ONCE); changes > 0; changes -= 1)
    bytes = change(bytes, others, words, random);
  return bytes.subarray(0, maxBytes);
}

function change(
  bytes: Buffer,
  others: readonly Uint8Array[],
  words: readonly Uint8Array[],
  random: RandomNumbers,
): Buffer {
  const at = random(bytes.length + 1);
  const span = (): number => random(Math.min(bytes.length - at, random(4) === 0 ? 1024 : 16) + 1);
  switch (random(12)) {
    case 0:
      if (at < bytes.length) bytes[at]! ^= 1 << random(8);
      return bytes;
    case 1:
      if (at < bytes.length) bytes[at] = random(256);
      return bytes;
    case 2:
      if (at < bytes.length) bytes[at] = INTERESTING[random(INTERESTING.length)]!;
      return bytes;
    case 3:
      if (at < bytes.length) bytes[at] = bytes[at]! + random(17) - 8;
      return bytes;
    case 4: {
      const value = LENGTHS[random(LENGTHS.length)]!;
      if (at + 4 <= bytes.length)
        random(2) === 0 ? bytes.writeUInt32BE(value, at) : bytes.writeUInt32LE(value, at);
      return bytes;
    }
    case 5: {
      const value = LENGTHS[random(LENGTHS.length)]! & 0xffff;
      if (at + 2 <= bytes.length)
        random(2) === 0 ? bytes.writeUInt16BE(value, at) : bytes.writeUInt16LE(value, at);
      return bytes;
    }
    case 6:
      return Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + span())]);
    case 7: {
      const count = span();
      const to = random(bytes.length + 1);
      return Buffer.concat([bytes.subarray(0, to), bytes.subarray(at, at + count), bytes.subarray(to)]);
    }
    case 8:
      return Buffer.concat([
        bytes.subarray(0, at),
        Buffer.alloc(random(9) + 1, random(256)),
        bytes.subarray(at),
      ]);
    case 9: {
      const other = others.length === 0 ? bytes : others[random(others.length)]!;
      const from = random(other.length + 1);
      const count = random(Math.min(other.length - from, 512) + 1);
      return Buffer.concat([
        bytes.subarray(0, at),
        other.subarray(from, from + count),
        bytes.subarray(random(2) === 0 ? at : Math.min(bytes.length, at + count)),
      ]);
    }
    case 10: {
      if (words.length === 0) return bytes;
      const word = words[random(words.length)]!;
      return Buffer.concat([
        bytes.subarray(0, at),
        word,
        bytes.subarray(random(2) === 0 ? at : Math.min(bytes.length, at + word.length)),
      ]);
    }
    default:
      return bytes.subarray(0, at);
  }
}
