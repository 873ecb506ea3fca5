import type { Authenticator } from '../../../codec/authenticator.js';
import { RecordCodec, RecordError } from '../../../codec/record.js';
import { recordDamaged } from '../../../domain/errors.js';

/**
 * Authenticated blobs of values that are read whole and never asked for in part. The `key` of a blob is
 * covered by its code, so that no blob is taken for another.
 */
export class Blobs {
  readonly #codec: RecordCodec;
  readonly #acceptUnauthenticated: boolean;

  /** @param acceptUnauthenticated takes blobs without a code, too, as a version wrote them that made none */
  constructor(authenticator: Authenticator, acceptUnauthenticated: boolean) {
    this.#codec = new RecordCodec(authenticator);
    this.#acceptUnauthenticated = acceptUnauthenticated;
  }

  encode(key: string, value: unknown): Buffer {
    const bytes = this.#codec.encode(key, value);
    return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  }

  /** The blob with its code: a blob that has one is given back as it is. @throws as `decode` */
  renewed(key: string, bytes: unknown): Buffer {
    return bytes instanceof Uint8Array && this.#codec.isFormer(bytes)
      ? this.encode(key, this.decode(key, bytes))
      : (bytes as Buffer);
  }

  /**
   * @throws DomainError `internal` / `record_damaged` for a blob that is not what was written, or of a later
   * version
   */
  decode<Value>(key: string, bytes: unknown): Value {
    try {
      if (!(bytes instanceof Uint8Array)) throw new RecordError('blob is missing');
      return (
        this.#acceptUnauthenticated && this.#codec.isFormer(bytes)
          ? this.#codec.decodeFormer(key, bytes)
          : this.#codec.decode(key, bytes)
      ) as Value;
    } catch (error) {
      throw error instanceof RecordError ? recordDamaged(error) : error;
    }
  }
}
