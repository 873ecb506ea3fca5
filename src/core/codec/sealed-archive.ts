import { randomBytes, scryptSync } from 'node:crypto';
import { encode } from '@msgpack/msgpack';
import { DecryptionError, decryptValue, ENCRYPTION_BYTES, encryptValue } from './encrypt.js';

/**
 * An archive of values, encrypted under a passphrase. It begins with a line that names the form, and a salt. Each block
 * follows as its length (4 bytes, big-endian) and an encrypted list of values. The number of a block is part of its
 * label, so no block can be moved, repeated or left out. The last block holds the number of all values, so an archive
 * that ends early is found.
 */
const HEAD = Buffer.from('takemark export 1\n');
const SALT_BYTES = 16;
const KEY_BYTES = 32;
/** The cost of a guess of the passphrase: 64 MiB of memory and about a fifth of a second. */
const SCRYPT = { N: 2 ** 16, r: 8, p: 1, maxmem: 128 * 1024 * 1024 };
const LENGTH_BYTES = 4;
/** A block ends after the value with which it has so many bytes. */
const BLOCK_BYTES = 256 * 1024;
/** The longest block in bytes that a reader accepts. */
const MAX_BLOCK_BYTES = 64 * 1024 * 1024;

/** An archive that is damaged, incomplete, or of another passphrase. */
export class ArchiveError extends Error {
  override readonly name = 'ArchiveError';
}

export interface ArchiveBlock<Value> {
  /** The number of the block, from 0. */
  readonly number: number;
  readonly values: readonly Value[];
}

/**
 * Yields the bytes of an archive.
 * @param isApart returns true if a value must not be in the block of the value before it
 */
export async function* sealArchive<Value>(
  passphrase: string,
  values: AsyncIterable<Value>,
  isApart: (value: Value, before: Value) => boolean,
): AsyncGenerator<Buffer> {
  const salt = randomBytes(SALT_BYTES);
  const key = keyOf(passphrase, salt);
  let number = 0;
  let count = 0;
  let block: Value[] = [];
  let bytes = 0;
  const sealed = (content: unknown): Buffer => {
    const box = encryptValue(key, labelOf(number), content);
    number += 1;
    const length = Buffer.alloc(LENGTH_BYTES);
    length.writeUInt32BE(box.length);
    return Buffer.concat([length, box]);
  };
  yield Buffer.concat([HEAD, salt]);
  for await (const value of values) {
    const before = block.at(-1);
    if (before !== undefined && (bytes >= BLOCK_BYTES || isApart(value, before))) {
      yield sealed(block);
      [block, bytes] = [[], 0];
    }
    block.push(value);
    bytes += encode(value, { ignoreUndefined: true }).length;
    count += 1;
  }
  if (block.length > 0) yield sealed(block);
  yield sealed({ count });
}

/**
 * Yields the blocks of an archive. Blocks between the first block and `from` are passed over without a look at them.
 * @param from the number of a block of an earlier reading, from which this one goes on
 * @throws ArchiveError
 */
export async function* openArchive<Value>(
  passphrase: string,
  bytes: AsyncIterable<Uint8Array>,
  from = 0,
): AsyncGenerator<ArchiveBlock<Value>, void, undefined> {
  const reader = new ByteReader(bytes);
  const head = await reader.take(HEAD.length);
  if (head === undefined || !HEAD.equals(head))
    throw new ArchiveError('this is not an export that this version reads');
  const salt = await reader.take(SALT_BYTES);
  if (salt === undefined) throw new ArchiveError('the export ended early');
  const key = keyOf(passphrase, salt);
  let count = 0;
  for (let number = 0; ; number += 1) {
    const length = (await reader.take(LENGTH_BYTES))?.readUInt32BE();
    if (length !== undefined && (length < ENCRYPTION_BYTES || length > MAX_BLOCK_BYTES))
      throw new ArchiveError('the export is damaged');
    const box = length === undefined ? undefined : await reader.take(length);
    if (box === undefined) throw new ArchiveError('the export ended early: it is not complete');
    if (number > 0 && number < from) continue;
    const content = opened(key, number, box) as readonly Value[] | { readonly count: number };
    if (!Array.isArray(content)) {
      if (from <= 1 && (content as { readonly count: number }).count !== count)
        throw new ArchiveError('the export lacks rows');
      if ((await reader.take(1)) !== undefined) throw new ArchiveError('bytes follow the end of the export');
      return;
    }
    count += content.length;
    yield { number, values: content as readonly Value[] };
  }
}

/** Returns bytes that are equal for two values exactly if the values are equal, in any order of their members. */
export function canonicalBytes(value: unknown): Uint8Array {
  return encode(value, { ignoreUndefined: true, sortKeys: true });
}

function opened(key: Uint8Array, number: number, box: Uint8Array): unknown {
  try {
    return decryptValue(key, labelOf(number), box);
  } catch (cause) {
    if (!(cause instanceof DecryptionError)) throw cause;
    throw new ArchiveError(
      number === 0
        ? 'the passphrase is not that of the export, or the export is damaged'
        : 'the export is damaged',
      { cause },
    );
  }
}

function keyOf(passphrase: string, salt: Uint8Array): Buffer {
  return scryptSync(passphrase.normalize('NFC'), salt, KEY_BYTES, SCRYPT);
}

function labelOf(number: number): string {
  return `takemark export/${number}`;
}

/** Reads a stream in pieces of given lengths. */
class ByteReader {
  readonly #chunks: AsyncIterator<Uint8Array>;
  #rest: Buffer = Buffer.alloc(0);

  constructor(bytes: AsyncIterable<Uint8Array>) {
    this.#chunks = bytes[Symbol.asyncIterator]();
  }

  /** Returns exactly so many bytes, or undefined if the stream ends before. */
  async take(length: number): Promise<Buffer | undefined> {
    const parts = [this.#rest];
    let size = this.#rest.length;
    while (size < length) {
      const next = await this.#chunks.next();
      if (next.done) return undefined;
      parts.push(Buffer.from(next.value));
      size += next.value.length;
    }
    const all = parts.length === 1 ? this.#rest : Buffer.concat(parts);
    this.#rest = all.subarray(length);
    return all.subarray(0, length);
  }
}
