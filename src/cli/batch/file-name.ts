import { dirname, join, sep } from 'node:path';

/** A path for calls of the file system. It is bytes if a name in it is not UTF-8. */
export type Place = string | Buffer;

/** The name of a directory entry. */
export interface FileName {
  /** The name for people and for comparison. A byte that is not UTF-8 is written as `\x` and two hex digits. */
  readonly text: string;
  /** The name as it is stored, if it is not UTF-8. */
  readonly bytes?: Buffer;
}

const UTF_8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

export function fileName(stored: Buffer): FileName {
  try {
    return { text: UTF_8.decode(stored) };
  } catch {
    return { text: textOf(stored), bytes: stored };
  }
}

/** Returns the path of an entry of a directory. */
export function placeIn(directory: Place, { text, bytes }: FileName): Place {
  if (typeof directory === 'string' && bytes === undefined) return join(directory, text);
  const parent = Buffer.from(directory);
  const isClosed = parent.at(-1) === sep.charCodeAt(0);
  return Buffer.concat([parent, Buffer.from(isClosed ? '' : sep), bytes ?? Buffer.from(text)]);
}

/** Returns the directory of a path that ends in a name. */
export function directoryOf(place: Place, { bytes, text }: FileName): Place {
  if (typeof place === 'string') return dirname(place);
  const end = place.length - (bytes ?? Buffer.from(text)).length;
  // Without its last separator, unless that is all of it.
  return place.subarray(0, Math.max(1, end - 1));
}

/** Returns a path for people. */
export function shown(place: Place): string {
  return typeof place === 'string' ? place : fileName(place).text;
}

/**
 * Returns true if an entry has this name: in another Unicode form, or with a replacement character for each fault of
 * its encoding, as the command line passes on a name that is not UTF-8.
 */
export function isCalled({ text, bytes }: FileName, name: string): boolean {
  if (bytes !== undefined) return bytes.toString('utf8') === name;
  return text.normalize('NFC') === name.normalize('NFC');
}

/** Decodes the parts of a name that are UTF-8, and writes every other byte as `\x` and two hex digits. */
function textOf(stored: Buffer): string {
  let text = '';
  for (let at = 0; at < stored.length; ) {
    const length = lengthAt(stored, at);
    text +=
      length === 0
        ? `\\x${stored[at]!.toString(16).padStart(2, '0')}`
        : stored.toString('utf8', at, at + length);
    at += Math.max(1, length);
  }
  return text;
}

/** Returns the length in bytes of the character at a position, or 0 if the bytes there are not UTF-8. */
function lengthAt(bytes: Buffer, at: number): number {
  for (let length = 1; length <= 4 && at + length <= bytes.length; length += 1)
    try {
      UTF_8.decode(bytes.subarray(at, at + length));
      return length;
    } catch {
      // A character of more bytes may start here.
    }
  return 0;
}
