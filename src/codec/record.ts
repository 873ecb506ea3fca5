import { Decoder, Encoder } from '@msgpack/msgpack';
import { crc32c, crc32cOfAscii } from './crc32c.js';

/** Bytes before the MessagePack document: schema version (1), CRC-32C over key, version and document (4, little endian). */
const HEADER_BYTES = 5;

/** A stored row that is not what was written, or was written by a later version. */
export class RecordError extends Error {
  override readonly name = 'RecordError';
}

/**
 * Rows as they lie in a store: schema version, checksum, MessagePack. The checksum covers the key too, so that neither a
 * flipped bit nor a row under the wrong key is ever taken for data. Members that are undefined are left out; Uint8Array stays
 * one. Rows are our own writing, so the strictness that signed documents need has no place here.
 */
export class RecordCodec {
  readonly #encoder = new Encoder({ ignoreUndefined: true });
  readonly #decoder = new Decoder();

  /** @param key ASCII */
  encode(key: string, version: number, value: unknown): Uint8Array {
    const document = this.#encoder.encodeSharedRef(value);
    const row = new Uint8Array(HEADER_BYTES + document.length);
    row[0] = version;
    row.set(document, HEADER_BYTES);
    new DataView(row.buffer).setUint32(1, checksum(key, row), true);
    return row;
  }

  /** @throws RecordError */
  decode(key: string, row: Uint8Array): { readonly version: number; readonly value: unknown } {
    if (row.length <= HEADER_BYTES) throw new RecordError('row is too short');
    const stored = new DataView(row.buffer, row.byteOffset).getUint32(1, true);
    if (stored !== checksum(key, row)) throw new RecordError('row does not match its checksum');
    try {
      // A plain view, whatever kind of Uint8Array the store hands out: bytes in the document come back as views of it.
      return { version: row[0]!, value: this.#decoder.decode(new Uint8Array(row.buffer, row.byteOffset + HEADER_BYTES, row.length - HEADER_BYTES)) };
    } catch (cause) {
      throw new RecordError('row is not MessagePack', { cause });
    }
  }
}

function checksum(key: string, row: Uint8Array): number {
  return crc32c(row.subarray(HEADER_BYTES), crc32c(row.subarray(0, 1), crc32cOfAscii(key)));
}
