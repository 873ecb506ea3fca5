import { createHmac, randomBytes, scrypt, scryptSync } from 'node:crypto';

/**
 * Proves that the operator listener knows the operator's token, before a caller sends the token. On a shared
 * machine, any other user may listen on the listener's port while the service is down.
 */
const SALT = 'takemark operator challenge';
const NONCE_BYTES = 32;
const KEY_BYTES = 32;

/**
 * Derives the key of a token. The derivation is slow on purpose (about 50 ms): any caller can get an answer
 * and guess tokens against it, and an operator may have chosen a short token.
 */
export function challengeKey(token: string): Buffer {
  return scryptSync(token, SALT, KEY_BYTES);
}

/** Derives the keys of several tokens, outside the thread that serves callers. */
export function challengeKeys(tokens: readonly string[]): Promise<readonly Buffer[]> {
  return Promise.all(
    tokens.map(
      (token) =>
        new Promise<Buffer>((resolve, reject) => {
          scrypt(token, SALT, KEY_BYTES, (error, key) => (error === null ? resolve(key) : reject(error)));
        }),
    ),
  );
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
