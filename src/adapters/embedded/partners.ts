import { defined } from '../../domain/defined.js';
import { DomainError } from '../../domain/errors.js';
import type { Partner } from '../../domain/partner.js';
import type { KeyStore, PartnerStore, Rotation, RotationReplay } from '../../ports/stores.js';
import type { AuditLog } from './audit-log.js';
import type { Transaction } from './commit-queue.js';
import {
  expiryKey,
  following,
  keyKey,
  keyUseKey,
  lastPart,
  partnerKey,
  partnerKeyKey,
  type RowKey,
  rotationKey,
  rotationReplayKey,
  under,
} from './keys.js';
import type { Rows } from './rows.js';

export function partnerStore(rows: Rows, log: AuditLog): PartnerStore {
  return {
    createPartner: (partner, audit) =>
      log.run((tx, append) => {
        if (insert(tx, partnerKey(partner.partnerId), partner)) append(audit);
      }),
    getPartner: async (partnerId) => rows.getOften(partnerKey(partnerId)),
    setSourceDetail: (partnerId, approval, audit) =>
      log.run((tx, append) => {
        const partner = tx.get(partnerKey(partnerId));
        if (partner === undefined) return 'not_found';
        const { sourceDetail, ...others } = partner;
        if (sourceDetail?.consentVersion === approval?.consentVersion) return 'unchanged';
        tx.put(partnerKey(partnerId), defined({ ...others, sourceDetail: approval }));
        append(audit);
        return 'changed';
      }),
    listPartners: async () => (await rows.entries<Partner>(under('partner'))).map(([, partner]) => partner),
  };
}

export function keyStore(rows: Rows, log: AuditLog): KeyStore {
  return {
    createKey: (key, audit) =>
      log.run((tx, append) => {
        if (!insert(tx, keyKey(key.keyId), key)) return;
        tx.put(partnerKeyKey(key.partnerId, key.createdAt, key.keyId), null);
        append(audit);
      }),

    getKey: async (keyId) => rows.getOften(keyKey(keyId)),

    async listKeys(partnerId, page) {
      const all = under('partner-key', partnerId);
      const range =
        page?.after === undefined
          ? all
          : following(all, partnerKeyKey(partnerId, page.after.createdAt, page.after.keyId));
      const entries = await rows.keys(range, page?.limit ?? -1);
      // A key's row is never removed.
      return entries.map((entry) => rows.get(keyKey(lastPart(entry)))!);
    },

    revokeKey: (partnerId, keyId, at, audit) =>
      log.run((tx, append) => {
        const key = tx.get(keyKey(keyId));
        if (key?.partnerId !== partnerId) return 'not_found';
        if (key.revokedAt !== undefined) return 'already_revoked';
        tx.put(keyKey(keyId), { ...key, revokedAt: at });
        append(audit);
        return 'revoked';
      }),

    async getRotation(keyId) {
      const rotation = rows.get(rotationKey(keyId));
      return rotation && withReplay(rotation, rows.get(rotationReplayKey(keyId)));
    },

    rotateKey: (rotation, successor, audit) =>
      log.run((tx, append) => {
        const key = tx.get(keyKey(rotation.keyId));
        if (key?.partnerId !== rotation.partnerId || key.revokedAt !== undefined) return undefined;
        const earlier = tx.get(rotationKey(rotation.keyId));
        if (earlier !== undefined) return withReplay(earlier, tx.get(rotationReplayKey(rotation.keyId)));
        if (!insert(tx, keyKey(successor.keyId), successor))
          throw new DomainError('conflict', 'This id is taken.');
        tx.put(partnerKeyKey(successor.partnerId, successor.createdAt, successor.keyId), null);
        tx.put(keyKey(rotation.keyId), { ...key, expiresAt: rotation.previousKeyExpiresAt });
        const { replay, ...kept } = rotation;
        tx.put(rotationKey(rotation.keyId), kept);
        if (replay !== undefined) {
          tx.put(rotationReplayKey(rotation.keyId), replay);
          tx.put(expiryKey(rotation.replayUntil, rotationReplayKey(rotation.keyId)), null);
        }
        append(audit);
        return rotation;
      }),

    touchKeys: (uses) =>
      rows.run((tx) => {
        for (const { partnerId, keyId, at } of uses) {
          const key = keyUseKey(partnerId, keyId);
          if ((tx.get(key)?.at ?? -1) < at) tx.put(key, { at });
        }
      }),

    async getKeyUses(partnerId, keyIds) {
      const uses = new Map<string, number>();
      for (const keyId of keyIds) {
        const use = rows.get(keyUseKey(partnerId, keyId));
        if (use !== undefined) uses.set(keyId, use.at);
      }
      return uses;
    },
  };
}

function withReplay(rotation: Rotation, replay: RotationReplay | undefined): Rotation {
  return replay === undefined ? rotation : { ...rotation, replay };
}

/**
 * Writes a row whose id must be new. A row with the same owner, name and creation time is of the same call:
 * ids are drawn once.
 * @returns whether the row is new
 * @throws DomainError `conflict` where the row is of another call
 */
function insert<
  Row extends { readonly partnerId: string; readonly createdAt: number; readonly name: string },
>(tx: Transaction, key: RowKey<Row>, row: Row): boolean {
  const existing = tx.get(key);
  if (existing === undefined) {
    tx.put(key, row);
    return true;
  }
  if (
    existing.partnerId === row.partnerId &&
    existing.createdAt === row.createdAt &&
    existing.name === row.name
  )
    return false;
  throw new DomainError('conflict', 'This id is taken.');
}
