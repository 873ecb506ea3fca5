import type { AuditEntry } from '../../domain/audit.js';
import { DomainError } from '../../domain/errors.js';
import { SIGNERS_LOG } from '../../domain/signer-revocation.js';
import type { AuditStore, PartnerStore } from '../../ports/stores.js';

/** A stretch of a partner's log, oldest first. */
export async function readAudit(
  stores: AuditStore & PartnerStore,
  {
    partnerId,
    fromSequence,
    limit,
  }: { readonly partnerId: string; readonly fromSequence: number; readonly limit: number },
): Promise<readonly AuditEntry[]> {
  if (partnerId !== SIGNERS_LOG && (await stores.getPartner(partnerId)) === undefined)
    throw new DomainError('not_found', 'There is no such partner.');
  return stores.readAudit(partnerId, fromSequence, limit);
}
