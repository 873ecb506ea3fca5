import { decodeCborStrict, type CborValue } from '../codec/cbor.js';
import type { HardBinding, SignatureAlgorithm } from '../domain/credential-reading.js';
import type { Sign1 } from './cose.js';
import type { Manifest } from './manifest.js';
import { PRODUCTION_LABEL, productionStatement, SEAL_LABEL, sealStatement, isName, isSha256Hex, type Statement } from './statement.js';
import { HASH_DATA_LABEL, manifestUuidIn, storeForm, type StoreContent } from './store-form.js';

/**
 * The strict half of reading: takes the content out of a store that says it is ours, writes it again and compares. Whatever
 * differs by one byte, padding, order and spare length included, is not ours.
 */
export type OwnForm = { readonly ok: true; readonly content: StoreContent } | { readonly ok: false; readonly reason: string };

type Fields = ReadonlyMap<CborValue, CborValue>;

export function readOwnForm(store: Uint8Array, manifest: Manifest, sign1: Sign1): OwnForm {
  const manifestUuid = manifestUuidIn(manifest.label);
  const statement = statementIn(manifest);
  const binding = bindingIn(manifest);
  const generator = generatorIn(manifest);
  const algorithm = ownAlgorithm(sign1);
  const certificate = sign1.chain[0];
  if (statement === undefined) return { ok: false, reason: 'statement_malformed' };
  if (manifestUuid === undefined || binding === undefined || generator === undefined || algorithm === undefined || certificate === undefined) {
    return { ok: false, reason: 'not_writer_form' };
  }
  const content = { manifestUuid, generator, statement, binding, algorithm, certificate };
  const same = Buffer.compare(storeForm(content).write(sign1.signature), store) === 0;
  return same ? { ok: true, content } : { ok: false, reason: 'not_writer_form' };
}

/** Whether a manifest uses one of our assertions, well-formed or not. */
export function namesOurAssertion(manifest: Manifest): boolean {
  return manifest.assertions.some(({ label }) => label.startsWith(PRODUCTION_LABEL) || label.startsWith(SEAL_LABEL));
}

function statementIn(manifest: Manifest): Statement | undefined {
  const production = strictFields(manifest, PRODUCTION_LABEL);
  const seal = strictFields(manifest, SEAL_LABEL);
  if (production !== undefined && seal !== undefined) return undefined;
  if (production !== undefined) return productionStatement(production);
  return seal === undefined ? undefined : sealStatement(seal);
}

function bindingIn(manifest: Manifest): HardBinding | undefined {
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

function generatorIn(manifest: Manifest): StoreContent['generator'] | undefined {
  const claim = decodeCborStrict(manifest.claim);
  const info: unknown = claim.ok && claim.value instanceof Map ? claim.value.get('claim_generator_info') : undefined;
  if (!(info instanceof Map)) return undefined;
  const name: unknown = info.get('name');
  const version: unknown = info.get('version');
  return isName(name) && isName(version) ? { name, version } : undefined;
}

function ownAlgorithm({ algorithm, signature }: Sign1): SignatureAlgorithm | undefined {
  return signature.length === 64 && (algorithm === 'Ed25519' || algorithm === 'ES256') ? algorithm : undefined;
}

function strictFields(manifest: Manifest, label: string): Fields | undefined {
  const cbor = manifest.assertions.find((assertion) => assertion.label === label)?.cbor;
  const decoded = cbor === undefined ? undefined : decodeCborStrict(cbor);
  return decoded?.ok === true && decoded.value instanceof Map ? (decoded.value as Fields) : undefined;
}
