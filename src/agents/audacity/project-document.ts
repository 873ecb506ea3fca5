/**
 * Project document of Audacity 3.2, decoded from the binary XML that its database holds. The document is a stranger's
 * bytes: content that is not understood, or is too large, is an error.
 */

/** The limits of a document that is read. The bytes include the dictionary of names. */
export const DOCUMENT_LIMITS = {
  bytes: 67_108_864,
  depth: 32,
  elements: 2_000_000,
  names: 4096,
  textBytes: 65_536,
} as const;

/** The error for a project that cannot be understood, exceeds a limit or takes too long to read. */
export class DocumentError extends Error {}

export interface DocumentElement {
  readonly name: string;
  readonly attributes: ReadonlyMap<string, string | number>;
  readonly children: readonly DocumentElement[];
}

/** The types of a field. The type is the byte before the field. */
const FIELD = {
  charSize: 0,
  startTag: 1,
  endTag: 2,
  text: 3,
  int: 4,
  boolean: 5,
  long: 6,
  longLong: 7,
  size: 8,
  float: 9,
  double: 10,
  data: 11,
  raw: 12,
  push: 13,
  pop: 14,
  name: 15,
} as const;

interface Growing {
  readonly name: string;
  readonly attributes: Map<string, string | number>;
  readonly children: Growing[];
}

/**
 * Decodes a document.
 * @param dictionary names of elements and attributes, by number
 * @throws DocumentError
 */
export function decodeDocument(dictionary: Uint8Array, document: Uint8Array): DocumentElement {
  if (dictionary.length + document.length > DOCUMENT_LIMITS.bytes)
    throw new DocumentError('the document is too large');
  const decoder = new Decoder();
  decoder.read(dictionary);
  decoder.read(document);
  return decoder.end();
}

class Decoder {
  readonly #names = new Map<number, string>();
  readonly #root: Growing = { name: '', attributes: new Map(), children: [] };
  readonly #open: Growing[] = [this.#root];
  #elements = 0;
  /** The bytes of a character: 1, 2 or 4, little-endian. */
  #charSize = 1;

  read(bytes: Uint8Array): void {
    const field = new Fields(bytes);
    while (field.left > 0) this.#take(field.u8(), field);
  }

  end(): DocumentElement {
    if (this.#open.length !== 1) throw new DocumentError('the document ends within an element');
    const [root, ...more] = this.#root.children;
    if (root === undefined || more.length > 0) throw new DocumentError('the document has more than one root');
    return root;
  }

  #take(type: number, field: Fields): void {
    switch (type) {
      case FIELD.push:
      case FIELD.pop:
        return;
      case FIELD.charSize:
        this.#charSize = field.u8();
        if (![1, 2, 4].includes(this.#charSize))
          throw new DocumentError('the size of a character is unknown');
        return;
      case FIELD.name: {
        const number = field.u16();
        if (this.#names.size >= DOCUMENT_LIMITS.names) throw new DocumentError('too many names');
        this.#names.set(number, this.#text(field, field.u16()));
        return;
      }
      case FIELD.startTag:
        this.#begin(this.#name(field));
        return;
      case FIELD.endTag:
        if (this.#open.length === 1 || this.#open.pop()?.name !== this.#name(field))
          throw new DocumentError('an element ends without a start');
        return;
      case FIELD.text:
        this.#set(this.#name(field), this.#text(field, field.u32()));
        return;
      case FIELD.int:
      case FIELD.long:
        this.#set(this.#name(field), field.i32());
        return;
      case FIELD.size:
        this.#set(this.#name(field), field.u32());
        return;
      case FIELD.boolean:
        this.#set(this.#name(field), field.u8());
        return;
      case FIELD.longLong:
        this.#set(this.#name(field), field.i64());
        return;
      case FIELD.float:
        this.#set(this.#name(field), field.f32());
        field.i32();
        return;
      case FIELD.double:
        this.#set(this.#name(field), field.f64());
        field.i32();
        return;
      case FIELD.data:
      case FIELD.raw:
        this.#text(field, field.u32());
        return;
      default:
        throw new DocumentError('a field has an unknown type');
    }
  }

  #name(field: Fields): string {
    const name = this.#names.get(field.u16());
    if (name === undefined) throw new DocumentError('a name is not in the dictionary');
    return name;
  }

  #text(field: Fields, length: number): string {
    if (length > DOCUMENT_LIMITS.textBytes) throw new DocumentError('a text is too long');
    const bytes = field.take(length);
    if (this.#charSize === 1) return Buffer.from(bytes).toString('utf8');
    if (length % this.#charSize !== 0) throw new DocumentError('a text ends within a character');
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    let text = '';
    for (let at = 0; at < length; at += this.#charSize) {
      const code = this.#charSize === 2 ? view.getUint16(at, true) : view.getUint32(at, true);
      if (code > 0x10ffff) throw new DocumentError('a character is not valid');
      text += this.#charSize === 2 ? String.fromCharCode(code) : String.fromCodePoint(code);
    }
    return text;
  }

  #begin(name: string): void {
    this.#elements += 1;
    if (this.#elements > DOCUMENT_LIMITS.elements || this.#open.length > DOCUMENT_LIMITS.depth)
      throw new DocumentError('too many elements');
    const element = { name, attributes: new Map(), children: [] };
    this.#open.at(-1)?.children.push(element);
    this.#open.push(element);
  }

  #set(name: string, value: string | number): void {
    const attributes = this.#open.at(-1)?.attributes;
    if (this.#open.length === 1 || attributes === undefined || attributes.has(name))
      throw new DocumentError('an attribute is outside an element, or is repeated in it');
    attributes.set(name, value);
  }
}

class Fields {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  }

  get left(): number {
    return this.#bytes.length - this.#at;
  }

  take(length: number): Uint8Array {
    const at = this.#step(length);
    return this.#bytes.subarray(at, at + length);
  }

  u8(): number {
    return this.#view.getUint8(this.#step(1));
  }

  u16(): number {
    return this.#view.getUint16(this.#step(2), true);
  }

  u32(): number {
    return this.#view.getUint32(this.#step(4), true);
  }

  i32(): number {
    return this.#view.getInt32(this.#step(4), true);
  }

  i64(): number {
    const value = Number(this.#view.getBigInt64(this.#step(8), true));
    if (!Number.isSafeInteger(value)) throw new DocumentError('a number is too large');
    return value;
  }

  f32(): number {
    return this.#finite(this.#view.getFloat32(this.#step(4), true));
  }

  f64(): number {
    return this.#finite(this.#view.getFloat64(this.#step(8), true));
  }

  #finite(value: number): number {
    if (!Number.isFinite(value)) throw new DocumentError('a number is not finite');
    return value;
  }

  #step(length: number): number {
    if (length > this.left) throw new DocumentError('the document ends too early');
    const at = this.#at;
    this.#at += length;
    return at;
  }
}
