/** Edits of a credential in the form that this product writes. Each edit causes one fault. */
import { createHash } from 'node:crypto';
import { type CborValue, decodeCborStrict, encodeCbor } from '../../../core/codec/cbor.js';
import {
  decodeMessagePackStrict,
  encodeMessagePack,
  type MessagePackValue,
} from '../../../core/codec/messagepack.js';
import { ASSERTIONS_LABEL } from '../../../core/credential/actions.js';
import { toBeSigned } from '../../../core/credential/cose.js';
import {
  BOX_TYPES,
  type Box,
  readBox,
  writeContentBox,
  writeSuperbox,
} from '../../../core/credential/jumbf.js';
import { readManifest } from '../../../core/credential/manifest.js';
import { withOtherS } from '../../../core/credential/signature.js';
import { PRODUCTION_LABEL } from '../../../core/credential/statement.js';
import { CLAIM_LABEL, HASH_DATA_LABEL, SIGNATURE_LABEL } from '../../../core/credential/store-form.js';
import type { ReasonOf } from '../../../core/domain/reference/reasons.js';
import type { Signer, SigningIdentity } from '../../../core/ports/signing.js';
import { chunk, riff } from './wave-file.js';

/** The edits of some bytes, by the reason for which the edited bytes are refused. */
type Edits = Readonly<Partial<Record<ReasonOf<'tampered'>, (bytes: Buffer) => Buffer>>>;

/**
 * The length of the last element of a COSE_Sign1 and of a sidecar: the head of a byte string, and 64 bytes.
 */
const SIGNATURE_BYTES = 66;
/**
 * The elements before the signature in a COSE_Sign1: the unprotected header, which is an empty map, and nil
 * for the payload.
 */
const EMPTY_MAP_FROM_END = SIGNATURE_BYTES + 2;
const PAYLOAD_FROM_END = SIGNATURE_BYTES + 1;
/** The bytes before the toggles of the first description: the headers of two boxes, and the type. */
const TOGGLES_AT = 8 + 8 + 16;
/**
 * The bytes between the label of the signature box and the protected header: box header, tag, array head, and
 * head of the byte string.
 */
const TO_HEADER = 8 + 1 + 1 + 3;
/**
 * The offsets in the protected header, which begins with a map head: key of the algorithm, algorithm, key of
 * the certificate.
 */
const ALGORITHM_KEY = 1;
const ALGORITHM_NAME = 2;
const CERTIFICATE_KEY = 4;
/** The offset of the certificate itself, after the head of its byte string. */
const CERTIFICATE = 8;
const ED25519 = 0x27;
const ES256 = 0x26;
/** The number of boxes, and the depth, that the reader refuses. */
const TOO_MANY = 4096;
const TOO_DEEP = 9;

const MANIFEST = [BOX_TYPES.manifest];
const ASSERTION_STORE = [...MANIFEST, BOX_TYPES.assertionStore];
const CLAIM = [...MANIFEST, BOX_TYPES.claim, 'cbor'];
const SIGNATURE = [...MANIFEST, BOX_TYPES.signature, 'cbor'];

/**
 * The faults of a store that need no new signature. The verifier finds each of them before it checks the
 * signature, or the fault is in the signature itself.
 */
