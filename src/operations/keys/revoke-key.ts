import { defined } from '../../domain/defined.js';
import { DomainError } from '../../domain/errors.js';
import { keyStatus } from '../../domain/partner.js';
import type { KeyStore, PartnerStore } from '../../ports/stores.js';
import type { Clock } from '../../ports/system.js';
import type { Caller } from '../caller.js';
import type { Plans } from '../partners/plans.js';
import { invalidKey } from './authenticate.js';
import { type KeyEntry, keyEntries } from './list-keys.js';

/** The number of keys read at a time while searching for another active key. */
const STEP = 100;

/**
 * Revokes a key of the calling partner, immediately and permanently. A repeated call changes nothing. An
 * active key may revoke every key of its partner. It may revoke itself only while another key is active. A
 * rotated key may revoke only itself, so that a leaked key cannot revoke its successor.
 * @throws DomainError `forbidden` / `key_expiring`, `conflict` / `last_active_key`, `not_found`
 */
export async function revokeOwnKey(
  { stores, clock }: { readonly stores: KeyStore; readonly clock: Clock },
  caller: Caller,
  { keyId }: { readonly keyId: string },
): Promise<KeyEntry> {
  const { partnerId } = caller;
  const now = Math.floor(clock.now() / 1000);
  // Read again: the key may have been rotated or revoked since the call was authenticated.
  const calling = await stores.getKey(caller.keyId);
  const status = calling === undefined ? 'revoked' : keyStatus(calling, now);
  if (status === 'revoked' || status === 'expired') throw invalidKey();
  if (keyId !== caller.keyId && status === 'expiring') {
    throw new DomainError('forbidden', 'A rotated key may revoke only itself.', {
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
      'This is the last active key. Rotate it first. Then revoke the old key with the new one.',
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
 * Revokes a partner's key for the operator, immediately and permanently. A repeated call changes nothing. The
 * successor of a rotated key is a separate key and stays valid.
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
