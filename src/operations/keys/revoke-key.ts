import { defined } from '../../domain/defined.js';
import { DomainError } from '../../domain/errors.js';
import { keyStatus } from '../../domain/partner.js';
import type { KeyStore, PartnerStore } from '../../ports/stores.js';
import type { Clock } from '../../ports/system.js';
import type { Caller } from '../caller.js';
import type { Plans } from '../partners/plans.js';
import { type KeyEntry, keyEntries } from './list-keys.js';

/** Keys looked at in one step for another active one. */
const STEP = 100;

/**
 * A partner revokes a key of its own, at once and for good; a repeat changes nothing. An active key may
 * revoke every key of its partner, itself while another one is active. A rotated key may revoke itself alone:
 * a leaked one must not take its successor from its owner.
 * @throws DomainError `forbidden` / `key_expiring`, `conflict` / `last_active_key`, `not_found`
 */
export async function revokeOwnKey(
  { stores, clock }: { readonly stores: KeyStore; readonly clock: Clock },
  caller: Caller,
  { keyId }: { readonly keyId: string },
): Promise<KeyEntry> {
  const { partnerId } = caller;
  const now = Math.floor(clock.now() / 1000);
  // Read again: since the call was let in its key may have been rotated.
  const calling = await stores.getKey(caller.keyId);
  const status = calling === undefined ? 'revoked' : keyStatus(calling, now);
  if (status === 'revoked' || status === 'expired')
    throw new DomainError('forbidden', 'The API key is missing or not valid.');
  if (keyId !== caller.keyId && status === 'expiring') {
    throw new DomainError('forbidden', 'A key that was rotated may revoke itself alone.', {
      reason: 'key_expiring',
    });
  }
  if (
    keyId === caller.keyId &&
    status === 'active' &&
    !(await hasOtherActive(stores, partnerId, keyId, now))
  ) {
    throw new DomainError(
      'conflict',
      'This is the last active key; rotate it first, and revoke it with its successor.',
      { reason: 'last_active_key' },
    );
  }
  const outcome = await stores.revokeKey(partnerId, keyId, now, {
    partnerId,
    action: 'key_revoked',
    at: now,
    actor: caller.keyId,
    subjects: [keyId],
  });
  const key = outcome === 'not_found' ? undefined : await stores.getKey(keyId);
  if (key === undefined) throw new DomainError('not_found', 'There is no such key.');
  const [entry] = await keyEntries(stores, partnerId, [key], caller.plan.name, now);
  return entry!;
}

async function hasOtherActive(
  stores: KeyStore,
  partnerId: string,
  keyId: string,
  now: number,
): Promise<boolean> {
  let after: { readonly createdAt: number; readonly keyId: string } | undefined;
  for (;;) {
    const keys = await stores.listKeys(partnerId, defined({ limit: STEP, after }));
    if (keys.some((key) => key.keyId !== keyId && keyStatus(key, now) === 'active')) return true;
    const last = keys.at(-1);
    if (keys.length < STEP || last === undefined) return false;
    after = { createdAt: last.createdAt, keyId: last.keyId };
  }
}

/**
 * The operator revokes a partner's key, at once and for good; a repeat changes nothing. A successor that the
 * key was rotated to is a key of its own.
 */
export async function revokeKey(
  {
    stores,
    plans,
    clock,
  }: { readonly stores: KeyStore & PartnerStore; readonly plans: Plans; readonly clock: Clock },
  { partnerId, keyId }: { readonly partnerId: string; readonly keyId: string },
): Promise<KeyEntry> {
  const now = Math.floor(clock.now() / 1000);
  const partner = await stores.getPartner(partnerId);
  const outcome = await stores.revokeKey(partnerId, keyId, now, {
    partnerId,
    action: 'key_revoked',
    at: now,
    actor: 'operator',
    subjects: [keyId],
  });
  const key = outcome === 'not_found' ? undefined : await stores.getKey(keyId);
  if (key === undefined || partner === undefined)
    throw new DomainError('not_found', 'There is no such key of this partner.');
  const { plan } = await plans.view(partner);
  const [entry] = await keyEntries(stores, partnerId, [key], plan, now);
  return entry!;
}
