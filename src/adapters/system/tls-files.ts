import { X509Certificate } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { createSecureContext } from 'node:tls';
import type { TlsIdentity } from '../../ports/tls-identity.js';

/** Paths of PEM files. */
export interface TlsPaths {
  readonly certificate: string;
  readonly key: string;
}

/** A certificate and its key in files that somebody renews. */
export class TlsFiles {
  readonly #paths: TlsPaths;
  #identity: TlsIdentity;
  /** State of the files when they were read last, whether or not they could be used. */
  #seen: string;

  private constructor(paths: TlsPaths, seen: string, identity: TlsIdentity) {
    this.#paths = paths;
    this.#seen = seen;
    this.#identity = identity;
  }

  /** @throws Error with a message for the operator */
  static async open(paths: TlsPaths): Promise<TlsFiles> {
    try {
      return new TlsFiles(paths, await looksOf(paths), await readIdentity(paths));
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
   * Reads the files again where they have changed since, or always.
   * @returns what is in them now; undefined where nothing has changed
   * @throws Error, once for each change, where they cannot be used: the identity stays what it was
   */
  async renew({ always = false } = {}): Promise<TlsIdentity | undefined> {
    const looks = await looksOf(this.#paths);
    if (looks === this.#seen && !always) return undefined;
    // Taken down before the reading: a file that changes meanwhile is read again the next time.
    this.#seen = looks;
    const identity = await readIdentity(this.#paths);
    if (identity.expiresAt * 1000 <= Date.now())
      throw Object.assign(new Error('the new certificate has expired'), { code: 'CERT_HAS_EXPIRED' });
    this.#identity = identity;
    return identity;
  }
}

/** Other files under the same names, as a rename or a platform's links bring them, look different too. */
async function looksOf({ certificate, key }: TlsPaths): Promise<string> {
  const infos = await Promise.all([certificate, key].map((path) => stat(path, { bigint: true })));
  return infos.map(({ dev, ino, size, mtimeNs }) => [dev, ino, size, mtimeNs].join(':')).join(' ');
}

/** @throws Error where the two do not belong together, or are not what they should be */
async function readIdentity(paths: TlsPaths): Promise<TlsIdentity> {
  const [certificate, key] = await Promise.all([readFile(paths.certificate), readFile(paths.key)]);
  createSecureContext({ cert: certificate, key });
  return {
    certificate,
    key,
    expiresAt: Math.floor(Date.parse(new X509Certificate(certificate).validTo) / 1000),
  };
}
