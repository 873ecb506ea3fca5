import { createHmac, randomBytes, scryptSync } from 'node:crypto';

/**
 * The proof that the operator listener knows the operator's token, before a caller sends it: on a machine
 * with other users, any of them may listen at the listener's port while the service is down.
 */
const SALT = 'takemark operator challenge';
const NONCE_BYTES = 32;

/**
 * The key of a token, slow on purpose (about 50 ms): every caller of the listener gets an answer to try
 * tokens on, and an operator may have chosen a short token.
 */
export function challengeKey(token: string): Buffer {
  return scryptSync(token, SALT, 32);
}

/** A nonce for each challenge, so that no answer serves twice. */
export function challengeNonce(): string {
  return randomBytes(NONCE_BYTES).toString('base64url');
}

/** @param port that the listener is bound to: an answer that was fetched from there serves at no other one */
export function challengeResponse(key: Buffer, nonce: string, port: number): string {
  return createHmac('sha256', key).update(`${nonce} ${port}`).digest('base64url');
}
