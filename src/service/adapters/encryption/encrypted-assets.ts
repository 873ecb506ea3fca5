import { Readable } from 'node:stream';
import {
  DecryptionError,
  decryptBlock,
  ENCRYPTION_BYTES,
  encryptBlock,
  encryptInto,
} from '../../../core/codec/encrypt.js';
import { DomainError } from '../../../core/domain/errors.js';
import type { EvidencePart } from '../../../witness/domain/evidence.js';
import type { AssetStore, ByteRange, StagedAsset } from '../../ports/assets.js';
import type { ContentKeys } from '../../ports/content-keys.js';

/** The bytes of a file that are encrypted together. A read of one byte reads and decrypts as many. */
const BLOCK = 64 * 1024;
const ENCRYPTED_BLOCK = BLOCK + ENCRYPTION_BYTES;
/** The number of whole blocks that are written together. A write of one block costs more than its encryption. */
const GATHERED = 8;

/**
 * Returns a store that encrypts files in blocks of 64 KiB with the key of their proof. The last block is shorter than
 * the others, and empty if the file ends with a whole one, so that a file that was cut off does not pass for one that
 * ended. A proof without a key is of a version that encrypted nothing, and its files are plain. `delete` destroys the
 * key first: what is left of the files cannot be decrypted from then on, and a read returns it encrypted. So a caller
 * reads the proof's record again afterwards, or compares what was read with its digest.
 */
export function encryptedAssets(assets: AssetStore, keys: ContentKeys): AssetStore {
  return {
    async stage(proofId, part) {
      const key = await keys.obtain(proofId);
      return new EncryptedStage(await assets.stage(proofId, part), new Blocks(key, part));
    },

    async read(proofId, range, part) {
      const key = await keys.read(proofId);
      if (key === undefined) return assets.read(proofId, range, part);
      const first = Math.floor((range?.start ?? 0) / BLOCK);
      const file = await assets.read(proofId, range && encryptedRange(range), part);
      return file && decryptedStream(file, new Blocks(key, part), first, range);
    },

    async size(proofId, part) {
      const [key, size] = await Promise.all([keys.read(proofId), assets.size(proofId, part)]);
      return key === undefined || size === undefined ? size : decryptedSize(size);
    },

    list: (after, limit) => assets.list(after, limit),

    async delete(proofId) {
      await keys.destroy(proofId);
      return assets.delete(proofId);
    },

    deleteUnfinished: (proofId) => assets.deleteUnfinished(proofId),
  };
}

/**
 * Deletes the files of an id under which nothing was issued, also unfinished ones, and its key. The id can then be used
 * again.
 */
export function unissuedAssets(assets: AssetStore, keys: ContentKeys): Pick<AssetStore, 'delete'> {
  return {
    async delete(proofId) {
      await keys.release(proofId);
      await assets.deleteUnfinished(proofId);
      return assets.delete(proofId);
    },
  };
}

/** Returns the whole blocks that hold a range. */
function encryptedRange({ start, end }: ByteRange): ByteRange {
  return {
    start: Math.floor(start / BLOCK) * ENCRYPTED_BLOCK,
    end: (Math.floor(end / BLOCK) + 1) * ENCRYPTED_BLOCK - 1,
  };
}

function decryptedSize(size: number): number {
  const blocks = Math.floor(size / ENCRYPTED_BLOCK);
  return blocks * BLOCK + Math.max(0, size - blocks * ENCRYPTED_BLOCK - ENCRYPTION_BYTES);
}

/** Blocks of one file: each is encrypted for its place, the last one as the last. */
class Blocks {
  readonly #key: Uint8Array;
  readonly #file: string;

  constructor(key: Uint8Array, part: EvidencePart | undefined) {
    this.#key = key;
    this.#file = part ?? 'asset';
  }

