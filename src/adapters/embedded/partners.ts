import { DomainError } from '../../domain/errors.js';
import type { Partner } from '../../domain/partner.js';
import type { KeyStore, PartnerStore } from '../../ports/stores.js';
import type { Transaction } from './commit-queue.js';
import { keyKey, partnerKey, partnerKeyKey, type RowKey, under } from './keys.js';
import type { Rows } from './rows.js';

export function partnerStore(rows: Rows): PartnerStore {
  return {
    createPartner: (partner) => rows.run((tx) => insert(tx, partnerKey(partner.partnerId), partner)),
    getPartner: async (partnerId) => rows.get(partnerKey(partnerId)),
    listPartners: async () => (await rows.entries<Partner>(under('partner'))).map(([, partner]) => partner),
  };
}

export function keyStore(rows: Rows): KeyStore {
  return {
    createKey: (key) =>
      rows.run((tx) => {
        insert(tx, keyKey(key.keyId), key);
        tx.put(partnerKeyKey(key.partnerId, key.createdAt, key.keyId), null);
      }),
    getKey: async (keyId) => rows.get(keyKey(keyId)),
  };
}

/** Writes a row that must be new, or the same as before: ids are drawn once, so an equal creation time is the same call again. */
function insert<Row extends { readonly createdAt: number; readonly name: string }>(tx: Transaction, key: RowKey<Row>, row: Row): void {
  const existing = tx.get(key);
  if (existing === undefined) tx.put(key, row);
  else if (existing.createdAt !== row.createdAt || existing.name !== row.name) throw new DomainError('conflict', 'This id is taken.');
}
