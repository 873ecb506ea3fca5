/** Identifiers: a prefix for the kind, and a UUIDv7 in Crockford base32, which sorts by time. */

/**
 * The format of the contract's identifiers (rule 2.5), in path parameters and everywhere else in the service.
 */
export const IDENTIFIER_PATTERN = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$/;

export const ID_PREFIXES = {
  proof: 'prf',
  review: 'rev',
  evidenceRequest: 'req',
  upload: 'upl',
  key: 'key',
  request: 'rq',
  partner: 'ptr',
} as const;
export type IdKind = keyof typeof ID_PREFIXES;

const CROCKFORD = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';

/**
 * Formats an identifier from a time and random bytes (RFC 9562, section 5.7).
 * @param now milliseconds since the epoch
 * @param random at least 10 random bytes
 */
export function formatIdentifier(kind: IdKind, now: number, random: Uint8Array): string {
  const uuid = new Uint8Array(16);
  const view = new DataView(uuid.buffer);
  view.setUint32(0, Math.floor(now / 0x1_0000));
  view.setUint16(4, now % 0x1_0000);
  uuid.set(random.subarray(0, 10), 6);
  uuid[6] = (uuid[6]! & 0x0f) | 0x70;
  uuid[8] = (uuid[8]! & 0x3f) | 0x80;
  return `${ID_PREFIXES[kind]}_${crockford(uuid)}`;
}

/**
 * Encodes 128 bits as 26 characters, most significant first. The first character has two leading padding bits
 * of zero.
 */
function crockford(bytes: Uint8Array): string {
  let text = '';
  let carry = 0;
  let bits = 2;
  for (const byte of bytes) {
    carry = (carry << 8) | byte;
    bits += 8;
    while (bits >= 5) {
      bits -= 5;
      text += CROCKFORD[(carry >> bits) & 31];
    }
    carry &= (1 << bits) - 1;
  }
  return text;
}

const MADE_HERE = /^([a-z]+)_([0-7][0-9A-HJKMNP-TV-Z]{25})$/;

/**
 * Returns the time at which the service made an identifier, in milliseconds since the epoch. Returns undefined
 * for an identifier of another kind or origin.
 */
export function createdAtOf(kind: IdKind, identifier: string): number | undefined {
  const [, prefix, uuid] = MADE_HERE.exec(identifier) ?? [];
  if (uuid === undefined || prefix !== ID_PREFIXES[kind]) return undefined;
  // The first ten characters are the two bits of padding and the 48 bits of the time.
  return [...uuid.slice(0, 10)].reduce((time, character) => time * 32 + CROCKFORD.indexOf(character), 0);
}
