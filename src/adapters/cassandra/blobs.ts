import { RecordCodec, RecordError } from '../../codec/record.js';
import { storeUnavailable } from './session.js';

const SCHEMA_VERSION = 1;

/** Values that are read whole and never asked for in part, as one checked blob. `key` says what it is, so that none is taken for another. */
export class Blobs {
  readonly #codec = new RecordCodec();

  encode(key: string, value: unknown): Buffer {
    const bytes = this.#codec.encode(key, SCHEMA_VERSION, value);
    return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  }

  /** @throws DomainError `unavailable` for a blob that is damaged or of a later version */
  decode<Value>(key: string, bytes: unknown): Value {
    try {
      const { version, value } = this.#codec.decode(key, bytes as Buffer);
      if (version !== SCHEMA_VERSION) throw new RecordError(`blob has version ${version}`);
      return value as Value;
    } catch (error) {
      throw storeUnavailable(error);
    }
  }
}
