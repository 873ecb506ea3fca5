/** Chain of a trace: what its hashes are over, and what its device signs. */
import { createHash, createPublicKey, type KeyObject, sign, verify } from 'node:crypto';
import type { DeviceAlgorithm, DeviceId } from '../domain/trace.js';

const HEADER_TAG = Buffer.from('takemark.trace.1.header\0', 'latin1');
const SEGMENT_TAG = Buffer.from('takemark.trace.1.segment\0', 'latin1');
const SIGNATURE_TAG = Buffer.from('takemark.trace.1.signature\0', 'latin1');

export const SIGNATURE_BYTES = 64;

/** Returns the head of a chain without segments. */
export function headOfHeader(header: Uint8Array): Buffer {
  return createHash('sha256').update(HEADER_TAG).update(header).digest();
}

/** Returns the head of the chain after one more segment. */
export function headOfSegment(
  before: Uint8Array,
  segment: { readonly sequence: number; readonly firstEvent: number; readonly body: Uint8Array },
): Buffer {
  return createHash('sha256')
    .update(SEGMENT_TAG)
    .update(before)
    .update(uint64(segment.sequence))
    .update(uint64(segment.firstEvent))
    .update(segment.body)
    .digest();
}

/** Returns the message that the device signs over the segments so far. */
export function signedMessage(final: boolean, segments: number, head: Uint8Array): Buffer {
  return Buffer.concat([SIGNATURE_TAG, Buffer.of(final ? 1 : 0), uint64(segments), head]);
}

function uint64(value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(BigInt(value));
  return bytes;
}

export function deviceIdOf(publicKey: Uint8Array): DeviceId {
  return createHash('sha256').update(publicKey).digest('hex');
}

/** Reads a device's public key, SPKI in DER; undefined where it is none of the algorithm, or not in its one form. */
export function readDevicePublicKey(bytes: Uint8Array, algorithm: DeviceAlgorithm): KeyObject | undefined {
  try {
    const key = createPublicKey({ key: Buffer.from(bytes), format: 'der', type: 'spki' });
    const same = Buffer.compare(key.export({ format: 'der', type: 'spki' }), bytes) === 0;
    return same && algorithmOf(key) === algorithm ? key : undefined;
  } catch {
    return undefined;
  }
}

/** Returns the algorithm that a key is for, or undefined if devices do not use it. */
export function algorithmOf(key: KeyObject): DeviceAlgorithm | undefined {
  if (key.asymmetricKeyType === 'ed25519') return 'Ed25519';
  if (key.asymmetricKeyType === 'ec' && key.asymmetricKeyDetails?.namedCurve === 'prime256v1') return 'ES256';
  return undefined;
}

/** Returns a signature of 64 bytes: Ed25519 (RFC 8032), or ECDSA on P-256 with SHA-256 as r || s. */
export function signMessage(algorithm: DeviceAlgorithm, key: KeyObject, message: Uint8Array): Buffer {
  return algorithm === 'Ed25519'
    ? sign(null, message, key)
    : sign('sha256', message, { key, dsaEncoding: 'ieee-p1363' });
}

export function verifyMessage(
  algorithm: DeviceAlgorithm,
  key: KeyObject,
  message: Uint8Array,
  signature: Uint8Array,
): boolean {
  return algorithm === 'Ed25519'
    ? verify(null, message, key, signature)
    : verify('sha256', message, { key, dsaEncoding: 'ieee-p1363' }, signature);
}