export const STORE_EDITS: Edits = {
  box_truncated: (store) => rewritten(store, MANIFEST, (boxes) => Buffer.concat([boxes, Buffer.alloc(4)])),
  // The first box of the manifest claims to extend beyond the store.
  box_size: (store) => {
    const copy = Buffer.from(store);
    copy.writeUInt32BE(0xffff_ffff, 8 + store.readUInt32BE(8));
    return copy;
  },
  box_too_deep: (store) => {
    let deep = writeContentBox('free', Buffer.alloc(0));
    for (let depth = 0; depth < TOO_DEEP; depth += 1)
      deep = writeSuperbox(BOX_TYPES.cborAssertion, 'deep', [deep]);
    return appended(store, MANIFEST, deep);
  },
  too_many_boxes: (store) =>
    appended(
      store,
      MANIFEST,
      Buffer.concat(Array.from({ length: TOO_MANY }, () => writeContentBox('free', Buffer.alloc(0)))),
    ),
  description_malformed: (store) => flipped(store, TOGGLES_AT),
  store_label: (store) => renamed(store, '\x03c2pa\0', '\x03c2pb\0'),
  manifest_missing: (store) => renamed(store, 'c2ma', 'c2mx'),
  assertion_store_malformed: (store) => renamed(store, 'c2pa.assertions\0', 'c2pa.assertionz\0'),
  claim_box_malformed: (store) => renamed(store, `${CLAIM_LABEL}\0`, 'c2pa.claim.x2\0'),
  signature_box_malformed: (store) => renamed(store, `${SIGNATURE_LABEL}\0`, 'c2pa.signaturf\0'),
  // The first assertion stops being a superbox.
  assertion_malformed: (store) => {
    const copy = Buffer.from(store);
    copy.write('free', behind(store, `${ASSERTIONS_LABEL}\0`) + 4, 'latin1');
    return copy;
  },
  assertion_duplicate: (store) => {
    const [first] = boxAt(store, ASSERTION_STORE).box.children;
    return appended(store, ASSERTION_STORE, store.subarray(first!.start - 8, first!.end));
  },
  claim_malformed: (store) => renamed(store, 'created_assertions', 'created_assertionz'),
  cose_malformed: (store) => flipped(store, behind(store, `${SIGNATURE_LABEL}\0`) + 8),
  // False replaces nil, which means that the payload is detached.
  cose_payload_present: (store) => set(store, store.length - PAYLOAD_FROM_END, 0xf4),
  cose_algorithm_missing: (store) => set(store, headerAt(store) + ALGORITHM_KEY, 2),
  cose_certificate_missing: (store) => flipped(store, headerAt(store) + CERTIFICATE_KEY),
  cose_padding_not_zero: (store) =>
    rewritten(store, SIGNATURE, (cose) =>
      Buffer.concat([
        cose.subarray(0, -EMPTY_MAP_FROM_END),
        encodeCbor(new Map<CborValue, CborValue>([['pad', Buffer.from([1])]])),
        cose.subarray(1 - EMPTY_MAP_FROM_END),
      ]),
    ),
  certificate_malformed: (store) => flipped(store, headerAt(store) + CERTIFICATE),
  // The first occurrence is in the claim, before the box that the claim names.
  signature_reference: (store) => renamed(store, SIGNATURE_LABEL, 'c2pa.signaturf'),
  assertion_missing: (store) => renamed(store, `/${HASH_DATA_LABEL}`, '/c2pa.hash.datb'),
  assertion_listed_twice: (store) => reclaimed(store, (references) => [...references, references[0]!]),
  assertion_not_listed: (store) => reclaimed(store, (references) => references.slice(0, -1)),
  // The statement gets another proof id.
  assertion_hash_mismatch: (store) => {
    const at = store.indexOf('prf_', 0, 'latin1') + 29;
    return set(store, at, store[at] === 0x30 ? 0x31 : 0x30);
  },
  algorithm_not_of_key: (store) => {
    const at = headerAt(store) + ALGORITHM_NAME;
    return set(store, at, store[at] === ED25519 ? ES256 : ED25519);
  },
  signature_mismatch: (store) => flipped(store, store.length - 1),
};

/** The faults of a sidecar. */
export const SIDECAR_EDITS: Edits = {
  sidecar_malformed: (sidecar) => sidecar.subarray(0, -10),
  sidecar_over_budget: (sidecar) => Buffer.concat([sidecar, Buffer.alloc(20 * 1024)]),
  // The length takes two bytes, although one is enough.
  sidecar_not_canonical: (sidecar) =>
    Buffer.concat([
      sidecar.subarray(0, -SIGNATURE_BYTES),
      Buffer.from([0xc5, 0, 64]),
      sidecar.subarray(2 - SIGNATURE_BYTES),
    ]),
  // The version is after the array head, the string head and the name.
  sidecar_version_unknown: (sidecar) => set(sidecar, 2 + 'takemark.sidecar'.length, 2),
  sidecar_members: (sidecar) => renamed(sidecar, 'production-record', 'production-recorx'),
  sidecar_not_writer_form: (sidecar) => {
    const decoded = decodeMessagePackStrict(sidecar, sidecar.length);
    if (!decoded.ok) throw new Error(decoded.fault);
    const [name, version, body, signature] = decoded.value as readonly MessagePackValue[];
    const backwards = Object.fromEntries(Object.entries(body as object).reverse()) as MessagePackValue;
    return Buffer.from(encodeMessagePack([name!, version!, backwards, signature!]));
  },
  signature_mismatch: (sidecar) => flipped(sidecar, sidecar.length - 2),
};

