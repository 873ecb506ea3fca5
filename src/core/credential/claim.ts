import { type CborBudget, type CborValue, decodeCborTolerant } from '../codec/cbor.js';
import { defined } from '../domain/defined.js';
import { ASSERTIONS_LABEL } from './actions.js';
import { SIGNATURE_LABEL, STORE_LABEL } from './store-form.js';

/** A claim of any writer (C2PA 2.2 section 10.2, and version 1 as in C2PA 1.4 section 10.2). */
export interface Claim {
  readonly version: 1 | 2;
  readonly generator?: string;
  readonly namesItsSignature: boolean;
  /**
   * True when the claim names the signature from the root of the store, and so binds the label of the
   * manifest. With a relative name the label is unsigned.
   */
  readonly bindsLabel: boolean;
  readonly references: readonly Reference[];
  /** The hash algorithm of references that do not name their own. */
  readonly algorithm?: string;
  /** Every member, decoded. */
  readonly fields: Fields;
}

export interface Reference {
  /**
   * The label of the assertion. Undefined when the reference points outside the assertion store of this
   * manifest.
   */
  readonly label: string | undefined;
  readonly hash: Uint8Array;
  readonly algorithm: string | undefined;
  /** True for an assertion that the signer made. Only version 2 distinguishes these from gathered assertions. */
  readonly isCreated: boolean;
}

export type Fields = ReadonlyMap<CborValue, CborValue>;

const BUDGET: CborBudget = { bytes: 1_048_576, depth: 32, items: 16_384 };

/** Parses a claim. Returns undefined when the value is not a claim of either version. */
export function readClaim(bytes: Uint8Array, claimLabel: string, manifestLabel: string): Claim | undefined {
  const fields = fieldsIn(bytes);
  if (fields === undefined) return undefined;
  const version = fields.has('created_assertions') ? 2 : 1;
  // The label of the box and the keys must agree on the version, because the signature does not cover the
  // label.
  if ((claimLabel === 'c2pa.claim.v2') !== (version === 2)) return undefined;
  const lists =
    version === 2
      ? [fields.get('created_assertions'), fields.get('gathered_assertions') ?? []]
      : [fields.get('assertions')];
  const references: Reference[] = [];
  for (const [at, list] of lists.entries()) {
    if (!Array.isArray(list)) return undefined;
    for (const entry of list as readonly CborValue[]) {
      const reference = referenceIn(entry, manifestLabel, at === 0);
      if (reference === undefined) return undefined;
      references.push(reference);
    }
  }
  if (redactsItself(fields.get('redacted_assertions'), manifestLabel)) return undefined;
  const algorithm = fields.get('alg');
  const generator = generatorIn(fields);
  const signature = fields.get('signature');
  return {
    version,
    namesItsSignature: ownPath(signature, manifestLabel) === SIGNATURE_LABEL,
    bindsLabel: typeof signature === 'string' && signature.startsWith('self#jumbf=/'),
    references,
    fields,
    ...(typeof algorithm === 'string' ? { algorithm } : {}),
    ...defined({ generator }),
  };
}

/** Decodes a CBOR map. Returns undefined for any other value. */
export function fieldsIn(bytes: Uint8Array): Fields | undefined {
  const decoded = decodeCborTolerant(bytes, BUDGET);
  return decoded.ok && decoded.value instanceof Map ? (decoded.value as Fields) : undefined;
}

function referenceIn(entry: CborValue, manifestLabel: string, isCreated: boolean): Reference | undefined {
  if (!(entry instanceof Map)) return undefined;
  const fields = entry as Fields;
  const hash = fields.get('hash');
  const algorithm = fields.get('alg');
  if (!(hash instanceof Uint8Array)) return undefined;
  const path = ownPath(fields.get('url'), manifestLabel);
  const inStore = path?.startsWith(`${ASSERTIONS_LABEL}/`) === true;
  return {
    label: inStore ? path.slice(ASSERTIONS_LABEL.length + 1) : undefined,
    hash,
    algorithm: typeof algorithm === 'string' ? algorithm : undefined,
    isCreated,
  };
}

/**
 * Reports whether a claim redacts an assertion of its own manifest, which is not allowed. It may redact
 * assertions of other manifests. Readers understand more spellings of a URI than the standard has, so every URI
 * that does not certainly name another manifest counts.
 */
function redactsItself(redacted: CborValue, manifestLabel: string): boolean {
  if (!Array.isArray(redacted)) return false;
  return (redacted as readonly CborValue[]).some((url) => {
    if (typeof url !== 'string') return true;
    const [start, store, manifest] = url.split('/');
    return (
      start !== 'self#jumbf=' ||
      store !== STORE_LABEL ||
      manifest === undefined ||
      manifest === '' ||
      manifest.toLowerCase() === manifestLabel.toLowerCase()
    );
  });
}

/**
 * Returns the part of a JUMBF URI below its own manifest. The URI may be relative or begin at the root of the
 * store (C2PA 2.2 section 8.4.1).
 */
function ownPath(url: CborValue | undefined, manifestLabel: string): string | undefined {
  if (typeof url !== 'string') return undefined;
  const absolute = `self#jumbf=/${STORE_LABEL}/${manifestLabel}/`;
  if (url.startsWith(absolute)) return url.slice(absolute.length);
  const relative = 'self#jumbf=';
  return url.startsWith(relative) && !url.startsWith(`${relative}/`) ? url.slice(relative.length) : undefined;
}

/**
 * Returns the generator of the claim. Version 2 has one map. Version 1 has an array of maps, or a text in
 * older claims.
 */
function generatorIn(fields: Fields): string | undefined {
  const info = fields.get('claim_generator_info');
  const first: CborValue | undefined = Array.isArray(info) ? (info as readonly CborValue[])[0] : info;
  if (first instanceof Map) {
    const name = (first as Fields).get('name');
    const version = (first as Fields).get('version');
    if (typeof name === 'string') return typeof version === 'string' ? `${name} ${version}` : name;
  }
  const text = fields.get('claim_generator');
  return typeof text === 'string' ? text : undefined;
}
