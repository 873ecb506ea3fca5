/**
 * JUMBF boxes (ISO 19566-5 as profiled by C2PA 2.2 section 11.1): the writer's half makes one form only, the
 * reader's half is bounded and tells where each box lies, so that hashes are taken over the file's own bytes.
 */

/** End of a description type: its sixteen bytes are four characters and this. */
const TYPE_TAIL = '00110010800000aa00389b71';

export const BOX_TYPES = {
  store: typeHex('c2pa'),
  manifest: typeHex('c2ma'),
  manifestOld: typeHex('c2md'),
  updateManifest: typeHex('c2um'),
  compressedManifest: typeHex('c2cm'),
  assertionStore: typeHex('c2as'),
  cborAssertion: typeHex('cbor'),
  claim: typeHex('c2cl'),
  signature: typeHex('c2cs'),
} as const;

function typeHex(characters: string): string {
  return Buffer.from(characters, 'latin1').toString('hex') + TYPE_TAIL;
}

/**
 * Toggles of a description: requestable, label present (C2PA 2.2 section 11.1.4.1.2); nothing else is ever
 * written.
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
  /** Type of the box, four characters, Latin-1. */
  readonly type: string;
  /** Place of the payload in the store. */
  readonly start: number;
  readonly end: number;
  /** Description, of superboxes only. */
  readonly description?: Description;
  /** Children, of superboxes only, the description left out. */
  readonly children: readonly Box[];
}

export interface Description {
  /** Type of the content, sixteen bytes as hex. */
  readonly type: string;
  readonly label: string;
}

export type BoxFault =
  | 'box_truncated'
  | 'box_size'
  | 'box_too_deep'
  | 'too_many_boxes'
  | 'description_malformed';

/** Deepest nesting that is read: a whole store nests five deep; C2PA has no recursion of boxes. */
const MAX_DEPTH = 8;
const MAX_BOXES = 4096;

/**
 * Tells whether the bytes begin as a C2PA manifest store: a superbox whose description has the store's type.
 */
export function beginsAsStore(bytes: Uint8Array): boolean {
  const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  // LBox 1: a 64-bit length follows and moves everything by eight.
  const shift = view.length >= 4 && view.readUInt32BE(0) === 1 ? 8 : 0;
  return (
    view.length >= shift + 32 &&
    view.toString('latin1', 4, 8) === 'jumb' &&
    view.toString('latin1', shift + 12, shift + 16) === 'jumd' &&
    view.toString('hex', shift + 16, shift + 32) === BOX_TYPES.store
  );
}

/** Reads the first box of the bytes. `end` of the result tells whether something follows it. */
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
  // LBox 0, a box up to the end of the file, has no place inside a chunk; nor has a box that crosses its
  // parent's end.
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
  // Requestable and labelled (section 11.1.4.1.2); bits 5 to 7 have no meaning, so a set one is damage or a
  // hiding place.
  if ((toggles & 0xe3) !== TOGGLES) return undefined;
  const terminator = view.indexOf(0, box.start + 17);
  if (terminator < 0 || terminator >= box.end) return undefined;
  const label = utf8(view.subarray(box.start + 17, terminator));
  if (label === undefined) return undefined;
  let at = terminator + 1;
  if ((toggles & 0x04) !== 0) at += 4;
  if ((toggles & 0x08) !== 0) at += 32;
  // The private box holds a salt (section 8.4.2.3) and fills the rest.
  if ((toggles & 0x10) !== 0) {
    if (box.end - at < 8 || view.readUInt32BE(at) !== box.end - at) return undefined;
    at = box.end;
  }
  return at === box.end ? { type, label } : undefined;
}

function utf8(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