/** The faults of a store with a valid signature: the store is edited, then signed again. */
const SIGNED_EDITS = {
  hash_data_malformed: (store) =>
    renamed(store, '\x64hash\x58', '\x64hasi\x58', behind(store, HASH_DATA_LABEL)),
  statement_malformed: (store) =>
    set(store, behind(store, '\x67version', behind(store, PRODUCTION_LABEL)), 2),
  // The instance id contains the UUID of the manifest and must match it.
  not_writer_form: (store) => flipped(store, behind(store, 'xmp:iid:')),
  // The last byte of the length of the exclusion.
  exclusion_not_chunk: (store) => flipped(store, behind(store, '\x66length\x19') + 1),
  // The smallest number that takes four bytes, which is a day in 1970.
  outside_validity: (store) => {
    const copy = Buffer.from(store);
    copy.writeUInt32BE(0x1_0000, behind(store, '\x69createdAt\x1a'));
    return copy;
  },
} as const satisfies Edits;

/** The false identity members that a signer states in place of its own. */
const FALSE_IDENTITIES = {
  kid_mismatch: { kid: '0'.repeat(64) },
  issuer_mismatch: { issuer: 'Another issuer' },
} as const satisfies Partial<Record<ReasonOf<'tampered'>, Partial<SigningIdentity>>>;

/**
 * The faults of a store with a valid signature. `signature_not_low_s` is an ES256 signature with the other
 * value of S. `class_confusion` is a seal by a key of the service, which makes no seals.
 */
export const SIGNED_FAULTS = [
  ...namesOf(SIGNED_EDITS),
  ...namesOf(FALSE_IDENTITIES),
  'signature_not_low_s',
  'class_confusion',
] as const;
export type SignedFault = (typeof SIGNED_FAULTS)[number];

/** The faults that the verifier checks only under a certificate of the service. */
export const FAULTS_OF_SERVICE: ReadonlySet<SignedFault> = new Set([
  'class_confusion',
  'issuer_mismatch',
  'outside_validity',
]);

/** Returns a signer that states the identity for a store with this fault. */
export function stating(fault: SignedFault, signer: Signer): Signer {
  const identity = { ...signer.identity, ...(isNamed(FALSE_IDENTITIES, fault) && FALSE_IDENTITIES[fault]) };
  return { identity, sign: (message) => signer.sign(message) };
}

/**
 * Returns a store with a fault that the verifier finds after a valid signature.
 * @param signer the signer of the store. For `signature_not_low_s` it signs with ES256. For `class_confusion`
 * the store is a seal
 */
export function withSignedFault(fault: SignedFault, store: Buffer, signer: Signer): Promise<Buffer> | Buffer {
  if (isNamed(SIGNED_EDITS, fault)) return signedAgain(SIGNED_EDITS[fault](store), signer);
  return fault === 'signature_not_low_s'
    ? Buffer.concat([store.subarray(0, -64), withOtherS(store.subarray(-64))])
    : store;
}

function namesOf<Name extends string>(entries: Readonly<Record<Name, unknown>>): readonly Name[] {
  return Object.keys(entries) as Name[];
}

function isNamed<Name extends string>(entries: Readonly<Record<Name, unknown>>, name: string): name is Name {
  return Object.hasOwn(entries, name);
}

