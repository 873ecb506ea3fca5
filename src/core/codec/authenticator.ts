import { createHmac, timingSafeEqual } from 'node:crypto';

/** Secrets of one purpose. */
export interface MacKeys {
  /** Secret with which new codes are made. */
  current(): { readonly id: string; readonly key: Uint8Array };
  /** Secret of an id, former ones included, by which codes are verified. */
  find(id: string): { readonly id: string; readonly key: Uint8Array } | undefined;
}

export const MAC_BYTES = 32;

/**
 * Maker of message authentication codes, HMAC-SHA-256 (RFC 2104). A code covers the bytes and their place:
 * `context`, the same for everything that one installation writes, and `label`, which says what these bytes
 * are and where they belong. So nothing can be moved to another place. Each code names its key.
 */
export class Authenticator {
  readonly #keys: MacKeys;
  readonly #context: string;
  /** The code that a given one is compared with. */
  readonly #expected = Buffer.alloc(MAC_BYTES);

  constructor(keys: MacKeys, context: string) {
    this.#keys = keys;
    this.#context = context;
  }

  /** @param label without NUL */
  make(label: string, bytes: Uint8Array): { readonly keyId: string; readonly mac: Buffer } {
    const { id, key } = this.#keys.current();
    return { keyId: id, mac: Buffer.from(this.#compute(key, label, bytes), 'latin1') };
  }

  /** Checks a code in constant time. False also where the key is not known. */
  matches(keyId: string, mac: Uint8Array, label: string, bytes: Uint8Array): boolean {
    const known = this.#keys.find(keyId);
    if (known === undefined || mac.length !== MAC_BYTES) return false;
    this.#expected.write(this.#compute(known.key, label, bytes), 'latin1');
    return timingSafeEqual(mac, this.#expected);
  }

  /** Code as text: the key's id, a dot, lower-case hex. */
  sign(label: string, bytes: Uint8Array): string {
    const { keyId, mac } = this.make(label, bytes);
    return `${keyId}.${mac.toString('hex')}`;
  }

  /** Tells whether `text` is what `sign` makes of these bytes. */
  verify(label: string, bytes: Uint8Array, text: string): boolean {
    const dot = text.lastIndexOf('.');
    const digits = text.slice(dot + 1);
    return (
      dot >= 0 &&
      /^[0-9a-f]{64}$/.test(digits) &&
      this.matches(text.slice(0, dot), Buffer.from(digits, 'hex'), label, bytes)
    );
  }

  /** The code, a character a byte: every digest that is a Buffer gets memory of its own, which costs as much again. */
  #compute(key: Uint8Array, label: string, bytes: Uint8Array): string {
    return createHmac('sha256', key).update(`${this.#context}\0${label}\0`).update(bytes).digest('binary');
  }
}
