import { defined } from '../../../core/domain/defined.js';
import { DomainError } from '../../../core/domain/errors.js';
import type { ResultOf } from '../../contract/results.js';
import { keyStatus, type PartnerKey } from '../../domain/partner.js';
import type { KeyStore, PartnerStore } from '../../ports/stores.js';
import type { Clock } from '../../ports/system.js';
import type { Caller } from '../caller.js';
import { type Cursors, cutPage } from '../page.js';
import type { Plans } from '../partners/plans.js';

/** The metadata of a key. It contains neither the secret nor its hash. */
export type KeyEntry = ResultOf<'revokeKey'>;

const DEFAULT_LIMIT = 50;

/** Returns the partner's keys: one page if `limit` or `cursor` is given, otherwise all of them. */
export async function listKeys(
  deps: { readonly stores: KeyStore; readonly cursors: Cursors; readonly clock: Clock },
  caller: Caller,
  query: { readonly limit?: number; readonly cursor?: string },
): Promise<{ readonly keys: readonly KeyEntry[]; readonly nextCursor?: string }> {
  const { partnerId, plan } = caller;
  const now = Math.floor(deps.clock.now() / 1000);
  if (query.limit === undefined && query.cursor === undefined) {
    return {
      keys: await keyEntries(deps.stores, partnerId, await deps.stores.listKeys(partnerId), plan.name, now),
    };
  }
  const scope = { partnerId, route: 'GET /partner/keys', filter: [] };
  const after = query.cursor === undefined ? undefined : deps.cursors.read(scope, query.cursor);
  const limit = query.limit ?? DEFAULT_LIMIT;
  // One entry more than the page shows whether another page follows.
  const found = await deps.stores.listKeys(
    partnerId,
    defined({ after: after && { createdAt: after.createdAt, keyId: after.id }, limit: limit + 1 }),
  );
  const { entries, last } = cutPage(found, limit);
  return defined({
    keys: await keyEntries(deps.stores, partnerId, entries, plan.name, now),
    nextCursor: last && deps.cursors.write(scope, { createdAt: last.createdAt, id: last.keyId }),
  });
}

/** Returns every key of a partner, for the operator. */
export async function listPartnerKeys(
  {
    stores,
    plans,
    clock,
  }: { readonly stores: KeyStore & PartnerStore; readonly plans: Plans; readonly clock: Clock },
  partnerId: string,
): Promise<readonly KeyEntry[]> {
  const partner = await stores.getPartner(partnerId);
  if (partner === undefined) throw new DomainError('not_found', 'There is no such partner.');
  const now = Math.floor(clock.now() / 1000);
  const { plan } = await plans.view(partner);
  return keyEntries(stores, partnerId, await stores.listKeys(partnerId), plan, now);
}

export async function keyEntries(
  stores: KeyStore,
  partnerId: string,
  keys: readonly PartnerKey[],
  plan: string,
  now: number,
): Promise<readonly KeyEntry[]> {
  const uses = await stores.getKeyUses(
    partnerId,
    keys.map((key) => key.keyId),
  );
  return keys.map((key) =>
    defined({
      keyId: key.keyId,
      name: key.name,
      status: keyStatus(key, now),
      scopes: key.scopes,
      plan,
      createdAt: key.createdAt,
      expiresAt: key.expiresAt,
      lastUsedAt: uses.get(key.keyId),
      signed: key.publicKey === undefined ? undefined : (true as const),
    }),
  );
}
