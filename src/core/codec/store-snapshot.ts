/**
 * The rows of a store as a stream. It begins with a line that names the form. Each row follows as the length of
 * its key (2 bytes), the length of its value (4 bytes), key and value. A key of length 0 ends the stream, and the
 * length of its value is the number of rows. Numbers are big-endian. A row is copied as it is stored, so its
 * authentication code comes with it.
 */

export type SnapshotRow = readonly [key: string, value: Uint8Array];

const HEAD = Buffer.from('takemark store snapshot 1\n');
const LENGTHS = 6;
/** The longest value in bytes that a reader accepts. A store accepts no larger write either. */
const MAX_VALUE_BYTES = 64 * 1024 * 1024;

/** A stream that is not a complete snapshot. */
export class SnapshotError extends Error {
  override readonly name = 'SnapshotError';
}

/** Yields the stream of the rows. */
export async function* encodeSnapshot(pages: AsyncIterable<readonly SnapshotRow[]>): AsyncGenerator<Buffer> {
  yield HEAD;
  let count = 0;
  for await (const rows of pages) {
    count += rows.length;
    yield Buffer.concat(rows.flatMap(([key, value]) => framed(Buffer.from(key), value)));
  }
  yield lengths(0, count);
}

/**
 * Yields the rows of a stream, some at a time.
 * @throws SnapshotError if the stream has another form, or ends early
 */
export async function* decodeSnapshot(
  stream: AsyncIterable<Uint8Array>,
): AsyncGenerator<readonly SnapshotRow[], void, undefined> {
  let rest: Buffer = Buffer.alloc(0);
  let hasHead = false;
  let hasEnded = false;
  let count = 0;
  for await (const chunk of stream) {
    if (hasEnded) throw new SnapshotError('bytes follow the end of the snapshot');
    rest = Buffer.concat([rest, chunk]);
    if (!hasHead) {
      if (rest.length < HEAD.length) continue;
      if (!rest.subarray(0, HEAD.length).equals(HEAD))
        throw new SnapshotError('this is not a snapshot that this version reads');
      hasHead = true;
      rest = rest.subarray(HEAD.length);
    }
    const rows: SnapshotRow[] = [];
    let at = 0;
    while (rest.length - at >= LENGTHS) {
      const keyBytes = rest.readUInt16BE(at);
      const valueBytes = rest.readUInt32BE(at + 2);
      if (keyBytes === 0) {
        if (valueBytes !== count + rows.length || rest.length - at > LENGTHS)
          throw new SnapshotError('the snapshot lacks rows');
        hasEnded = true;
        break;
      }
      if (valueBytes > MAX_VALUE_BYTES) throw new SnapshotError('a row of the snapshot is too large');
      const end = at + LENGTHS + keyBytes + valueBytes;
      if (rest.length < end) break;
      const keyEnd = at + LENGTHS + keyBytes;
      rows.push([rest.toString('utf8', at + LENGTHS, keyEnd), rest.subarray(keyEnd, end)]);
      at = end;
    }
    count += rows.length;
    rest = rest.subarray(at);
    if (rows.length > 0) yield rows;
  }
  if (!hasEnded) throw new SnapshotError('the snapshot ended early');
}

function framed(key: Buffer, value: Uint8Array): readonly Uint8Array[] {
  return [lengths(key.length, value.length), key, value];
}

function lengths(key: number, value: number): Buffer {
  const bytes = Buffer.alloc(LENGTHS);
  bytes.writeUInt16BE(key, 0);
  bytes.writeUInt32BE(value, 2);
  return bytes;
}