/** Returns the edited store with hashes and signature recomputed. */
async function signedAgain(store: Buffer, signer: Signer): Promise<Buffer> {
  const reading = readManifest(store);
  if (reading.kind !== 'manifest') throw new Error('a signed edit must leave a readable manifest');
  const hashes = new Map(
    reading.manifest.assertions.map(({ label, hashed }) => [
      `self#jumbf=${ASSERTIONS_LABEL}/${label}`,
      createHash('sha256').update(hashed).digest(),
    ]),
  );
  const hashed = reclaimed(store, (references) =>
    references.map(
      (reference) => new Map([...reference, ['hash', hashes.get(String(reference.get('url')))!]]),
    ),
  );
  const { start, end } = boxAt(hashed, CLAIM).box;
  const header = hashed.subarray(headerAt(hashed), hashed.length - EMPTY_MAP_FROM_END);
  const signature = await signer.sign(toBeSigned(header, hashed.subarray(start, end)));
  return Buffer.concat([hashed.subarray(0, -signature.length), signature]);
}

/** Returns the store of a file whose last chunk is its credential. */
export function storeIn(audio: Buffer): Buffer {
  const at = chunkAt(audio);
  return audio.subarray(at + 8, at + 8 + audio.readUInt32LE(at + 4));
}

/** Returns the file with another store in its last chunk. */
export function withStore(audio: Buffer, store: Buffer): Buffer {
  return riff([audio.subarray(12, chunkAt(audio)), chunk({ id: 'C2PA', data: store })]);
}

function chunkAt(audio: Buffer): number {
  return audio.lastIndexOf('C2PA', undefined, 'latin1');
}

type References = readonly ReadonlyMap<CborValue, CborValue>[];

/** Returns the store with other assertions listed in its claim. */
function reclaimed(store: Buffer, edit: (references: References) => References): Buffer {
  return rewritten(store, CLAIM, (bytes) => {
    const claim = decodeCborStrict(bytes);
    if (!claim.ok || !(claim.value instanceof Map))
      throw new Error('a store in the form of this product must have a claim');
    const members = claim.value as ReadonlyMap<CborValue, CborValue>;
    const references = members.get('created_assertions') as unknown as References;
    return encodeCbor(
      new Map([...members, ['created_assertions', edit(references) as unknown as CborValue]]),
    );
  });
}

/**
 * Returns the store with other content in one box. The sizes of the enclosing boxes follow.
 * @param path types of the boxes below the store's
 */
function rewritten(store: Buffer, path: readonly string[], edit: (content: Buffer) => Uint8Array): Buffer {
  const { box, around } = boxAt(store, path);
  const content = edit(store.subarray(box.start, box.end));
  const written = Buffer.concat([store.subarray(0, box.start), content, store.subarray(box.end)]);
  const growth = content.length - (box.end - box.start);
  for (const { start, end } of [...around, box]) written.writeUInt32BE(8 + end - start + growth, start - 8);
  return written;
}

/** Returns the store with one more child in one box. */
function appended(store: Buffer, path: readonly string[], child: Uint8Array): Buffer {
  return rewritten(store, path, (children) => Buffer.concat([children, child]));
}

function boxAt(
  store: Buffer,
  path: readonly string[],
): { readonly box: Box; readonly around: readonly Box[] } {
  const reading = readBox(store);
  if (!reading.ok) throw new Error(reading.fault);
  let { box } = reading;
  const around: Box[] = [];
  for (const type of path) {
    around.push(box);
    box = box.children.find((child) => (child.description?.type ?? child.type) === type)!;
  }
  return { box, around };
}

/** Returns the position of the protected header in a store. */
function headerAt(store: Buffer): number {
  return behind(store, `${SIGNATURE_LABEL}\0`) + TO_HEADER;
}

/** Returns the position after the first occurrence of a text. */
function behind(bytes: Buffer, text: string, from = 0): number {
  return bytes.indexOf(text, from, 'latin1') + text.length;
}

export function flipped(bytes: Buffer, at: number): Buffer {
  return set(bytes, at, bytes[at]! ^ 1);
}

function set(bytes: Buffer, at: number, value: number): Buffer {
  const copy = Buffer.from(bytes);
  copy[at] = value;
  return copy;
}

/** Replaces the first occurrence of a text by another of the same length. */
function renamed(bytes: Buffer, text: string, other: string, from = 0): Buffer {
  const copy = Buffer.from(bytes);
  copy.write(other, bytes.indexOf(text, from, 'latin1'), 'latin1');
  return copy;
}
