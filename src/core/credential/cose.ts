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

/** The structure COSE_Sign1 (RFC 9052 section 4.2) with a detached payload, as in C2PA 2.2 section 13.2. */

const HEADER_ALGORITHM = 1;
const HEADER_CRITICAL = 2;
const HEADER_X5CHAIN = 33;
/** The tag of COSE_Sign1 (RFC 9052 section 4.2). C2PA 2.2 section 13.2.2 requires it. */
const TAG_SIGN1 = 18;

/**
 * The names of IANA COSE algorithms. -8 is EdDSA and means Ed25519 here. -19 is the fully specified name of
 * Ed25519.
 */
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
 * Returns the protected header of our writer: the algorithm and the leaf certificate. The root and
 * intermediates are omitted.
 */
export function protectedHeader(algorithm: SignatureAlgorithm, certificate: Uint8Array): Uint8Array {
  return encodeCbor(
    new Map<CborValue, CborValue>([
      [HEADER_ALGORITHM, WRITTEN[algorithm]],
      [HEADER_X5CHAIN, certificate],
    ]),
  );
}

/**
 * Returns the bytes that a signature covers: Sig_structure (RFC 9052 section 4.4) with empty external data.
 */
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
  /** The algorithm. Absent when it is not in the table. */
  readonly algorithm?: AlgorithmName;
  /** The certificates in DER, leaf first. */
  readonly chain: readonly Uint8Array[];
  readonly signature: Uint8Array;
  /**
   * True when the unprotected header has unknown members. Known members are padding, time-stamps and
   * revocation values. Certificates are known only if the protected header has none. No signature covers the
   * unprotected header.
   */
  readonly hasUnknownHeaders: boolean;
  /**
   * True when a time-stamp or revocation value exists. Its own authority signs it, and this reader does not
   * check it.
   */
  readonly hasTimeStamp: boolean;
  /**
   * The header of the certificates. The signature covers only the protected one. Old writers used the text label in the
   * unprotected header, and no writer used the number there.
   */
  readonly chainIn: 'protected' | 'unprotected' | 'unprotected-text';
}

export type Sign1Fault =
  | 'cose_malformed'
  | 'cose_payload_present'
  | 'cose_algorithm_missing'
  | 'cose_certificate_missing'
  | 'cose_padding_not_zero';

const BUDGET: CborBudget = { bytes: 1_048_576, depth: 16, items: 4096 };
const MAX_CHAIN = 8;
/** The keys of a certificate chain: the label of RFC 9360, and the text label of older writers. */
const CHAIN_LABELS: ReadonlySet<CborValue> = new Set<CborValue>([HEADER_X5CHAIN, 'x5chain']);
/** The keys known in the unprotected header (C2PA 2.2 sections 13.2.3, 14.5, 15.8 and 15.9). */
const UNPROTECTED: ReadonlySet<CborValue> = new Set<CborValue>([
  ...CHAIN_LABELS,
  'pad',
  'pad2',
  'sigTst',
  'sigTst2',
  'rVals',
]);

/** Parses a COSE_Sign1 of any writer. */
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
  // The payload is the detached claim, so it must be nil here (C2PA 2.2 section 13.2). Any other value would
  // be unsigned data.
  if (payload !== null) return { ok: false, fault: 'cose_payload_present' };
  const header = decodeCborTolerant(protectedBytes, BUDGET);
  if (!header.ok || !(header.value instanceof Map)) return { ok: false, fault: 'cose_malformed' };
  const protectedMap = header.value as ReadonlyMap<CborValue, CborValue>;
  // Padding reserves space for a writer and consists of zeros (C2PA 2.2 section 13.2.3). Any other byte would
  // be unsigned data.
  for (const name of ['pad', 'pad2']) {
    const pad = (unprotectedMap as ReadonlyMap<CborValue, CborValue>).get(name);
    if (pad !== undefined && !(pad instanceof Uint8Array && pad.every((byte) => byte === 0)))
      return { ok: false, fault: 'cose_padding_not_zero' };
  }
  const stated = protectedMap.get(HEADER_ALGORITHM);
  if (typeof stated !== 'number' && typeof stated !== 'string')
    return { ok: false, fault: 'cose_algorithm_missing' };
  // Rejects any `crit` header (RFC 9052 section 3.1): no critical extension is supported.
  if (protectedMap.has(HEADER_CRITICAL)) return { ok: false, fault: 'cose_malformed' };
  const signedChain = chainIn(protectedMap);
  const chain = signedChain ?? chainIn(unprotectedMap as ReadonlyMap<CborValue, CborValue>);
  if (chain === undefined) return { ok: false, fault: 'cose_certificate_missing' };
  const algorithm = ALGORITHMS.get(stated);
  const unprotectedKeys = [...(unprotectedMap as ReadonlyMap<CborValue, CborValue>).keys()];
  // Unsigned certificates beside signed ones are unknown headers: another reader could take them for those of
  // the signer.
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
      chainIn:
        signedChain !== undefined
          ? 'protected'
          : unprotectedKeys.includes(HEADER_X5CHAIN)
            ? 'unprotected'
            : 'unprotected-text',
    },
  };
}

/**
 * Reads the form that `protectedHeader` and `writeSign1` produce, with one certificate and no unprotected
 * header. Returns undefined for any other form.
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
    chainIn: 'protected',
  };
}

/**
 * Returns the certificates of x5chain, leaf first. The label is an integer (RFC 9360), or the text of older
 * writers. The value is one byte string, or an array of them.
 */
function chainIn(header: ReadonlyMap<CborValue, CborValue>): readonly Uint8Array[] | undefined {
  const value = header.get(HEADER_X5CHAIN) ?? header.get('x5chain');
  if (value instanceof Uint8Array) return [value];
  if (!Array.isArray(value) || value.length === 0 || value.length > MAX_CHAIN) return undefined;
  return value.every((entry) => entry instanceof Uint8Array) ? (value as readonly Uint8Array[]) : undefined;
}
