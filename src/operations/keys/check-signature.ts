import { DomainError } from '../../domain/errors.js';
import {
  type ContentDigest,
  parseContentDigest,
  parseSignature,
  signatureBase,
  signatureHolds,
  signatureKey,
} from '../../domain/message-signature.js';
import type { Clock } from '../../ports/system.js';
import type { Caller } from '../caller.js';

/** A call as it came, for the members that its signature covers. */
export interface SignedMessage {
  readonly method: string;
  /** Path and query, as sent. */
  readonly target: string;
  readonly hasBody: boolean;
  /** A header by its lower-case name. */
  field(name: string): string | undefined;
}

/** Greatest distance of a signature's time from this process's clock, before and after. */
export const SKEW_SECONDS = 60;
/** Nonces that a process remembers, of all partners: 20 MB at most. Beyond them the oldest go. */
const NONCES = 65_536;
const NONCE = /^[\x21\x23-\x5b\x5d-\x7e]{16,64}$/;

/** Nonces of signatures that were taken, until the signatures are too old anyway. */
export class SeenNonces {
  readonly #max: number;
  /** Nonces to the second from which each may go, in the order of arrival. */
  readonly #seen = new Map<string, number>();

  constructor(max = NONCES) {
    this.#max = max;
  }

  /** @returns false for a nonce that was taken before */
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

export interface CheckSignatureDeps {
  readonly clock: Clock;
  readonly nonces: SeenNonces;
}

/**
 * Proof that a caller has the private key beside its API key, where that key was made with a public one.
 * @returns what the body must have as its digest; undefined where the message has none, or the key needs no
 * signature
 * @throws DomainError `forbidden` / `signature_missing`, `signature_invalid`
 */
export function checkSignature(
  { clock, nonces }: CheckSignatureDeps,
  caller: Caller,
  message: SignedMessage,
): ContentDigest | undefined {
  if (caller.publicKey === undefined) return undefined;
  const { field, hasBody } = message;
  if (field('signature') === undefined || field('signature-input') === undefined)
    throw forbidden('signature_missing');
  const key = signatureKey(caller.publicKey);
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
    keyid === caller.keyId &&
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
  // Only now: who cannot sign fills no memory.
  if (!nonces.take(caller.keyId, nonce, now, created + SKEW_SECONDS + 1))
    throw forbidden('signature_invalid');
  return digest;
}

/** RFC 9421, 2.2 for what begins with `@`. */
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
    'This key needs a signature of the message, and there is none that is valid.',
    { reason },
  );
}
