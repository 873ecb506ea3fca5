import { Decoder, Encoder } from '@msgpack/msgpack';

/** The largest depth of nested arrays and maps in a row. */
const MAX_DEPTH = 32;
/** The length in bytes from which a native call reads text. For shorter text, joining characters costs less. */
const NATIVE_TEXT_BYTES = 12;
/** The number of names of members that are kept as text, and the length of the longest one in bytes. */
const KEPT_NAMES = 512;
const MAX_NAME_BYTES = 24;

interface KeptName {
  readonly bytes: Uint8Array;
  readonly text: string;
}

/**
 * A decoder of MessagePack that our own encoder wrote. It gives what the library's decoder gives, or throws: types
 * that no row has are refused, for example extensions and names that are not text. Bytes are views of the document.
 */
export class RowDecoder {
  readonly #library = new Decoder();
  readonly #encoder = new Encoder();
  /** The names that were read, by a hash of their bytes. Rows have the same few hundred names. */
  readonly names: (KeptName | undefined)[] = [];

  /** @throws Error for a document that the encoder cannot have written */
  decode(bytes: Uint8Array): unknown {
    return new RowReading(bytes, this).whole();
  }

  /** Decodes a string that is not ASCII. @param element the string with its head */
  decodeForeignText(element: Uint8Array): unknown {
    const text = this.#library.decode(element);
    // The library reads on where a character ends too early.
    if (Buffer.compare(this.#encoder.encodeSharedRef(text), element) !== 0)
      throw new TypeError('a text is not as the encoder writes it');
    return text;
  }
}

class RowReading {
  readonly #bytes: Uint8Array;
  readonly #text: Buffer;
  readonly #decoder: RowDecoder;
  #view: DataView | undefined;
  #at = 0;

  constructor(bytes: Uint8Array, decoder: RowDecoder) {
    this.#bytes = bytes;
    this.#text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
    this.#decoder = decoder;
  }

  whole(): unknown {
    const value = this.#value(0);
    if (this.#at !== this.#bytes.length) throw new RangeError('bytes follow the document');
    return value;
  }

  #value(depth: number): unknown {
    const head = this.#number(1);
    if (head < 0x80) return head;
    if (head < 0x90) return this.#map(head & 0x0f, depth);
    if (head < 0xa0) return this.#array(head & 0x0f, depth);
    if (head < 0xc0) return this.#string(head & 0x1f, 1);
    if (head >= 0xe0) return head - 0x100;
    switch (head) {
      case 0xc0:
        return null;
      case 0xc2:
        return false;
      case 0xc3:
        return true;
      case 0xc4:
      case 0xc5:
      case 0xc6:
        return this.#binary(this.#number(1 << (head - 0xc4)));
      case 0xcb:
        return this.#double();
      case 0xcc:
      case 0xcd:
      case 0xce:
        return this.#number(1 << (head - 0xcc));
      case 0xcf:
        return this.#number(4) * 2 ** 32 + this.#number(4);
      case 0xd0:
        return (this.#number(1) << 24) >> 24;
      case 0xd1:
        return (this.#number(2) << 16) >> 16;
      case 0xd2:
        return this.#number(4) | 0;
      case 0xd3:
        return (this.#number(4) | 0) * 2 ** 32 + this.#number(4);
      case 0xd9:
      case 0xda:
      case 0xdb: {
        const bytes = 1 << (head - 0xd9);
        return this.#string(this.#number(bytes), 1 + bytes);
      }
      case 0xdc:
      case 0xdd:
        return this.#array(this.#number(head === 0xdc ? 2 : 4), depth);
      case 0xde:
      case 0xdf:
        return this.#map(this.#number(head === 0xde ? 2 : 4), depth);
      default:
        throw new TypeError(`no row has the type ${head}`);
    }
  }

  /** Reads a whole number of 1, 2 or 4 bytes. */
  #number(bytes: number): number {
    const at = this.#advance(bytes);
    const from = this.#bytes;
    if (bytes === 1) return from[at]!;
    if (bytes === 2) return (from[at]! << 8) | from[at + 1]!;
    return ((from[at]! << 24) | (from[at + 1]! << 16) | (from[at + 2]! << 8) | from[at + 3]!) >>> 0;
  }

  #double(): number {
    this.#view ??= new DataView(this.#bytes.buffer, this.#bytes.byteOffset, this.#bytes.length);
    return this.#view.getFloat64(this.#advance(8));
  }

  #binary(length: number): Uint8Array {
    const at = this.#advance(length);
    return this.#bytes.subarray(at, at + length);
  }

  #array(size: number, depth: number): unknown[] {
    this.#enter(depth);
    const array: unknown[] = [];
    for (let i = 0; i < size; i += 1) array.push(this.#value(depth + 1));
    return array;
  }

  #map(size: number, depth: number): Record<string, unknown> {
    this.#enter(depth);
    const map: Record<string, unknown> = {};
    for (let i = 0; i < size; i += 1) {
      const name = this.#name();
      map[name] = this.#value(depth + 1);
    }
    return map;
  }

  #enter(depth: number): void {
    if (depth >= MAX_DEPTH) throw new RangeError('the document is nested too deeply');
  }

  #name(): string {
    const head = this.#bytes[this.#at]!;
    const at = this.#at + 1;
    const length = head & 0x1f;
    const isShort = (head & 0xe0) === 0xa0 && length > 0 && length <= MAX_NAME_BYTES;
    if (isShort && at + length <= this.#bytes.length) {
      const slot = this.#slotOf(at, length);
      const { names } = this.#decoder;
      const kept = names[slot];
      if (kept !== undefined && this.#isAt(at, length, kept.bytes)) {
        this.#advance(1 + length);
        return kept.text;
      }
      const text = this.#nameText();
      names[slot] = { bytes: this.#bytes.slice(at, at + length), text };
      return text;
    }
    return this.#nameText();
  }

  #nameText(): string {
    const name = this.#value(MAX_DEPTH);
    // As a member of an object this name would set its prototype.
    if (typeof name !== 'string' || name === '__proto__') throw new TypeError('no row has such a name');
    return name;
  }

  #slotOf(at: number, length: number): number {
    const from = this.#bytes;
    const end = at + length - 1;
    return (length * 31 + from[at]! * 7 + from[at + (length >> 1)]! * 13 + from[end]! * 3) % KEPT_NAMES;
  }

  #isAt(at: number, length: number, name: Uint8Array): boolean {
    if (name.length !== length) return false;
    for (let i = 0; i < length; i += 1) if (this.#bytes[at + i] !== name[i]) return false;
    return true;
  }

  /** @param headBytes the length of the head that was read */
  #string(length: number, headBytes: number): unknown {
    const at = this.#advance(length);
    const end = at + length;
    const from = this.#bytes;
    for (let i = at; i < end; i += 1)
      if (from[i]! >= 0x80) return this.#decoder.decodeForeignText(from.subarray(at - headBytes, end));
    if (length >= NATIVE_TEXT_BYTES) return this.#text.toString('latin1', at, end);
    let text = '';
    for (let i = at; i < end; i += 1) text += String.fromCharCode(from[i]!);
    return text;
  }

  /** Returns the present place, and moves on by so many bytes. */
  #advance(bytes: number): number {
    const at = this.#at;
    if (at + bytes > this.#bytes.length) throw new RangeError('the document ends too early');
    this.#at = at + bytes;
    return at;
  }
}
