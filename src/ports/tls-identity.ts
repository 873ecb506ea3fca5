/** Certificate that a listener shows, and the key that proves it. */
export interface TlsIdentity {
  /** PEM: the certificate, and behind it those that lead to an authority. */
  readonly certificate: Buffer;
  /** PEM. */
  readonly key: Buffer;
  /** End of the certificate, in unix seconds. */
  readonly expiresAt: number;
}