  encrypt(index: number, content: Uint8Array): Buffer {
    return encryptBlock(this.#key, this.#label(index, content.length), content);
  }

  /** Encrypts a whole block into a buffer. */
  encryptInto(block: Uint8Array, index: number, content: Uint8Array): void {
    encryptInto(block, this.#key, this.#label(index, content.length), content);
  }

  /** @throws DecryptionError */
  open(index: number, block: Uint8Array): Buffer {
    return decryptBlock(this.#key, this.#label(index, block.length - ENCRYPTION_BYTES), block);
  }

  #label(index: number, length: number): string {
    return `${this.#file}/${index}${length < BLOCK ? '/last' : ''}`;
  }
}

/**
 * Yields the encrypted blocks of a stream that begins with one. The last block may be shorter. A block is valid
 * until the next one is asked for: all share one buffer, because a caller that does not read holds the memory.
 */
async function* blocksOf(file: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
  const block = Buffer.allocUnsafe(ENCRYPTED_BLOCK);
  let length = 0;
  for await (const chunk of file) {
    for (let at = 0; at < chunk.length; ) {
      const taken = Math.min(chunk.length - at, ENCRYPTED_BLOCK - length);
      block.set(chunk.subarray(at, at + taken), length);
      length += taken;
      at += taken;
      if (length < ENCRYPTED_BLOCK) continue;
      yield block;
      length = 0;
    }
  }
  if (length > 0) yield block.subarray(0, length);
}

/** @throws DecryptionError in the stream; without a range also where the last block is missing */
function decryptedStream(
  file: Readable,
  blocks: Blocks,
  first: number,
  range: ByteRange | undefined,
): Readable {
  async function* opened(): AsyncGenerator<Buffer> {
    let index = first;
    let hasEnded = false;
    for await (const block of blocksOf(file)) {
      hasEnded = block.length < ENCRYPTED_BLOCK;
      const content = blocks.open(index, block);
      const from = range === undefined ? 0 : Math.max(0, range.start - index * BLOCK);
      const to =
        range === undefined ? content.length : Math.min(content.length, range.end + 1 - index * BLOCK);
      if (to > from) yield content.subarray(from, to);
      index += 1;
    }
    if (range === undefined && !hasEnded) throw new DecryptionError('the end of the file is missing');
  }
  const stream = Readable.from(opened(), { objectMode: false });
  // An error of the file reaches its reader, however late the read is.
  file.on('error', () => undefined);
  // A stream that was never read from has not begun, and would leave the file open.
  stream.once('close', () => file.destroy());
  return stream;
}

/**
 * A file that is being built. Its whole blocks are encrypted, and are written some at a time. The rest of the content is
 * in memory.
 */
class EncryptedStage implements StagedAsset {
  readonly #stage: StagedAsset;
  readonly #blocks: Blocks;
  readonly #tail = Buffer.allocUnsafe(BLOCK);
  #tailLength = 0;
  /** The number of whole blocks, written or not. */
  #count = 0;
  /** The encrypted whole blocks that are not written yet, and their number. The buffer is made for the first one. */
  #unwritten: Buffer | undefined;
  #gathered = 0;
  #isDiscarded = false;

  constructor(stage: StagedAsset, blocks: Blocks) {
    this.#stage = stage;
    this.#blocks = blocks;
  }

  async append(chunk: Uint8Array): Promise<void> {
    if (this.#isDiscarded) throw lost('was discarded');
    for (let at = 0; at < chunk.length; ) {
      const taken = Math.min(chunk.length - at, BLOCK - this.#tailLength);
      this.#tail.set(chunk.subarray(at, at + taken), this.#tailLength);
      this.#tailLength += taken;
      at += taken;
      if (this.#tailLength === BLOCK) await this.#encryptTail();
    }
  }

  async patch(offset: number, bytes: Uint8Array): Promise<void> {
    const length = this.#count * BLOCK + this.#tailLength;
    if (!Number.isSafeInteger(offset) || offset < 0 || offset + bytes.length > length)
      throw new RangeError('a patch is outside the appended bytes');
    for (let done = 0; done < bytes.length; ) {
      const index = Math.floor((offset + done) / BLOCK);
      const at = (offset + done) % BLOCK;
      const piece = bytes.subarray(done, done + BLOCK - at);
      if (index === this.#count) this.#tail.set(piece, at);
      else {
        await this.#write();
        const content = await this.#read(index);
        content.set(piece, at);
        await this.#stage.patch(index * ENCRYPTED_BLOCK, this.#blocks.encrypt(index, content));
      }
      done += piece.length;
    }
  }

  read(): Readable {
    return Readable.from(this.#content(), { objectMode: false });
  }

  async publish(): Promise<void> {
    await this.#write();
    await this.#stage.append(this.#blocks.encrypt(this.#count, this.#tail.subarray(0, this.#tailLength)));
    await this.#stage.publish();
  }

  discard(): Promise<void> {
    this.#isDiscarded = true;
    return this.#stage.discard();
  }

  async #encryptTail(): Promise<void> {
    this.#unwritten ??= Buffer.allocUnsafe(GATHERED * ENCRYPTED_BLOCK);
    const at = this.#gathered * ENCRYPTED_BLOCK;
    this.#blocks.encryptInto(this.#unwritten.subarray(at, at + ENCRYPTED_BLOCK), this.#count, this.#tail);
    this.#gathered += 1;
    this.#count += 1;
    this.#tailLength = 0;
    if (this.#gathered === GATHERED) await this.#write();
  }

  /** Writes the gathered blocks. */
  async #write(): Promise<void> {
    if (this.#gathered === 0) return;
    await this.#stage.append(this.#unwritten!.subarray(0, this.#gathered * ENCRYPTED_BLOCK));
    this.#gathered = 0;
  }

  async #read(index: number): Promise<Buffer> {
    const start = index * ENCRYPTED_BLOCK;
    for await (const block of blocksOf(this.#stage.read({ start, end: start + ENCRYPTED_BLOCK - 1 })))
      return this.#blocks.open(index, block);
    throw lost('lacks a part');
  }

  async *#content(): AsyncGenerator<Buffer> {
    await this.#write();
    let index = 0;
    if (this.#count > 0)
      for await (const block of blocksOf(this.#stage.read())) {
        yield this.#blocks.open(index, block);
        index += 1;
      }
    if (this.#tailLength > 0) yield Buffer.from(this.#tail.subarray(0, this.#tailLength));
  }
}

function lost(how: string): DomainError {
  return new DomainError('unavailable', `The unfinished file ${how}.`, {
    reason: 'store_unavailable',
  });
}
