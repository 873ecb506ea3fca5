/**
 * The reasons to revoke a leaf: the reasons of RFC 5280 section 5.3.1 that apply to a signing leaf. Free text
 * is not possible, because the log of signers must not contain any.
 */
export const REVOCATION_REASONS = [
  'unspecified',
  'key_compromise',
  'superseded',
  'cessation_of_operation',
] as const;
export type RevocationReason = (typeof REVOCATION_REASONS)[number];

/** The revocation of a leaf of the service, which is then no longer trusted. */
export interface SignerRevocation {
  /** The SHA-256 of the certificate (DER), in lower-case hex. */
  readonly kid: string;
  /**
   * The start in unix seconds. Proofs registered earlier stay valid. Proofs of that second or later are not
   * accepted.
   */
  readonly from: number;
  readonly reason: RevocationReason;
  /** The time when the operator recorded the revocation, in unix seconds. */
  readonly at: number;
}

/** Returns whether the revocation of a leaf covers a proof registered at `time` (unix seconds). */
export function isRevokedAt(revocation: SignerRevocation | undefined, time: number): boolean {
  return revocation !== undefined && time >= revocation.from;
}
