import { DomainError } from '../../../core/domain/errors.js';
import { type AuditEntry, type AuditVerification, AuditWalk } from '../../domain/audit.js';
import { isServiceLog } from '../../domain/service-logs.js';
import type { AuditHeads } from '../../ports/journals.js';
import type { Secrets } from '../../ports/secrets.js';
import type { AuditStore, PartnerStore } from '../../ports/stores.js';

/** The number of entries read at a time, so that a long log needs little memory. */
const PAGE = 1000;

export interface VerifyAuditDeps {
  readonly stores: AuditStore & PartnerStore;
  readonly heads: AuditHeads;
  readonly secrets: Secrets;
}

/** Checks a partner's log for any edit, deletion, reordering and truncation. */
export async function verifyAudit(
  { stores, heads, secrets }: VerifyAuditDeps,
  { partnerId }: { readonly partnerId: string },
): Promise<AuditVerification> {
  // The head is read first. Entries appended meanwhile put the log ahead of its head, which is allowed.
  const head = await heads.get(partnerId);
  if (head === undefined && !isServiceLog(partnerId) && (await stores.getPartner(partnerId)) === undefined)
    throw new DomainError('not_found', 'There is no such partner.');
  const walk = new AuditWalk(
    secrets.all('audit').map(({ key }) => key),
    head,
  );
  for (let from = 1; ; ) {
    const page = await stores.readAudit(partnerId, from, PAGE);
    const last = page.at(-1);
    if (last === undefined || !page.every((entry) => walk.take(entry))) break;
    from = last.sequence + 1;
  }
  return walk.end();
}

/** Returns a range of a partner's log, oldest entry first. */
export async function readAudit(
  { stores }: { readonly stores: AuditStore & PartnerStore },
  {
    partnerId,
    fromSequence,
    limit,
  }: { readonly partnerId: string; readonly fromSequence: number; readonly limit: number },
): Promise<readonly AuditEntry[]> {
  if (!isServiceLog(partnerId) && (await stores.getPartner(partnerId)) === undefined)
    throw new DomainError('not_found', 'There is no such partner.');
  return stores.readAudit(partnerId, fromSequence, limit);
}
