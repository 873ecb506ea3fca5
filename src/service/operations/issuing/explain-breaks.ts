import type { AudioFormat, Measurement } from '../../../core/domain/audio.js';
import {
  type ExplainedFinding,
  type FoundAt,
  isHarmless,
  MAX_CHUNKS,
  type StructureBreak,
} from '../../../core/domain/findings.js';

/** A finding that refuses to embed a credential. */
export type IssuingBreak = StructureBreak | 'data_in_list';

/** Returns the findings that refuse to embed a credential. */
export function issuingBreaks(file: Measurement): readonly FoundAt<IssuingBreak>[] {
  return file.findings.filter(
    (found): found is FoundAt<IssuingBreak> => found.slug === 'data_in_list' || !isHarmless(found),
  );
}

/** The offset of the RIFF size field, in bytes. */
export const RIFF_SIZE_AT = 4;

/** The bytes of a file that an explanation names. */
interface Place {
  readonly file: Measurement;
  readonly offset: number;
  /** The bytes of the file from the offset on, at most eight. */
  readonly bytes: Buffer;
  /** The RIFF size field. */
  readonly riffSize: number;
}

type Explanation = (place: Place) => readonly [found: string, expected: string];

const riffSize: Explanation = ({ file, riffSize: found }) => [
  `RIFF size ${found}`,
  `RIFF size ${file.bytes - 8}`,
];
const second =
  (id: string): Explanation =>
  () => [`a second ${id} chunk`, `one ${id} chunk`];
const missing =
  (id: string): Explanation =>
  () => ['the end of the file', `a ${id} chunk before it`];
const chunkFound = ({ bytes }: Place): string => `chunk ${idOf(bytes)} of ${sizeOf(bytes)} bytes`;
const unexpected =
  (expected: string): Explanation =>
  (place) => [chunkFound(place), expected];

const EXPLANATIONS: Readonly<Record<IssuingBreak, Explanation>> = {
  header_truncated: ({ file }) => [`a file of ${file.bytes} bytes`, 'a header of 12 bytes'],
  form_not_wave: ({ bytes }) => [`form type ${idOf(bytes)}`, 'form type "WAVE"'],
  riff_size_streaming: riffSize,
  riff_size_past_eof: riffSize,
  bytes_after_riff_end: ({ file, offset, riffSize: stated }) => [
    `${file.bytes - offset} more ${file.bytes - offset === 1 ? 'byte' : 'bytes'} after the RIFF size ${stated}`,
    'the end of the file',
  ],
  chunk_past_end: (place) => [
    chunkFound(place),
    `at most ${Math.max(0, Math.min(place.file.bytes, place.riffSize + 8) - place.offset - 8)} bytes`,
  ],
  chunk_header_truncated: ({ file, offset }) => [
    `${file.bytes - offset} bytes`,
    'a chunk header of 8 bytes, or the end',
  ],
  pad_missing: ({ file, offset }) => [
    offset === file.bytes ? 'the end of the file' : 'the end of the RIFF chunk',
    'a pad byte 0x00',
  ],
  pad_nonzero: ({ bytes }) => [`pad byte ${hex(bytes.subarray(0, 1))}`, 'pad byte 0x00'],
  chunk_id_invalid: ({ bytes }) => [
    `chunk id ${hex(bytes.subarray(0, 4))}`,
    'four printable characters, with spaces only at the end',
  ],
  too_many_chunks: () => [`chunk ${MAX_CHUNKS + 1}`, `at most ${MAX_CHUNKS} chunks`],
  duplicate_fmt: second('fmt'),
  duplicate_data: second('data'),
  duplicate_ds64: second('ds64'),
  fmt_missing: missing('fmt'),
  fmt_malformed: unexpected(
    'an even size of 16 to 65536 bytes, and with format tag 0xFFFE 40 or more bytes with cbSize 22 or more',
  ),
  fmt_inconsistent: ({ file: { format } }) =>
    format === undefined
      ? ['fields that contradict each other', 'fields that agree']
      : [describeFormat(format), expectedFormat(format)],
  data_missing: missing('data'),
  data_before_fmt: () => ['a data chunk', 'the fmt chunk before it'],
  data_size_streaming: ({ file, offset, bytes }) => [
    `data size ${sizeOf(bytes)}`,
    `the size of the audio, at most ${file.bytes - offset - 8}`,
  ],
  data_empty: () => ['a data chunk of 0 bytes', 'audio'],
  data_not_aligned: ({ file: { format }, bytes }) => [
    `data size ${sizeOf(bytes)}`,
    `a multiple of the block size ${format?.blockAlign}`,
  ],
  ds64_missing: missing('ds64'),
  ds64_not_first: unexpected('no ds64 chunk in a RIFF file'),
  ds64_malformed: unexpected('no ds64 chunk in a RIFF file'),
  ds64_mismatch: unexpected('the size that the ds64 chunk states'),
  credential_duplicate: second('C2PA'),
  credential_id_variant: ({ bytes }) => [`id ${idOf(bytes)}`, 'no id like "C2PA"'],
  credential_in_list: () => ['id "C2PA" inside a LIST chunk', 'no such id'],
  credential_not_last: unexpected('the end of the file after the C2PA chunk'),
  credential_too_large: unexpected('at most 1048576 bytes'),
  data_in_list: () => ['id "data" inside a LIST chunk', 'no such id, which some readers take for the audio'],
  tag_before_riff: () => ['an ID3v2 tag', 'the RIFF header'],
};

