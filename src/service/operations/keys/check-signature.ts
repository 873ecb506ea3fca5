import { DomainError } from '../../../core/domain/errors.js';
import {
  type ContentDigest,
  parseContentDigest,
  parseSignature,
  type SignatureKey,
  signatureBase,
  signatureHolds,
  signatureKey,
} from '../../domain/message-signature.js';
import type { Clock } from '../../ports/system.js';
import type { Caller } from '../caller.js';
import type { RateLimits } from '../usage/rate-limits.js';

/** A call as it arrived, with the parts that its signature may cover. */
export interface SignedMessage {
  readonly method: string;
  /** The path and query, as sent. */
  readonly target: string;
  readonly hasBody: boolean;
  /** Returns a header by its lower-case name. */
  field(name: string): string | undefined;
}

/**
 * The largest difference, in seconds, between a signature's time and this process's clock, in either
 * direction.
 */
export const SKEW_SECONDS = 60;
/**
 * The number of nonces that a process remembers for all partners, in at most 20 MB. Beyond it, the oldest are
 * dropped.
 */
const NONCES = 65_536;
/** The number of public keys that a process remembers. Beyond it, the key that was added first is dropped. */
const KEYS = 1024;
const NONCE = /^[\x21\x23-\x5b\x5d-\x7e]{16,64}$/;

/** The nonces of accepted signatures, kept until the signatures are too old to be accepted again. */
export class SeenNonces {
  readonly #max: number;
  /** The nonces in the order of arrival, each with the unix second from which it may be dropped. */
  readonly #seen = new Map<string, number>();

  constructor(max = NONCES) {
    this.#max = max;
  }

  /**
   * Accepts a nonce once.
   * @returns false for a nonce that was accepted before
   */
  take(keyId: string, nonce: string, now: number, until: number): boolean {
    for (const [oldest, goes] of this.#seen) {
      if (goes > now && this.#seen.size < this.#max) break;
      this.#seen.delete(oldest);
    }
    const name = `${keyId} ${nonce}`;
    if (this.#seen.has(name)) return false;
    this.#seen.set(name, until);
    return true;
  }
}

/** The public keys that calls were signed with recently. Reading a key costs about as much as using it. */
export class SignatureKeys {
  readonly #keys = new Map<string, SignatureKey>();

  /** Returns the key of a partner's stored public key. @param spki DER in base64 */
  find(spki: string): SignatureKey | undefined {
    const known = this.#keys.get(spki);
    if (known !== undefined) return known;
    const key = signatureKey(spki);
    if (key === undefined) return undefined;
    if (this.#keys.size >= KEYS) this.#keys.delete(this.#keys.keys().next().value!);
    this.#keys.set(spki, key);
    return key;
  }
}

export interface CheckSignatureDeps {
  readonly clock: Clock;
  readonly nonces: SeenNonces;
  readonly signatureKeys: SignatureKeys;
  readonly limits: RateLimits;
}

/**
 * Checks that the caller holds the private key of its API key. An API key without a public key needs no
 * signature. Wrong signatures have a rate for each API key, so that a thief of one API key neither occupies
 * the service nor uses up the rate of the partner's other keys.
 * @returns the digest that the body must have. Undefined when the message has no digest, or the key needs no
 * signature
 * @throws DomainError `forbidden` / `signature_missing`, `signature_invalid`, or `rate_limited` /
 * `rate_exceeded`
 */
export function checkSignature(
  deps: CheckSignatureDeps,
  caller: Caller,
  message: SignedMessage,
): ContentDigest | undefined {
  const { keyId, plan, publicKey } = caller;
  if (publicKey === undefined) return undefined;
  deps.limits.spend(keyId, plan, 'wrong_signatures');
  const digest = signedDigest(deps, keyId, publicKey, message);
  deps.limits.giveBack(keyId, plan, 'wrong_signatures');
  return digest;
}

function signedDigest(
  { clock, nonces, signatureKeys }: CheckSignatureDeps,
  keyId: string,
  publicKey: string,
  message: SignedMessage,
): ContentDigest | undefined {
  const { field, hasBody } = message;
  if (field('signature') === undefined || field('signature-input') === undefined)
    throw forbidden('signature_missing');
  const key = signatureKeys.find(publicKey);
  const sent = parseSignature(field('signature-input'), field('signature'));
  if (key === undefined || sent === undefined) throw forbidden('signature_invalid');
  const { components, created, expires, keyid, nonce, alg } = sent;
  const now = Math.floor(clock.now() / 1000);
  const required = ['@method', '@path', '@query', 'x-api-key', ...(hasBody ? ['content-digest'] : [])];
  const digest = components.includes('content-digest')
    ? parseContentDigest(field('content-digest'))
    : undefined;
  const timely =
    created !== undefined &&
    Math.abs(created - now) <= SKEW_SECONDS &&
    (expires === undefined || now < expires);
  const meant =
    keyid === keyId &&
    (alg === undefined || alg === key.algorithm) &&
    nonce !== undefined &&
    NONCE.test(nonce);
  if (
    !timely ||
    !meant ||
    required.some((component) => !components.includes(component)) ||
    (hasBody && digest === undefined)
  )
    throw forbidden('signature_invalid');
  const base = signatureBase(sent, (component) => componentValue(message, component));
  if (base === undefined || !signatureHolds(key, base, sent.signature)) throw forbidden('signature_invalid');
  // The nonce is remembered only after the signature was verified, so that an unsigned call cannot fill the
  // memory.
  if (!nonces.take(keyId, nonce, now, created + SKEW_SECONDS + 1)) throw forbidden('signature_invalid');
  return digest;
}

/** Returns the value of a component. RFC 9421, 2.2 defines those that begin with `@`. */
function componentValue({ method, target, field }: SignedMessage, component: string): string | undefined {
  const queryAt = target.indexOf('?');
  if (component === '@method') return method;
  if (component === '@path') return queryAt < 0 ? target : target.slice(0, queryAt);
  if (component === '@query') return queryAt < 0 ? '?' : target.slice(queryAt);
  if (component === '@authority')
    return field('host')
      ?.toLowerCase()
      .replace(/:(?:80|443)?$/, '');
  return field(component);
}

function forbidden(reason: 'signature_missing' | 'signature_invalid'): DomainError {
  return new DomainError(
    'forbidden',
    'This key requires signed calls, but this call has no valid signature.',
    { reason },
  );
}
