import type { Clock } from '../../ports/clock.js';
import type { KeyStore } from '../../ports/stores.js';
import type { Cursors } from '../cursors.js';
import { cutPage } from '../cut-page.js';
import type { Caller, KeyEntry } from '../operations.js';
import { requireScope } from '../require-scope.js';
import { keyEntries } from './key-entry.js';

const DEFAULT_LIMIT = 50;

export interface ListKeysDeps {
  readonly stores: KeyStore;
  readonly cursors: Cursors;
  readonly clock: Clock;
}

/**
 * "With neither `limit` nor `cursor` returns the complete inventory. Supplying either one activates bounded
 * pagination."
 */
export async function listKeys(
  deps: ListKeysDeps,
  caller: Caller,
  query: { readonly limit?: number; readonly cursor?: string },
): Promise<{ readonly keys: readonly KeyEntry[]; readonly nextCursor?: string }> {
  requireScope(caller, 'keys');
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
  // One more than asked for tells whether there is another page.
  const found = await deps.stores.listKeys(partnerId, {
    ...(after === undefined ? {} : { after: { createdAt: after.createdAt, keyId: after.id } }),
    limit: limit + 1,
  });
  const { entries, last } = cutPage(found, limit);
  return {
    keys: await keyEntries(deps.stores, partnerId, entries, plan.name, now),
    ...(last === undefined
      ? {}
      : { nextCursor: deps.cursors.write(scope, { createdAt: last.createdAt, id: last.keyId }) }),
  };
}
