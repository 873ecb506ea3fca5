import type { Measurement } from '../../../core/domain/audio.js';
import { defined } from '../../../core/domain/defined.js';
import { type IssuingBreak, issuingBreaks, RIFF_SIZE_AT, readAt } from './explain-breaks.js';

/** A byte that a repair changes. */
export interface ByteChange {
  readonly offset: number;
  /** The byte in the file that was sent. Absent for a byte that the repair appends. */
  readonly from?: number;
  readonly to: number;
}

export interface Repair {
  /** The changed bytes in file order. */
  readonly changes: readonly ByteChange[];
  /** The measurement of the mended file. */
  readonly mended: Measurement;
}

/** The breaks that can have exactly one repair. Beside any other break nothing is mended. */
const REPAIRABLE: ReadonlySet<IssuingBreak> = new Set([
  'riff_size_past_eof',
  'bytes_after_riff_end',
  'chunk_past_end',
  'pad_missing',
  'fmt_inconsistent',
]);
/** The offset of the byte rate after the start of the fmt chunk, in bytes. */
const BYTE_RATE_AT = 16;

/**
 * Finds the only possible repair of a broken WAV file: a missing pad byte at its end, a RIFF size that is wrong
 * by one, a byte rate of 0. The mended file is measured, so a repair that is returned leaves no break.
 * @param read opens the file. It is called up to twice
 * @param measure measures a file
 * @returns undefined if the file needs no repair, or has none or several
 */
export async function findRepair(
  sent: Measurement,
  read: () => AsyncIterable<Uint8Array>,
  measure: (audio: AsyncIterable<Uint8Array>) => Promise<Measurement>,
): Promise<Repair | undefined> {
  const breaks = issuingBreaks(sent);
  if (breaks.length === 0 || !breaks.every(({ slug }) => REPAIRABLE.has(slug))) return undefined;
  const rate = byteRate(sent);
  const bytes = await readAt(read(), [RIFF_SIZE_AT, ...rate.map(({ offset }) => offset)]);
  const fields = [...fileEnd(sent, bytes.get(RIFF_SIZE_AT)!.readUInt32LE(0)), ...rate];
  if (fields.length === 0) return undefined;
  const changes = fields
    .flatMap(({ offset, value }) =>
      Array.from(value, (to, i) => defined({ offset: offset + i, from: bytes.get(offset)?.[i], to })),
    )
    .filter(({ from, to }) => from !== to)
    .sort((a, b) => a.offset - b.offset);
  const mended = await measure(applyChanges(read(), changes));
  return issuingBreaks(mended).length === 0 ? { changes, mended } : undefined;
}

interface Field {
  readonly offset: number;
  readonly value: Uint8Array;
}

function littleEndian(value: number): Uint8Array {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}

function byteRate({ findings, format }: Measurement): readonly Field[] {
  const found = findings.find(({ slug }) => slug === 'fmt_inconsistent');
  if (found === undefined || format?.byteRate !== 0) return [];
  const value = format.sampleRate * format.blockAlign;
  return value > 0xffff_ffff ? [] : [{ offset: found.offset + BYTE_RATE_AT, value: littleEndian(value) }];
}

/** Returns the fields that make the file end with its last chunk, if they are wrong by one or by a pad byte. */
function fileEnd({ bytes, chunks, chunkCount }: Measurement, riffSize: number): readonly Field[] {
  const last = chunks.at(-1);
  if (last === undefined || chunks.length !== chunkCount) return [];
  const end = last.offset + 8 + last.size;
  const pad = last.size % 2;
  const appended = pad === 1 && bytes === end ? [{ offset: bytes, value: new Uint8Array(1) }] : [];
  const size = bytes + appended.length - 8;
  if (end + pad !== size + 8 || Math.abs(riffSize - size) > 1 || size > 0xffff_ffff) return [];
  const resized = riffSize === size ? [] : [{ offset: RIFF_SIZE_AT, value: littleEndian(size) }];
  return [...resized, ...appended];
}

/** Yields the file with the changes. Appended bytes come last. */
async function* applyChanges(
  audio: AsyncIterable<Uint8Array>,
  changes: readonly ByteChange[],
): AsyncGenerator<Uint8Array> {
  let at = 0;
  for await (const chunk of audio) {
    const here = changes.filter(({ offset }) => offset >= at && offset < at + chunk.length);
    const bytes = here.length === 0 ? chunk : Uint8Array.from(chunk);
    for (const { offset, to } of here) bytes[offset - at] = to;
    at += chunk.length;
    yield bytes;
  }
  yield Uint8Array.from(
    changes.filter(({ offset }) => offset >= at),
    ({ to }) => to,
  );
}
