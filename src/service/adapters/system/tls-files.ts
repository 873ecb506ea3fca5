import { X509Certificate } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { createSecureContext } from 'node:tls';
import type { Clock } from '../../ports/system.js';
import type { TlsIdentity } from '../../ports/tls-identity.js';

/** The paths of PEM files. */
export interface TlsPaths {
  readonly certificate: string;
  readonly key: string;
}

/** A certificate and its key in files that somebody renews. */
export class TlsFiles {
  readonly #paths: TlsPaths;
  #identity: TlsIdentity;
  /** The state of the files when they were read last, whether or not they could be used. */
  #seen: string;
  readonly #clock: Clock;
  /** The unix second at which the certificate in the files begins, if the one in use is kept until then. */
  #waitsUntil: number | undefined;

  private constructor(paths: TlsPaths, clock: Clock, seen: string, identity: TlsIdentity) {
    this.#paths = paths;
    this.#clock = clock;
    this.#seen = seen;
    this.#identity = identity;
  }

  /** @throws Error with a message for the operator */
  static async open(paths: TlsPaths, clock: Clock): Promise<TlsFiles> {
    try {
      return new TlsFiles(paths, clock, await looksOf(paths), await readIdentity(paths));
    } catch (cause) {
      throw new Error(
        `the certificate ${paths.certificate} and the key ${paths.key} cannot be used: ${cause instanceof Error ? cause.message : String(cause)}`,
        { cause },
      );
    }
  }

  get identity(): TlsIdentity {
    return this.#identity;
  }

  /**
   * Reads the files again if they changed, or always. A certificate that is not valid yet is taken when its validity
   * begins.
   * @returns the new identity, or undefined if the identity stays as it was
   * @throws Error, once for each change, if the files cannot be used now. The identity stays as it was
   */
  async renew({ always = false } = {}): Promise<TlsIdentity | undefined> {
    const looks = await looksOf(this.#paths);
    const now = Math.floor(this.#clock.now() / 1000);
    const hasBegun = this.#waitsUntil !== undefined && now >= this.#waitsUntil;
    if (looks === this.#seen && !always && !hasBegun) return undefined;
    // Taken down before the reading: a file that changes meanwhile is read again the next time.
    this.#seen = looks;
    this.#waitsUntil = undefined;
    const identity = await readIdentity(this.#paths);
    this.#waitsUntil = now < identity.beginsAt ? identity.beginsAt : undefined;
    if (this.#waitsUntil !== undefined)
      throw Object.assign(new Error('the new certificate is not valid yet'), { code: 'CERT_NOT_YET_VALID' });
    if (identity.expiresAt <= now)
      throw Object.assign(new Error('the new certificate has expired'), { code: 'CERT_HAS_EXPIRED' });
    this.#identity = identity;
    return identity;
  }
}

/** Returns the files' state, which also changes if a rename or a platform's links bring others of the same names. */
async function looksOf({ certificate, key }: TlsPaths): Promise<string> {
  const infos = await Promise.all([certificate, key].map((path) => stat(path, { bigint: true })));
  return infos.map(({ dev, ino, size, mtimeNs }) => [dev, ino, size, mtimeNs].join(':')).join(' ');
}

/** @throws Error where the two do not belong together, or are not what they should be */
async function readIdentity(paths: TlsPaths): Promise<TlsIdentity> {
  const [certificate, key] = await Promise.all([readFile(paths.certificate), readFile(paths.key)]);
  createSecureContext({ cert: certificate, key });
  const { validFrom, validTo } = new X509Certificate(certificate);
  return {
    certificate,
    key,
    beginsAt: Math.floor(Date.parse(validFrom) / 1000),
    expiresAt: Math.floor(Date.parse(validTo) / 1000),
  };
}
