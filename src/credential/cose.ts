import {
  type CborBudget,
  CborTag,
  type CborValue,
  decodeCborStrict,
  decodeCborTolerant,
  encodeCbor,
} from '../codec/cbor.js';
import { defined } from '../domain/defined.js';
import type { SignatureAlgorithm } from '../domain/parsed-credential.js';
import type { AlgorithmName } from './signature.js';

/** COSE_Sign1 (RFC 9052 section 4.2) with a detached payload, as C2PA 2.2 section 13.2 profiles it. */

const HEADER_ALGORITHM = 1;
const HEADER_CRITICAL = 2;
const HEADER_X5CHAIN = 33;
/** Tag of COSE_Sign1, RFC 9052 section 4.2; required by C2PA 2.2 section 13.2.2. */
const TAG_SIGN1 = 18;

/** Names of IANA COSE algorithms; -8 is EdDSA and means Ed25519 here, -19 is its fully specified name. */
const ALGORITHMS: ReadonlyMap<CborValue, AlgorithmName> = new Map<CborValue, AlgorithmName>([
  [-8, 'Ed25519'],
  [-19, 'Ed25519'],
  [-7, 'ES256'],
  [-35, 'ES384'],
  [-36, 'ES512'],
  [-37, 'PS256'],
  [-38, 'PS384'],
  [-39, 'PS512'],
]);
const WRITTEN: Readonly<Record<SignatureAlgorithm, number>> = { Ed25519: -8, ES256: -7 };

/**
 * Protected header that our writer makes: algorithm and the leaf alone, the root and any intermediate left
 * out.
 */
export function protectedHeader(algorithm: SignatureAlgorithm, certificate: Uint8Array): Uint8Array {
  return encodeCbor(
    new Map<CborValue, CborValue>([
      [HEADER_ALGORITHM, WRITTEN[algorithm]],
      [HEADER_X5CHAIN, certificate],
    ]),
  );
}

/** Bytes that a signature covers: Sig_structure, RFC 9052 section 4.4. External data is empty. */
export function toBeSigned(protectedBytes: Uint8Array, payload: Uint8Array): Uint8Array {
  return encodeCbor(['Signature1', protectedBytes, new Uint8Array(0), payload]);
}

/** Writes a COSE_Sign1: tag 18, four elements, empty unprotected header, nil payload. */
export function writeSign1(protectedBytes: Uint8Array, signature: Uint8Array): Uint8Array {
  return Buffer.concat([
    Buffer.from([0xc0 | TAG_SIGN1]),
    encodeCbor([protectedBytes, new Map(), null, signature]),
  ]);
}

export interface Sign1 {
  readonly protectedBytes: Uint8Array;
  /** Algorithm; absent where it is outside the table. */
  readonly algorithm?: AlgorithmName;
  /** Certificates in DER, leaf first. */
  readonly chain: readonly Uint8Array[];
  readonly signature: Uint8Array;
  /**
   * Tells whether the unprotected header, which nothing signs, holds more than the certificates, where the protected one
   * has none, padding, time-stamps and revocation values.
   */
  readonly hasUnknownHeaders: boolean;
  /**
   * Tells whether a time-stamp or revocation value is there. Its own authority signs it; it is not read here.
   */
  readonly hasTimeStamp: boolean;
}

export type Sign1Fault =
  | 'cose_malformed'
  | 'cose_payload_present'
  | 'cose_algorithm_missing'
  | 'cose_certificate_missing'
  | 'cose_padding_not_zero';

const BUDGET: CborBudget = { bytes: 1_048_576, depth: 16, items: 4096 };
const MAX_CHAIN = 8;
/** Keys of a chain of certificates: the label of RFC 9360, and the text of older writers. */
const CHAIN_LABELS: ReadonlySet<CborValue> = new Set<CborValue>([HEADER_X5CHAIN, 'x5chain']);
/** Keys known in the unprotected header: C2PA 2.2 sections 13.2.3, 14.5, 15.8 and 15.9. */
const UNPROTECTED: ReadonlySet<CborValue> = new Set<CborValue>([
  ...CHAIN_LABELS,
  'pad',
  'pad2',
  'sigTst',
  'sigTst2',
  'rVals',
]);

