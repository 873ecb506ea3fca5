/**
 * A JSON value that was encoded outside the main thread. A response contains its bytes as they are. Any other
 * code decodes the value first.
 */
export class EncodedJson<Value> {
  /** The value as UTF-8 text. */
  readonly bytes: Uint8Array;

  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
  }

  decode(): Value {
    return JSON.parse(
      Buffer.from(this.bytes.buffer, this.bytes.byteOffset, this.bytes.length).toString(),
    ) as Value;
  }

  /** Returns the decoded value, so that an encoder that does not know this class writes the same JSON. */
  toJSON(): Value {
    return this.decode();
  }
}

/** A value with every encoded part decoded, as the caller of a response sees it. */
export type Decoded<Value> =
  Value extends EncodedJson<infer Inner>
    ? Inner
    : Value extends readonly (infer Item)[]
      ? readonly Decoded<Item>[]
      : Value extends object
        ? { readonly [Name in keyof Value]: Decoded<Value[Name]> }
        : Value;
