/** What a listener shows of itself, and proves with its key. */
export interface TlsIdentity {
  /** PEM: the certificate, and behind it those that lead to an authority. */
  readonly certificate: Buffer;
  /** PEM. */
  readonly key: Buffer;
  /** When the certificate ends, in unix seconds. */
  readonly expiresAt: number;
}
