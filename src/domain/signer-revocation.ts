import type { AuditDraft, AuditEntry } from './audit.js';

/**
 * Reasons to revoke a leaf (RFC 5280 section 5.3.1, those that can befall a signing leaf). No free text: the
 * log of signers holds none.
 */
export const REVOCATION_REASONS = [
  'unspecified',
  'key_compromise',
  'superseded',
  'cessation_of_operation',
] as const;
export type RevocationReason = (typeof REVOCATION_REASONS)[number];

/** Revocation of a leaf of the service: the leaf is not believed any more. */
export interface SignerRevocation {
  /** Lower-case hex SHA-256 of the certificate (DER). */
  readonly kid: string;
  /**
   * Unix seconds. A proof registered earlier stays what it was; one of that second or later is not believed.
   */
  readonly from: number;
  readonly reason: RevocationReason;
  /** Unix seconds at which the operator said so. */
  readonly at: number;
}

/** Name of the audit log of revocations: no partner's id looks like it. */
export const SIGNERS_LOG = 'signers';

/** Entry of a revocation in the log. */
export function revocationEntry({ kid, from, reason, at }: SignerRevocation): AuditDraft {
  return {
    partnerId: SIGNERS_LOG,
    action: 'signer_revoked',
    at,
    actor: 'operator',
    subjects: [kid, String(from), reason],
  };
}

/** Entry in the log of a revocation that is taken back. @param at unix seconds */
export function reinstatementEntry(kid: string, at: number): AuditDraft {
  return { partnerId: SIGNERS_LOG, action: 'signer_reinstated', at, actor: 'operator', subjects: [kid] };
}

/** Takes an entry of the log of signers: the last entry about a leaf holds. */
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

/** Tells whether a proof registered at `time` (unix seconds) under a leaf is not believed. */
export function isRevokedAt(revocation: SignerRevocation | undefined, time: number): boolean {
  return revocation !== undefined && time >= revocation.from;
}