/**
 * Explains the findings of a WAV file: for each the offset, what is there, and what should be there.
 * @param audio the file, which is read up to the last offset
 */
export async function explainBreaks(
  file: Measurement,
  breaks: readonly FoundAt<IssuingBreak>[],
  audio: AsyncIterable<Uint8Array>,
): Promise<readonly ExplainedFinding<IssuingBreak>[]> {
  const bytes = await readAt(audio, [RIFF_SIZE_AT, ...breaks.map(({ offset }) => offset)]);
  const riffSizeField = sizeOf(bytes.get(RIFF_SIZE_AT)!, 0);
  return breaks.map(({ slug, offset }) => {
    const place = { file, offset, bytes: bytes.get(offset)!, riffSize: riffSizeField };
    const [found, expected] = EXPLANATIONS[slug](place);
    return { slug, offset, found, expected };
  });
}

const PEEKED_BYTES = 8;

/** Returns up to eight bytes at each offset. */
export async function readAt(
  audio: AsyncIterable<Uint8Array>,
  offsets: readonly number[],
): Promise<ReadonlyMap<number, Buffer>> {
  const parts = new Map<number, Buffer>(offsets.map((offset) => [offset, Buffer.alloc(0)]));
  const end = Math.max(...offsets) + PEEKED_BYTES;
  let at = 0;
  for await (const chunk of audio) {
    for (const [offset, part] of parts) {
      const from = offset + part.length - at;
      const to = offset + PEEKED_BYTES - at;
      if (from >= 0 && from < chunk.length && from < to)
        parts.set(offset, Buffer.concat([part, chunk.subarray(from, to)]));
    }
    at += chunk.length;
    if (at >= end) break;
  }
  return parts;
}

function idOf(header: Buffer): string {
  const id = header.subarray(0, 4);
  return /^[\x20-\x7e]{4}$/.test(id.toString('latin1')) ? `"${id.toString('latin1')}"` : hex(id);
}

function sizeOf(header: Buffer, at = 4): number {
  return header.length < at + 4 ? 0 : header.readUInt32LE(at);
}

function hex(bytes: Buffer): string {
  return `0x${bytes.toString('hex')}`;
}

function describeFormat({ channels, sampleRate, byteRate, blockAlign, bitsPerSample }: AudioFormat): string {
  return `${channels} channels, ${sampleRate} Hz, ${byteRate} bytes per second, blocks of ${blockAlign} bytes, ${bitsPerSample} bits`;
}

function expectedFormat({ channels, sampleRate, byteRate, blockAlign, bitsPerSample }: AudioFormat): string {
  const block = channels * Math.ceil(bitsPerSample / 8);
  if (channels === 0 || sampleRate === 0 || bitsPerSample === 0) return 'values above 0';
  const wide = bitsPerSample <= 32 && blockAlign === channels * 4;
  if (blockAlign !== block && !wide) return `blocks of ${block} bytes`;
  return byteRate === sampleRate * blockAlign
    ? 'values that a WAV file can have'
    : `${sampleRate * blockAlign} bytes per second`;
}
