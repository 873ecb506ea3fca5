import { type CborValue, decodeCborStrict } from '../codec/cbor.js';
import type { HardBinding, SignatureAlgorithm } from '../domain/parsed-credential.js';
import type { StoreFault } from '../domain/reference/reasons.js';
import { MAX_HISTORY_ASSERTIONS, readHistory } from './actions.js';
import { readOwnSign1, type Sign1 } from './cose.js';
import { BOX_TYPES } from './jumbf.js';
import type { Manifest } from './manifest.js';
import {
  isName,
  isSha256Hex,
  PRODUCTION_LABEL,
  productionStatement,
  SEAL_LABEL,
  type Statement,
  sealStatement,
} from './statement.js';
import { HASH_DATA_LABEL, manifestUuidIn, type StoreContent, storeForm } from './store-form.js';

/**
 * The result of the strict reading of a store that claims to be ours. The content is read, written again and
 * compared. A store that differs by one byte is not ours. This includes padding, order and spare length.
 */
export type OwnForm =
  | { readonly ok: true; readonly content: StoreContent; readonly toBeSigned: Uint8Array }
  | { readonly ok: false; readonly reason: StoreFault };

/**
 * The largest size of a store of ours in bytes. It has some 2 kB, up to 15 kB of ingredients, and a
 * certificate of at most 16 kB.
 */
export const MAX_OWN_STORE_BYTES = 36 * 1024;

/** The parts of a manifest that contain the content. */
export interface OwnParts {
  readonly label: string;
  readonly assertions: readonly { readonly label: string; readonly cbor?: Uint8Array }[];
  readonly claim: Uint8Array;
}

type Fields = ReadonlyMap<CborValue, CborValue>;

export function readOwnForm(store: Uint8Array, manifest: OwnParts, sign1: Sign1): OwnForm {
  if (manifest.assertions.length > MAX_ASSERTIONS) return { ok: false, reason: 'not_writer_form' };
  const manifestUuid = manifestUuidIn(manifest.label);
  const statement = statementIn(manifest);
  const history = readHistory(manifest.assertions);
  const binding = bindingIn(manifest);
  const generator = generatorIn(manifest);
  const algorithm = ownAlgorithm(sign1);
  const certificate = sign1.chain[0];
  if (statement === undefined) return { ok: false, reason: 'statement_malformed' };
  if (
    manifestUuid === undefined ||
    history === undefined ||
    binding === undefined ||
    generator === undefined ||
    algorithm === undefined ||
    certificate === undefined
  ) {
    return { ok: false, reason: 'not_writer_form' };
  }
  const content = { manifestUuid, generator, statement, history, binding, algorithm, certificate };
  const form = storeForm(content);
  const same = Buffer.compare(form.write(sign1.signature), store) === 0;
  return same ? { ok: true, content, toBeSigned: form.toBeSigned } : { ok: false, reason: 'not_writer_form' };
}

/**
 * Returns the content of a store that is byte for byte what the writer makes of it. The function checks no
 * signature and parses no certificate, so any key may have signed the store.
 */
export function readOwnContent(store: Uint8Array): StoreContent | undefined {
  if (store.length > MAX_OWN_STORE_BYTES) return undefined;
  const located = locateOwnParts(store);
  const own = located && readOwnForm(store, located.parts, located.sign1);
  return own?.ok === true ? own.content : undefined;
}

/**
 * Finds the parts at the positions of the writer, box after box: assertions, claim, signature. The search
 * checks only what it needs, because `readOwnForm` compares every byte. Returns undefined when a box is
 * missing.
 */
export function locateOwnParts(
  store: Uint8Array,
): { readonly parts: OwnParts; readonly sign1: Sign1 } | undefined {
  const view = Buffer.from(store.buffer, store.byteOffset, store.byteLength);
  const root = superboxAt(view, 0, BOX_TYPES.store);
  const manifest = root && superboxAt(view, root.start, BOX_TYPES.manifest);
  const assertionStore = manifest && superboxAt(view, manifest.start, BOX_TYPES.assertionStore);
  if (manifest === undefined || assertionStore === undefined) return undefined;
  const assertions: { label: string; cbor: Uint8Array }[] = [];
  for (let at = assertionStore.start; at < assertionStore.end; ) {
    if (assertions.length === MAX_ASSERTIONS) return undefined;
    const box = superboxAt(view, at, BOX_TYPES.cborAssertion);
    const cbor = box && cborAt(view, box.start);
    if (box === undefined || cbor === undefined) return undefined;
    assertions.push({ label: box.label, cbor });
    at = box.end;
  }
  const claimBox = superboxAt(view, assertionStore.end, BOX_TYPES.claim);
  const signatureBox = claimBox && superboxAt(view, claimBox.end, BOX_TYPES.signature);
  const claim = claimBox && cborAt(view, claimBox.start);
  const cose = signatureBox && cborAt(view, signatureBox.start);
  const sign1 = cose && readOwnSign1(cose);
  return claim === undefined || sign1 === undefined
    ? undefined
    : { parts: { label: manifest.label, assertions, claim }, sign1 };
}

