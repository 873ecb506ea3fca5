import { defined } from '../domain/defined.js';
import type { StoreFault } from '../domain/reference/reasons.js';
import { ASSERTIONS_LABEL } from './actions.js';
import { BOX_TYPES, type Box, readBox } from './jumbf.js';
import { SIGNATURE_LABEL, STORE_LABEL } from './store-form.js';

/**
 * The parts of a store's active manifest, located in the store's own bytes. They are read without trust and
 * cryptography.
 */
export interface Manifest {
  readonly label: string;
  readonly isUpdate: boolean;
  /** True for `c2md`, which old writers used for `c2ma`. */
  readonly isOldType: boolean;
  readonly assertions: readonly Assertion[];
  readonly claimLabel: string;
  readonly claim: Uint8Array;
  readonly cose: Uint8Array;
  /** The number of manifests in the store besides this one. */
  readonly otherManifests: number;
  /**
   * True when the store or the manifest has boxes, or fields of descriptions, that this reader passes over. The
   * signature does not cover them.
   */
  readonly hasUnknownBoxes: boolean;
  /** The bytes of the chunk after the store's box. */
  readonly trailing: Uint8Array;
}

export interface Assertion {
  readonly label: string;
  /** The bytes that a hashed URI covers: the superbox without its own header (C2PA 2.2 section 8.4.2.3). */
  readonly hashed: Uint8Array;
  /** The CBOR of the assertion. Present when the assertion is exactly one CBOR box. */
  readonly cbor?: Uint8Array;
  /** The JSON of the assertion. Present when the assertion is exactly one JSON box. */
  readonly json?: Uint8Array;
  /**
   * False when the description has other fields than a salt. Readers disagree about which bytes the digest of such an
   * assertion covers.
   */
  readonly isPlain: boolean;
}

export type ManifestParseResult =
  | { readonly kind: 'manifest'; readonly manifest: Manifest }
  /** A manifest compressed with Brotli (C2PA 2.2 section 11.2.3). This reader does not decompress it. */
  | { readonly kind: 'compressed' }
  | { readonly kind: 'malformed'; readonly reason: StoreFault };

const MANIFEST_TYPES: readonly string[] = [
  BOX_TYPES.manifest,
  BOX_TYPES.manifestOld,
  BOX_TYPES.updateManifest,
  BOX_TYPES.compressedManifest,
];
/** The number of boxes in a manifest: assertion store, claim and signature. */
const PARTS = 3;
const CLAIM_LABEL = /^c2pa\.claim(?:\.v[1-9][0-9]?)?$/;

/** Locates the active manifest, which is the last manifest of the store (C2PA 2.2 section 11.1.4.2). */
export function readManifest(store: Uint8Array): ManifestParseResult {
  const reading = readBox(store);
  if (!reading.ok) return malformed(reading.fault);
  const root = reading.box;
  if (root.description?.label !== STORE_LABEL) return malformed('store_label');
  const manifests = root.children.filter((child) => MANIFEST_TYPES.includes(child.description?.type ?? ''));
  const active = manifests.at(-1);
  if (active?.description === undefined) return malformed('manifest_missing');
  const { label, type } = active.description;
  if (
    type === BOX_TYPES.compressedManifest &&
    active.children.length === 1 &&
    active.children[0]?.type === 'brob'
  )
    return { kind: 'compressed' };

  const assertionStore = only(active, BOX_TYPES.assertionStore);
  const claimBox = only(active, BOX_TYPES.claim);
  const signatureBox = only(active, BOX_TYPES.signature);
  if (assertionStore?.description?.label !== ASSERTIONS_LABEL) return malformed('assertion_store_malformed');
  if (claimBox === undefined || !CLAIM_LABEL.test(claimBox.description?.label ?? ''))
    return malformed('claim_box_malformed');
  if (signatureBox?.description?.label !== SIGNATURE_LABEL) return malformed('signature_box_malformed');
  const claim = sole(store, claimBox, 'cbor');
  const cose = sole(store, signatureBox, 'cbor');
  if (claim === undefined) return malformed('claim_box_malformed');
  if (cose === undefined) return malformed('signature_box_malformed');

  const assertions: Assertion[] = [];
  for (const box of assertionStore.children) {
    if (box.description === undefined) return malformed('assertion_malformed');
    const { type: kind } = box.description;
    const cbor = kind === BOX_TYPES.cborAssertion ? sole(store, box, 'cbor') : undefined;
    const json = kind === BOX_TYPES.jsonAssertion ? sole(store, box, 'json') : undefined;
    assertions.push({
      label: box.description.label,
      hashed: store.subarray(box.start, box.end),
      ...defined({ cbor, json }),
      isPlain: box.description.fields !== 'others',
    });
  }
  // Two boxes with one label are ambiguous: readers could choose different ones.
  if (new Set(assertions.map((assertion) => assertion.label)).size !== assertions.length)
    return malformed('assertion_duplicate');
  return {
    kind: 'manifest',
    manifest: {
      label,
      isUpdate: type === BOX_TYPES.updateManifest,
      isOldType: type === BOX_TYPES.manifestOld,
      assertions,
      claimLabel: claimBox.description?.label ?? '',
      claim,
      cose,
      otherManifests: manifests.length - 1,
      hasUnknownBoxes:
        // A manifest that is marked as compressed, and is not.
        type === BOX_TYPES.compressedManifest ||
        root.children.length > manifests.length ||
        active.children.length > PARTS ||
        [root, active, assertionStore, claimBox, signatureBox].some(
          ({ description }) => description?.fields !== 'none',
        ),
      trailing: store.subarray(root.end),
    },
  };
}

function only(parent: Box, type: string): Box | undefined {
  const found = parent.children.filter((child) => child.description?.type === type);
  return found.length === 1 ? found[0] : undefined;
}

/** Returns the content of a superbox with exactly one box, of this type. */
function sole(store: Uint8Array, box: Box, type: string): Uint8Array | undefined {
  const [content, ...more] = box.children;
  return content?.type === type && more.length === 0 ? store.subarray(content.start, content.end) : undefined;
}

function malformed(reason: StoreFault): ManifestParseResult {
  return { kind: 'malformed', reason };
}
