import { createHmac, randomBytes, scryptSync } from 'node:crypto';

/**
 * Proves that the operator listener knows the operator's token, before a caller sends the token. On a shared
 * machine, any other user may listen on the listener's port while the service is down.
 */
const SALT = 'takemark operator challenge';
const NONCE_BYTES = 32;

/**
 * Derives the key of a token. The derivation is slow on purpose (about 50 ms): any caller can get an answer
 * and guess tokens against it, and an operator may have chosen a short token.
 */
export function challengeKey(token: string): Buffer {
  return scryptSync(token, SALT, 32);
}

/** Returns a new nonce for each challenge, so that an answer cannot be used twice. */
export function challengeNonce(): string {
  return randomBytes(NONCE_BYTES).toString('base64url');
}

/**
 * Returns the answer to a challenge.
 * @param port the port of the listener. An answer from one port is not valid on another port.
 */
export function challengeResponse(key: Buffer, nonce: string, port: number): string {
  return createHmac('sha256', key).update(`${nonce} ${port}`).digest('base64url');
}