/** The largest number of assertions of a store of ours: its history, the statement and the binding. */
const MAX_ASSERTIONS = MAX_HISTORY_ASSERTIONS + 2;
const BOX_HEADER_BYTES = 8;
/** The length in bytes of a description's type and toggles, before its label. */
const DESCRIPTION_BYTES = 17;
const LABEL_END_BYTES = 1;

/** Returns the label and the extent of the children of a superbox of this type. */
function superboxAt(
  view: Buffer,
  at: number,
  type: string,
): { readonly label: string; readonly start: number; readonly end: number } | undefined {
  const box = boxAt(view, at, 'jumb');
  const description = box && boxAt(view, box.start, 'jumd');
  if (
    box === undefined ||
    description === undefined ||
    view.toString('hex', description.start, description.start + 16) !== type
  )
    return undefined;
  const label = view.toString(
    'utf8',
    description.start + DESCRIPTION_BYTES,
    description.end - LABEL_END_BYTES,
  );
  return { label, start: description.end, end: box.end };
}

function cborAt(view: Buffer, at: number): Uint8Array | undefined {
  const box = boxAt(view, at, 'cbor');
  return box && view.subarray(box.start, box.end);
}

/** Returns the extent of the payload of a box of this type. */
function boxAt(
  view: Buffer,
  at: number,
  type: string,
): { readonly start: number; readonly end: number } | undefined {
  if (at + BOX_HEADER_BYTES > view.length || view.toString('latin1', at + 4, at + BOX_HEADER_BYTES) !== type)
    return undefined;
  const end = at + view.readUInt32BE(at);
  return end < at + BOX_HEADER_BYTES || end > view.length ? undefined : { start: at + BOX_HEADER_BYTES, end };
}

/** Reports whether a manifest uses one of our assertions, well-formed or not. */
export function namesOurAssertion(manifest: Manifest): boolean {
  return manifest.assertions.some(
    ({ label }) => label.startsWith(PRODUCTION_LABEL) || label.startsWith(SEAL_LABEL),
  );
}

function statementIn(manifest: OwnParts): Statement | undefined {
  const production = strictFields(manifest, PRODUCTION_LABEL);
  const seal = strictFields(manifest, SEAL_LABEL);
  if (production !== undefined && seal !== undefined) return undefined;
  if (production !== undefined) return productionStatement(production);
  return seal === undefined ? undefined : sealStatement(seal);
}

function bindingIn(manifest: OwnParts): HardBinding | undefined {
  const fields = strictFields(manifest, HASH_DATA_LABEL);
  const hash = fields?.get('hash');
  const exclusions = fields?.get('exclusions');
  const exclusion: unknown = Array.isArray(exclusions) ? exclusions[0] : undefined;
  if (!(hash instanceof Uint8Array) || !(exclusion instanceof Map)) return undefined;
  const sha256 = Buffer.from(hash).toString('hex');
  const start: unknown = exclusion.get('start');
  const length: unknown = exclusion.get('length');
  if (!isSha256Hex(sha256) || !Number.isSafeInteger(start) || !Number.isSafeInteger(length)) return undefined;
  return { exclusion: { start: start as number, length: length as number }, sha256 };
}

function generatorIn(manifest: OwnParts): StoreContent['generator'] | undefined {
  const claim = decodeCborStrict(manifest.claim);
  const info: unknown =
    claim.ok && claim.value instanceof Map ? claim.value.get('claim_generator_info') : undefined;
  if (!(info instanceof Map)) return undefined;
  const name: unknown = info.get('name');
  const version: unknown = info.get('version');
  return isName(name) && isName(version) ? { name, version } : undefined;
}

function ownAlgorithm({ algorithm, signature }: Sign1): SignatureAlgorithm | undefined {
  return signature.length === 64 && (algorithm === 'Ed25519' || algorithm === 'ES256')
    ? algorithm
    : undefined;
}

function strictFields(manifest: OwnParts, label: string): Fields | undefined {
  const cbor = manifest.assertions.find((assertion) => assertion.label === label)?.cbor;
  const decoded = cbor === undefined ? undefined : decodeCborStrict(cbor);
  return decoded?.ok === true && decoded.value instanceof Map ? (decoded.value as Fields) : undefined;
}
