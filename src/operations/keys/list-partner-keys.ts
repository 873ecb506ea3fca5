import { DomainError } from '../../domain/errors.js';
import type { Clock } from '../../ports/clock.js';
import type { KeyStore, PartnerStore } from '../../ports/stores.js';
import type { KeyEntry } from '../operations.js';
import { keyEntries } from './key-entry.js';

export interface PartnerKeysDeps {
  readonly stores: KeyStore & PartnerStore;
  readonly clock: Clock;
}

export async function listPartnerKeys(
  { stores, clock }: PartnerKeysDeps,
  partnerId: string,
): Promise<readonly KeyEntry[]> {
  const partner = await stores.getPartner(partnerId);
  if (partner === undefined) throw new DomainError('not_found', 'There is no such partner.');
  return keyEntries(
    stores,
    partnerId,
    await stores.listKeys(partnerId),
    partner.plan,
    Math.floor(clock.now() / 1000),
  );
}
