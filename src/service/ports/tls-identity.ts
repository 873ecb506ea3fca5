/** The certificate of a listener and its private key. */
export interface TlsIdentity {
  /** The certificate, followed by its chain up to an authority, as PEM. */
  readonly certificate: Buffer;
  /** The private key, as PEM. */
  readonly key: Buffer;
  /** The start of the certificate's validity, in unix seconds. */
  readonly beginsAt: number;
  /** The end of the certificate's validity, in unix seconds. */
  readonly expiresAt: number;
}
