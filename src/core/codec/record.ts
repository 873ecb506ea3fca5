import { Encoder } from '@msgpack/msgpack';
import { type Authenticator, MAC_BYTES } from './authenticator.js';
import { crc32c, crc32cOfAscii } from './crc32c.js';
import { RowDecoder } from './row-decoder.js';

/**
 * The version, which is the first byte of a record. A record has, with lengths in bytes: version (1), length of the
 * key id (1), key id (ASCII), message authentication code (32), MessagePack.
 */
const VERSION = 2;
const KEY_ID_OFFSET = 2;
/**
 * The version of records in stores that had no codes. Such a record has, with lengths in bytes: version (1), CRC-32C
 * over key, version and document (4, little endian), MessagePack.
 */
const FORMER_VERSION = 1;
const FORMER_HEADER_BYTES = 5;

/**
 * The error for a stored row that is not what this installation wrote under its key, or that has another version
 * than expected.
 */
export class RecordError extends Error {
  override readonly name = 'RecordError';
}

/**
 * A codec of rows as a store holds them, authenticated together with their key. `decode` refuses a
 * row with a flipped bit, a row that somebody else wrote, and a row in the place of another. Members that are
 * undefined are left out. A Uint8Array stays one.
 */
export class RecordCodec {
  readonly #encoder = new Encoder({ ignoreUndefined: true });
  readonly #decoder = new RowDecoder();
  readonly #authenticator: Authenticator;

  constructor(authenticator: Authenticator) {
    this.#authenticator = authenticator;
  }

  /** @param key ASCII */
  encode(key: string, value: unknown): Uint8Array {
    return this.seal(key, this.#encoder.encodeSharedRef(value));
  }

  /** Encodes a value as MessagePack, without the code of a record, for bytes that do not leave the process. */
  document(value: unknown): Uint8Array {
    // A copy in the memory that small buffers share: memory of its own costs several times as much.
    return Buffer.from(this.#encoder.encodeSharedRef(value));
  }

  /** Decodes the value that `document` encoded. */
  read(document: Uint8Array): unknown {
    return this.#read(document, 0);
  }

  /** Makes the record of a value that `document` encoded. @param key ASCII */
  seal(key: string, document: Uint8Array): Uint8Array {
    const { keyId, mac } = this.#authenticator.make(label(key), document);
    const macAt = KEY_ID_OFFSET + keyId.length;
    const row = Buffer.allocUnsafe(macAt + MAC_BYTES + document.length);
    row[0] = VERSION;
    row[1] = keyId.length;
    row.write(keyId, KEY_ID_OFFSET, 'latin1');
    row.set(mac, macAt);
    row.set(document, macAt + MAC_BYTES);
    return row;
  }

  /** @throws RecordError */
  decode(key: string, row: Uint8Array): unknown {
    if (row[0] !== VERSION) throw new RecordError(`row has version ${row[0] ?? 'none'}`);
    const macAt = KEY_ID_OFFSET + (row[1] ?? 0);
    const documentAt = macAt + MAC_BYTES;
    if (row.length <= documentAt) throw new RecordError('row is too short');
    const keyId = Buffer.from(row.buffer, row.byteOffset + KEY_ID_OFFSET, macAt - KEY_ID_OFFSET).toString(
      'latin1',
    );
    if (
      !this.#authenticator.matches(
        keyId,
        row.subarray(macAt, documentAt),
        label(key),
        row.subarray(documentAt),
      )
    )
      throw new RecordError('row is not authentic');
    return this.#read(row, documentAt);
  }

  /** Returns whether a row is of the form that had no code. */
  isFormer(row: Uint8Array): boolean {
    return row[0] === FORMER_VERSION;
  }

  /** @throws RecordError */
  decodeFormer(key: string, row: Uint8Array): unknown {
    return this.#read(row, formerDocumentOffset(key, row));
  }

  /** Makes a record with a code from one of the former form. @throws RecordError where its checksum does not hold */
  adopt(key: string, row: Uint8Array): Uint8Array {
    return this.seal(key, row.subarray(formerDocumentOffset(key, row)));
  }

  #read(row: Uint8Array, documentAt: number): unknown {
    try {
      // A plain view, because the store may return any kind of Uint8Array: bytes in the document come back as
      // views of it.
      return this.#decoder.decode(
        new Uint8Array(row.buffer, row.byteOffset + documentAt, row.length - documentAt),
      );
    } catch (cause) {
      throw new RecordError('row is not MessagePack', { cause });
    }
  }
}

function label(key: string): string {
  return `record/${key}`;
}

function formerDocumentOffset(key: string, row: Uint8Array): number {
  if (row.length <= FORMER_HEADER_BYTES || row[0] !== FORMER_VERSION)
    throw new RecordError('row is not of the former form');
  const stored = new DataView(row.buffer, row.byteOffset).getUint32(1, true);
  if (stored !== crc32c(row.subarray(FORMER_HEADER_BYTES), crc32c(row.subarray(0, 1), crc32cOfAscii(key))))
    throw new RecordError('row does not match its checksum');
  return FORMER_HEADER_BYTES;
}
