import type { AuditDraft, AuditEntry } from './audit.js';

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
  /** Lower-case hex SHA-256 of the certificate (DER). */
  readonly kid: string;
  /**
   * The start in unix seconds. Proofs registered earlier stay valid. Proofs of that second or later are not
   * accepted.
   */
  readonly from: number;
  readonly reason: RevocationReason;
  /** When the operator recorded the revocation, in unix seconds. */
  readonly at: number;
}

/** The name of the audit log of revocations. It cannot be a partner's id. */
export const SIGNERS_LOG = 'signers';

/** Returns the log entry of a revocation. */
export function revocationEntry({ kid, from, reason, at }: SignerRevocation): AuditDraft {
  return {
    partnerId: SIGNERS_LOG,
    action: 'signer_revoked',
    at,
    actor: 'operator',
    subjects: [kid, String(from), reason],
  };
}

/** Returns the log entry that withdraws a revocation. @param at unix seconds */
export function reinstatementEntry(kid: string, at: number): AuditDraft {
  return { partnerId: SIGNERS_LOG, action: 'signer_reinstated', at, actor: 'operator', subjects: [kid] };
}

/** Applies an entry of the log of signers. The last entry about a leaf wins. */
export function takeSignerEntry(
  revocations: Map<string, SignerRevocation>,
  { action, subjects, at }: AuditEntry,
): void {
  const [kid, from, reason] = subjects;
  if (kid === undefined) return;
  if (action === 'signer_reinstated') revocations.delete(kid);
  if (action === 'signer_revoked')
    revocations.set(kid, {
      kid,
      from: Number(from),
      reason: REVOCATION_REASONS.find((known) => known === reason) ?? 'unspecified',
      at,
    });
}

/** Returns whether the revocation of a leaf covers a proof registered at `time` (unix seconds). */
export function isRevokedAt(revocation: SignerRevocation | undefined, time: number): boolean {
  return revocation !== undefined && time >= revocation.from;
}
