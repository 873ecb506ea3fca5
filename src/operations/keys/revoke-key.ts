import { DomainError } from '../../domain/errors.js';
import type { KeyEntry } from '../operations.js';
import { keyEntries } from './key-entry.js';
import type { PartnerKeysDeps } from './list-partner-keys.js';

/**
 * At once and for good; a repeat changes nothing. A successor that the key was rotated to is a key of its
 * own.
 */
export async function revokeKey(
  { stores, clock }: PartnerKeysDeps,
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
  const [entry] = await keyEntries(stores, partnerId, [key], partner.plan, now);
  return entry!;
}
