/** Notes of a standard MIDI file. */
import { readFile, stat } from 'node:fs/promises';

const MAX_BYTES = 33_554_432;

/** Returns the number of notes that begin, or undefined if the bytes are not a MIDI file. */
export async function countNotes(path: string): Promise<number | undefined> {
  if ((await stat(path)).size > MAX_BYTES) return undefined;
  return countNotesIn(await readFile(path));
}

export function countNotesIn(bytes: Uint8Array): number | undefined {
  const file = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (file.length < 14 || file.toString('latin1', 0, 4) !== 'MThd') return undefined;
  let notes = 0;
  let at = 8 + file.readUInt32BE(4);
  while (at + 8 <= file.length) {
    const end = Math.min(file.length, at + 8 + file.readUInt32BE(at + 4));
    if (file.toString('latin1', at, at + 4) === 'MTrk') notes += countTrack(file.subarray(at + 8, end));
    at = end;
  }
  return notes;
}

/** Counts the notes of a track. An event is a delta time and a status, which may be absent if it repeats the last. */
function countTrack(track: Buffer): number {
  let notes = 0;
  let status = 0;
  let at = 0;
  const variable = (): number => {
    let value = 0;
    for (let bytes = 0; bytes < 4 && at < track.length; bytes += 1) {
      const byte = track[at] ?? 0;
      at += 1;
      value = value * 128 + (byte & 0x7f);
      if (byte < 0x80) break;
    }
    return value;
  };
  while (at < track.length) {
    variable();
    const byte = track[at] ?? 0;
    if (byte >= 0x80) {
      status = byte;
      at += 1;
    }
    if (status === 0xff) at += 1;
    if (status >= 0xf0) {
      const length = variable();
      at += length;
      continue;
    }
    const kind = status & 0xf0;
    if (kind === 0x90 && (track[at + 1] ?? 0) > 0) notes += 1;
    at += kind === 0xc0 || kind === 0xd0 ? 1 : 2;
  }
  return notes;
}
