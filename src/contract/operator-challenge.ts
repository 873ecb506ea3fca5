import { createHmac, randomBytes, scryptSync } from 'node:crypto';

/**
 * How the operator listener shows that it knows the operator's token, before a caller sends it: on a machine
 * with other users, any of them may listen at its port while the service is down.
 */
const SALT = 'takemark operator challenge';
const NONCE_BYTES = 32;

/**
 * Slow on purpose, about 50 ms: whoever asks the listener gets an answer to try tokens on, and an operator
 * may have chosen a short one.
 */
export function challengeKey(token: string): Buffer {
  return scryptSync(token, SALT, 32);
}

/** One for each challenge, so that no answer serves twice. */
export function challengeNonce(): string {
  return randomBytes(NONCE_BYTES).toString('base64url');
}

/** @param port that the listener is bound to: an answer that was fetched from there serves at no other one */
export function challengeAnswer(key: Buffer, nonce: string, port: number): string {
  return createHmac('sha256', key).update(`${nonce} ${port}`).digest('base64url');
}
