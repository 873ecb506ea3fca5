import type { Authenticator } from '../../../../core/codec/authenticator.js';
import { RecordCodec, RecordError } from '../../../../core/codec/record.js';
import { recordDamaged } from '../../../../core/domain/errors.js';

/**
 * The codec of authenticated blobs, whose values are always read whole. The code of a blob covers its `key`, so
 * that no blob is taken for another.
 */
export class Blobs {
  readonly #codec: RecordCodec;

  constructor(authenticator: Authenticator) {
    this.#codec = new RecordCodec(authenticator);
  }

  encode(key: string, value: unknown): Buffer {
    const bytes = this.#codec.encode(key, value);
    return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  }

  /**
   * @throws DomainError `internal` / `record_damaged` for a blob that is not what was written, or of a later
   * version
   */
  decode<Value>(key: string, bytes: unknown): Value {
    try {
      if (!(bytes instanceof Uint8Array)) throw new RecordError('blob is missing');
      return this.#codec.decode(key, bytes) as Value;
    } catch (error) {
      throw error instanceof RecordError ? recordDamaged(error) : error;
    }
  }
}
