import { REVOCATION_REASONS, type SignerRevocation } from '../../core/domain/signer-revocation.js';
import type { AuditDraft, AuditEntry } from './audit.js';

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