/** Parses anyone's COSE_Sign1. */
export function readSign1(
  bytes: Uint8Array,
): { readonly ok: true; readonly sign1: Sign1 } | { readonly ok: false; readonly fault: Sign1Fault } {
  const decoded = decodeCborTolerant(bytes, BUDGET);
  if (!decoded.ok || !(decoded.value instanceof CborTag) || decoded.value.tag !== TAG_SIGN1)
    return { ok: false, fault: 'cose_malformed' };
  const parts = decoded.value.value;
  if (!Array.isArray(parts) || parts.length !== 4) return { ok: false, fault: 'cose_malformed' };
  const [protectedBytes, unprotectedMap, payload, signature] = parts as readonly CborValue[];
  if (
    !(protectedBytes instanceof Uint8Array) ||
    !(unprotectedMap instanceof Map) ||
    !(signature instanceof Uint8Array)
  )
    return { ok: false, fault: 'cose_malformed' };
  // The claim is the payload and stands elsewhere: nil (C2PA 2.2 section 13.2). Another value would be
  // unsigned freight.
  if (payload !== null) return { ok: false, fault: 'cose_payload_present' };
  const header = decodeCborTolerant(protectedBytes, BUDGET);
  if (!header.ok || !(header.value instanceof Map)) return { ok: false, fault: 'cose_malformed' };
  const protectedMap = header.value as ReadonlyMap<CborValue, CborValue>;
  // Padding is for writers that reserve space, and consists of zeros (C2PA 2.2 section 13.2.3): anything
  // else is freight.
  for (const name of ['pad', 'pad2']) {
    const pad = (unprotectedMap as ReadonlyMap<CborValue, CborValue>).get(name);
    if (pad !== undefined && !(pad instanceof Uint8Array && pad.every((byte) => byte === 0)))
      return { ok: false, fault: 'cose_padding_not_zero' };
  }
  const stated = protectedMap.get(HEADER_ALGORITHM);
  if (typeof stated !== 'number' && typeof stated !== 'string')
    return { ok: false, fault: 'cose_algorithm_missing' };
  // Headers that a reader must know to judge the signature (RFC 9052 section 3.1): there is none that this one would.
  if (protectedMap.has(HEADER_CRITICAL)) return { ok: false, fault: 'cose_malformed' };
  const signedChain = chainIn(protectedMap);
  const chain = signedChain ?? chainIn(unprotectedMap as ReadonlyMap<CborValue, CborValue>);
  if (chain === undefined) return { ok: false, fault: 'cose_certificate_missing' };
  const algorithm = ALGORITHMS.get(stated);
  const unprotectedKeys = [...(unprotectedMap as ReadonlyMap<CborValue, CborValue>).keys()];
  // Certificates beside those that are signed are nobody's: another reader could take them for the signer's.
  const hasUnknownHeaders = unprotectedKeys.some(
    (key) => !UNPROTECTED.has(key) || (signedChain !== undefined && CHAIN_LABELS.has(key)),
  );
  const hasTimeStamp = unprotectedKeys.some(
    (key) => key === 'sigTst' || key === 'sigTst2' || key === 'rVals',
  );
  return {
    ok: true,
    sign1: {
      protectedBytes,
      ...defined({ algorithm }),
      chain,
      signature,
      hasUnknownHeaders,
      hasTimeStamp,
    },
  };
}

/**
 * Reads the form of `protectedHeader` and `writeSign1`, one certificate and no unprotected header; undefined
 * for any other.
 */
export function readOwnSign1(bytes: Uint8Array): Sign1 | undefined {
  const parts = bytes[0] === (0xc0 | TAG_SIGN1) ? decodeCborStrict(bytes.subarray(1)) : undefined;
  if (parts?.ok !== true || !Array.isArray(parts.value) || parts.value.length !== 4) return undefined;
  const [protectedBytes, unprotectedMap, payload, signature] = parts.value as readonly CborValue[];
  if (
    !(protectedBytes instanceof Uint8Array) ||
    !(unprotectedMap instanceof Map) ||
    unprotectedMap.size > 0 ||
    payload !== null ||
    !(signature instanceof Uint8Array)
  )
    return undefined;
  const header = decodeCborStrict(protectedBytes);
  if (!header.ok || !(header.value instanceof Map) || header.value.size !== 2) return undefined;
  const algorithm = ALGORITHMS.get(header.value.get(HEADER_ALGORITHM));
  const certificate: unknown = header.value.get(HEADER_X5CHAIN);
  if (algorithm === undefined || !(certificate instanceof Uint8Array)) return undefined;
  return {
    protectedBytes,
    algorithm,
    chain: [certificate],
    signature,
    hasUnknownHeaders: false,
    hasTimeStamp: false,
  };
}

/**
 * Certificates of x5chain, as integer label (RFC 9360) or as the text label of older writers: one bstr, or an
 * array of them, leaf first.
 */
function chainIn(header: ReadonlyMap<CborValue, CborValue>): readonly Uint8Array[] | undefined {
  const value = header.get(HEADER_X5CHAIN) ?? header.get('x5chain');
  if (value instanceof Uint8Array) return [value];
  if (!Array.isArray(value) || value.length === 0 || value.length > MAX_CHAIN) return undefined;
  return value.every((entry) => entry instanceof Uint8Array) ? (value as readonly Uint8Array[]) : undefined;
}
