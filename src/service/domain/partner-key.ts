import { createHash } from 'node:crypto';

/**
 * The secret that a partner sends: `tmk_<environment>_<keyId>_<256 random bits in base62>_<checksum>`.
 * Because of the environment and the checksum, the service refuses a mistyped or foreign key before it reads
 * any store.
 */

export const ENVIRONMENTS = ['production', 'beta'] as const;
export type Environment = (typeof ENVIRONMENTS)[number];

const SHAPE = /^tmk_(production|beta)_(key_[0-9A-HJKMNP-TV-Z]{26})_[0-9A-Za-z]{43}_([0-9A-Za-z]{6})$/;
const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** Formats a key. @param random 32 random bytes */
export function formatApiKey(environment: Environment, keyId: string, random: Uint8Array): string {
  const body = `tmk_${environment}_${keyId}_${base62(Buffer.from(random).toString('hex'), 43)}`;
  return `${body}_${checksum(body)}`;
}

/** Returns the key id of a well-formed key of this environment, or undefined for any other text. */
export function parseApiKey(environment: Environment, apiKey: string): string | undefined {
  const parsed = readApiKey(apiKey);
  return parsed?.environment === environment ? parsed.keyId : undefined;
}

/**
 * Returns the environment and id of a well-formed key, which are not secret, or undefined for any other text.
 */
export function readApiKey(
  apiKey: string,
): { readonly environment: Environment; readonly keyId: string } | undefined {
  const match = SHAPE.exec(apiKey);
  if (match === null || match[3] !== checksum(apiKey.slice(0, -7))) return undefined;
  return { environment: match[1] as Environment, keyId: match[2]! };
}

function checksum(body: string): string {
  return base62(createHash('sha256').update(body).digest('hex').slice(0, 8), 6);
}

/**
 * Converts hex digits to base62 of fixed width, most significant digit first. 43 digits represent 256 bits, 6
 * digits represent 32 bits.
 */
function base62(hex: string, width: number): string {
  let value = BigInt(`0x${hex}`);
  let text = '';
  while (text.length < width) {
    text = DIGITS[Number(value % 62n)]! + text;
    value /= 62n;
  }
  return text;
}
