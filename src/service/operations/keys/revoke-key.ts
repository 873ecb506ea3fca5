import { defined } from '../../../core/domain/defined.js';
import { DomainError } from '../../../core/domain/errors.js';
import type { RevocationRefusal } from '../../domain/key-revocation.js';
import type { KeyStore, PartnerStore } from '../../ports/stores.js';
import type { Clock } from '../../ports/system.js';
import { type CallSignal, namedActor } from '../attributed.js';
import type { Caller } from '../caller.js';
import type { Plans } from '../partners/plans.js';
import { invalidKey } from './authenticate.js';
import { type KeyEntry, keyEntries } from './list-keys.js';

export interface RevokeRequest {
  readonly keyId: string;
  /** True to revoke every successor of the key as well. */
  readonly successors?: boolean;
}

/**
 * Revokes a key of the calling partner, immediately and permanently. A repeated call changes nothing. An
 * active key may revoke every key of its partner, as long as a key stays active. A rotated key may revoke
 * only itself, so that a leaked key cannot revoke its successor. The store checks this in the step that
 * revokes.
 * @throws DomainError `forbidden` / `key_expiring`, `conflict` / `last_active_key`, `not_found`
 */
export async function revokeOwnKey(
  {
    stores,
    clock,
    signal,
  }: { readonly stores: KeyStore; readonly clock: Clock; readonly signal?: CallSignal },
  { partnerId, keyId: callingKeyId, plan }: Caller,
  { keyId, successors }: RevokeRequest,
): Promise<KeyEntry> {
  const at = Math.floor(clock.now() / 1000);
  const revoked = await stores.revokeKey(
    defined({
      partnerId,
      keyId,
      at,
      callingKeyId,
      requestId: signal?.requestId,
      withSuccessors: successors === true || undefined,
    }),
  );
  if (!('keyIds' in revoked)) throw refusalOf(revoked.outcome);
  return revokedKey(stores, partnerId, revoked.keyIds, plan.name, { at, successors });
}

/**
 * Revokes a partner's key for the operator, immediately and permanently. A repeated call changes nothing. The
 * successor of a rotated key stays valid unless the call names successors.
 */
export async function revokeKey(
  {
    stores,
    plans,
    clock,
    signal,
  }: {
    readonly stores: KeyStore & PartnerStore;
    readonly plans: Plans;
    readonly clock: Clock;
    readonly signal?: CallSignal;
  },
  { partnerId, keyId, successors }: RevokeRequest & { readonly partnerId: string },
): Promise<KeyEntry> {
  const at = Math.floor(clock.now() / 1000);
  const partner = await stores.getPartner(partnerId);
  const revoked = await stores.revokeKey(
    defined({
      partnerId,
      keyId,
      at,
      operator: namedActor(signal),
      requestId: signal?.requestId,
      withSuccessors: successors === true || undefined,
    }),
  );
  if (!('keyIds' in revoked) || partner === undefined)
    throw new DomainError('not_found', 'There is no such key of this partner.');
  const { plan } = await plans.view(partner);
  return revokedKey(stores, partnerId, revoked.keyIds, plan, { at, successors });
}

function refusalOf(outcome: RevocationRefusal | 'not_found'): DomainError {
  switch (outcome) {
    case 'not_found':
      return new DomainError('not_found', 'There is no such key.');
    case 'calling_key_ended':
      return invalidKey();
    case 'key_expiring':
      return new DomainError('forbidden', 'A rotated key may revoke only itself.', { reason: outcome });
    case 'last_active_key':
      return new DomainError(
        'conflict',
        'No active key would be left. Rotate the key first. Then revoke the old key with the new one.',
        { reason: outcome },
      );
  }
}

async function revokedKey(
  stores: KeyStore,
  partnerId: string,
  [keyId, ...revokedSuccessors]: readonly string[],
  plan: string,
  { at, successors }: { readonly at: number; readonly successors: boolean | undefined },
): Promise<KeyEntry> {
  const key = await stores.getKey(keyId!);
  const [entry] = await keyEntries(stores, partnerId, [key!], plan, at);
  return { ...entry!, ...(successors === true && { revokedSuccessors }) };
}
