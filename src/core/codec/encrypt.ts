import { createCipheriv, createDecipheriv, randomFillSync } from 'node:crypto';
import { encode } from '@msgpack/msgpack';
import { RowDecoder } from './row-decoder.js';

const CIPHER = 'aes-256-gcm';
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const VALUES = new RowDecoder();

export const CONTENT_KEY_BYTES = 32;
/** The number of bytes that encryption adds to a block. */
export const ENCRYPTION_BYTES = NONCE_BYTES + TAG_BYTES;

/** The error for a block that is damaged, or was not encrypted with this key for this label. */
export class DecryptionError extends Error {
  override readonly name = 'DecryptionError';
}

/**
 * Encrypts a block: AES-256-GCM (NIST SP 800-38D) with a random nonce, which comes first; the tag comes last. No two
 * blocks are alike, also of the same content.
 * @param key 32 bytes, for at most 2^32 blocks
 * @param label what the block is; it opens under no other one
 */
export function encryptBlock(key: Uint8Array, label: string, content: Uint8Array): Buffer {
  const block = Buffer.allocUnsafe(content.length + ENCRYPTION_BYTES);
  encryptInto(block, key, label, content);
  return block;
}

/** Encrypts like `encryptBlock`, into a buffer whose length is that of the block. */
export function encryptInto(block: Uint8Array, key: Uint8Array, label: string, content: Uint8Array): void {
  const nonce = randomFillSync(block.subarray(0, NONCE_BYTES));
  const cipher = createCipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES }).setAAD(Buffer.from(label));
  // GCM encrypts a stream, so `final` makes the tag and returns no further bytes.
  block.set(cipher.update(content), NONCE_BYTES);
  cipher.final();
  block.set(cipher.getAuthTag(), block.length - TAG_BYTES);
}

/** @throws DecryptionError */
export function decryptBlock(key: Uint8Array, label: string, block: Uint8Array): Buffer {
  if (block.length < ENCRYPTION_BYTES) throw new DecryptionError('the block is too short');
  const contentEnd = block.length - TAG_BYTES;
  const decipher = createDecipheriv(CIPHER, key, block.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES })
    .setAAD(Buffer.from(label))
    .setAuthTag(block.subarray(contentEnd));
  try {
    // GCM decrypts a stream, so `final` checks the tag and returns no further bytes.
    const content = decipher.update(block.subarray(NONCE_BYTES, contentEnd));
    decipher.final();
    return content;
  } catch (cause) {
    throw new DecryptionError(
      'the block is damaged, or was encrypted with another key or for another label',
      { cause },
    );
  }
}

/** Encrypts a value as MessagePack. Members that are undefined are left out; a Uint8Array stays one. */
export function encryptValue(key: Uint8Array, label: string, value: unknown): Buffer {
  return encryptBlock(key, label, encode(value, { ignoreUndefined: true }));
}

/** @throws DecryptionError */
export function decryptValue(key: Uint8Array, label: string, block: Uint8Array): unknown {
  // A plain view: bytes in the value come back as views of it.
  const opened = decryptBlock(key, label, block);
  return VALUES.decode(new Uint8Array(opened.buffer, opened.byteOffset, opened.length));
}
