import type { PartnerKey } from '../../domain/partner.js';
import { keyStatus } from '../../domain/partner.js';
import type { KeyStore } from '../../ports/stores.js';
import type { KeyEntry } from '../operations.js';

/** Key metadata: never a secret, nor the hash of one. */
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
  return keys.map((key) => {
    const lastUsedAt = uses.get(key.keyId);
    return {
      keyId: key.keyId,
      name: key.name,
      status: keyStatus(key, now),
      plan,
      createdAt: key.createdAt,
      ...(key.expiresAt === undefined ? {} : { expiresAt: key.expiresAt }),
      ...(lastUsedAt === undefined ? {} : { lastUsedAt }),
      ...(key.publicKey === undefined ? {} : { signed: true as const }),
    };
  });
}
