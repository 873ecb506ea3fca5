/**
 * JUMBF boxes (ISO 19566-5 in the profile of C2PA 2.2 section 11.1). The writer produces one form only. The
 * reader has limits and reports the position of each box, so that hashes cover the bytes of the file.
 */

/** The end of a description type. The sixteen bytes of a type are four characters and this suffix. */
const TYPE_TAIL = '00110010800000aa00389b71';

export const BOX_TYPES = {
  store: typeHex('c2pa'),
  manifest: typeHex('c2ma'),
  manifestOld: typeHex('c2md'),
  updateManifest: typeHex('c2um'),
  compressedManifest: typeHex('c2cm'),
  assertionStore: typeHex('c2as'),
  cborAssertion: typeHex('cbor'),
  jsonAssertion: typeHex('json'),
  claim: typeHex('c2cl'),
  signature: typeHex('c2cs'),
} as const;

function typeHex(characters: string): string {
  return Buffer.from(characters, 'latin1').toString('hex') + TYPE_TAIL;
}

/**
 * The toggles of a description: requestable, label present (C2PA 2.2 section 11.1.4.1.2). The writer sets no
 * others.
 */
const TOGGLES = 0x03;

export function writeContentBox(type: string, content: Uint8Array): Buffer {
  const header = Buffer.alloc(8);
  header.writeUInt32BE(8 + content.length, 0);
  header.write(type, 4, 'latin1');
  return Buffer.concat([header, content]);
}

export function writeSuperbox(type: string, label: string, children: readonly Uint8Array[]): Buffer {
  const description = writeContentBox(
    'jumd',
    Buffer.concat([Buffer.from(type, 'hex'), Buffer.from([TOGGLES]), Buffer.from(`${label}\0`, 'utf8')]),
  );
  return writeContentBox('jumb', Buffer.concat([description, ...children]));
}

export interface Box {
  /** The type of the box: four characters in Latin-1. */
  readonly type: string;
  /** The offset of the payload in the store. */
  readonly start: number;
  readonly end: number;
  /** The description. Only superboxes have one. */
  readonly description?: Description;
  /** The children without the description. Only superboxes have children. */
  readonly children: readonly Box[];
}

export interface Description {
  /** The type of the content: sixteen bytes in hex. */
  readonly type: string;
  readonly label: string;
  /**
   * The fields after the label: none, only a salt (C2PA 2.2 section 8.4.2.3), or others, which this reader does not
   * interpret.
   */
  readonly fields: 'none' | 'salt' | 'others';
}

export type BoxFault =
  | 'box_truncated'
  | 'box_size'
  | 'box_too_deep'
  | 'too_many_boxes'
  | 'description_malformed';

/**
 * The deepest nesting that is read. A complete store is nested five deep, and C2PA boxes are not recursive.
 */
const MAX_DEPTH = 8;
const MAX_BOXES = 4096;

/**
 * Reports whether the bytes begin as a C2PA manifest store: a superbox with the description type of a store.
 */
export function beginsAsStore(bytes: Uint8Array): boolean {
  const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  // LBox 1: a 64-bit length follows and shifts everything by eight bytes.
  const shift = view.length >= 4 && view.readUInt32BE(0) === 1 ? 8 : 0;
  return (
    view.length >= shift + 32 &&
    view.toString('latin1', 4, 8) === 'jumb' &&
    view.toString('latin1', shift + 12, shift + 16) === 'jumd' &&
    view.toString('hex', shift + 16, shift + 32) === BOX_TYPES.store
  );
}

/** Reads the first box of the bytes. `end` of the result shows whether more data follows. */
export function readBox(
  bytes: Uint8Array,
): { readonly ok: true; readonly box: Box } | { readonly ok: false; readonly fault: BoxFault } {
  const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const budget = { boxes: MAX_BOXES };
  const box = boxAt(view, 0, view.length, 0, budget);
  return typeof box === 'string' ? { ok: false, fault: box } : { ok: true, box };
}

function boxAt(
  view: Buffer,
  offset: number,
  limit: number,
  depth: number,
  budget: { boxes: number },
): Box | BoxFault {
  if (depth > MAX_DEPTH) return 'box_too_deep';
  budget.boxes -= 1;
  if (budget.boxes < 0) return 'too_many_boxes';
  if (limit - offset < 8) return 'box_truncated';
  let size = view.readUInt32BE(offset);
  let headerBytes = 8;
  if (size === 1) {
    if (limit - offset < 16) return 'box_truncated';
    const long = view.readBigUInt64BE(offset + 8);
    if (long > BigInt(limit)) return 'box_size';
    size = Number(long);
    headerBytes = 16;
  }
  // LBox 0 means a box up to the end of the file, which is invalid inside a chunk. A box beyond the end of
  // its parent is invalid too.
  if (size < headerBytes || size > limit - offset) return 'box_size';
  const type = view.toString('latin1', offset + 4, offset + 8);
  const start = offset + headerBytes;
  const end = offset + size;
  if (type !== 'jumb') return { type, start, end, children: [] };

  const descriptionBox = boxAt(view, start, end, depth + 1, budget);
  if (typeof descriptionBox === 'string') return descriptionBox;
  const description = descriptionIn(view, descriptionBox);
  if (description === undefined) return 'description_malformed';
  const children: Box[] = [];
  let at = descriptionBox.end;
  while (at < end) {
    const child = boxAt(view, at, end, depth + 1, budget);
    if (typeof child === 'string') return child;
    children.push(child);
    at = child.end;
  }
  return { type, start, end, description, children };
}

function descriptionIn(view: Buffer, box: Box): Description | undefined {
  if (box.type !== 'jumd' || box.end - box.start < 17) return undefined;
  const type = view.toString('hex', box.start, box.start + 16);
  const toggles = view[box.start + 16]!;
  // The box must be requestable and labelled (section 11.1.4.1.2). Bits 5 to 7 have no meaning, so a set bit
  // is damage or hidden data.
  if ((toggles & 0xe3) !== TOGGLES) return undefined;
  const terminator = view.indexOf(0, box.start + 17);
  if (terminator < 0 || terminator >= box.end) return undefined;
  const label = utf8(view.subarray(box.start + 17, terminator));
  if (label === undefined) return undefined;
  let at = terminator + 1;
  if ((toggles & 0x04) !== 0) at += 4;
  if ((toggles & 0x08) !== 0) at += 32;
  // The private box contains a salt (section 8.4.2.3) and fills the rest.
  if ((toggles & 0x10) !== 0) {
    if (box.end - at < 8 || view.readUInt32BE(at) !== box.end - at) return undefined;
    at = box.end;
  }
  if (at !== box.end) return undefined;
  const extra = view.subarray(terminator + 1, box.end);
  return { type, label, fields: extra.length === 0 ? 'none' : isSalt(toggles, extra) ? 'salt' : 'others' };
}

/** Reports whether the fields of a description are only a private box with a salt of 16 or 32 bytes. */
function isSalt(toggles: number, fields: Buffer): boolean {
  return (
    (toggles & ~0x10) === TOGGLES &&
    (fields.length === 8 + 16 || fields.length === 8 + 32) &&
    fields.toString('latin1', 4, 8) === 'c2sh'
  );
}

function utf8(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
