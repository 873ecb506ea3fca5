import { defined } from '../../../core/domain/defined.js';
import { DomainError } from '../../../core/domain/errors.js';
import type { AuditDraft } from '../../domain/audit.js';
import { type KeyRevocation, needsAnotherActive, refuseCallingKey } from '../../domain/key-revocation.js';
import { keyStatus, type Partner, type PartnerKey } from '../../domain/partner.js';
import type {
  KeyStore,
  PartnerStore,
  RevocationOutcome,
  Rotation,
  RotationReplay,
} from '../../ports/stores.js';
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
    getPartner: async (partnerId) => rows.getKept(partnerKey(partnerId)),
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

    getKey: async (keyId) => rows.getKept(keyKey(keyId)),

    async listKeys(partnerId, page) {
      const all = under('partner-key', partnerId);
      const range =
        page?.after === undefined
          ? all
          : following(all, partnerKeyKey(partnerId, page.after.createdAt, page.after.keyId));
      const entries = await rows.keys(range, page?.limit ?? -1);
      // A key's row is never removed.
      return entries.map((entry) => rows.getKept(keyKey(lastPart(entry)))!);
    },

    async revokeKey(revocation) {
      for (let otherKeyId: string | undefined; ; ) {
        const revoked = await log.run((tx, append) => revokeIn(tx, append, revocation, otherKeyId));
        if ('outcome' in revoked) return revoked;
        // A transaction cannot read ranges. It reads the key that is found here again.
        otherKeyId = findActive(
          rows,
          await rows.keys(under('partner-key', revocation.partnerId), -1),
          revoked,
        );
        if (otherKeyId === undefined) return { outcome: 'last_active_key' };
      }
    },

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
          // A damaged row is replaced: it must not stop the times of all other keys.
          if ((tx.getSound(key)?.at ?? -1) < at) tx.put(key, { at });
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

/** Needs another active key than these, which the revocation ends. */
interface NeedsAnother {
  readonly ended: readonly PartnerKey[];
}

/** @param otherKeyId a key that may remain active, if the revocation needs one */
function revokeIn(
  tx: Transaction,
  append: (draft: AuditDraft) => void,
  revocation: KeyRevocation,
  otherKeyId: string | undefined,
): RevocationOutcome | NeedsAnother {
  const { partnerId, keyId, at, callingKeyId, operator, requestId, withSuccessors } = revocation;
  const calling = callingKeyId === undefined ? undefined : tx.get(keyKey(callingKeyId));
  const refusal = callingKeyId === undefined ? undefined : refuseCallingKey(calling, revocation);
  if (refusal !== undefined) return { outcome: refusal };
  const keys: PartnerKey[] = [];
  for (let next: string | undefined = keyId; next !== undefined; ) {
    const key = tx.get(keyKey(next));
    if (key?.partnerId !== partnerId) return { outcome: 'not_found' };
    keys.push(key);
    next = withSuccessors === true ? tx.get(rotationKey(next))?.newKeyId : undefined;
  }
  const keyIds = keys.map((key) => key.keyId);
  const ended = keys.filter((key) => key.revokedAt === undefined);
  if (ended.length === 0) return { outcome: 'already_revoked', keyIds };
  if (calling !== undefined && needsAnotherActive(calling, ended, revocation)) {
    const other =
      otherKeyId === undefined || keyIds.includes(otherKeyId) ? undefined : tx.get(keyKey(otherKeyId));
    if (other === undefined || keyStatus(other, at) !== 'active') return { ended: keys };
  }
  for (const key of ended) {
    tx.put(keyKey(key.keyId), { ...key, revokedAt: at });
    append({
      partnerId,
      action: 'key_revoked',
      at,
      actor: callingKeyId ?? operator ?? 'operator',
      subjects: [key.keyId],
      ...defined({ requestId }),
    });
  }
  return { outcome: 'revoked', keyIds };
}

/**
 * Returns an active key other than those that end, the newest first.
 * @param entries the index entries of the partner's keys, oldest first
 */
function findActive(rows: Rows, entries: readonly string[], { ended }: NeedsAnother): string | undefined {
  const listed = new Set(entries.map(lastPart));
  const isEnded = (keyId: string) => ended.some((key) => key.keyId === keyId);
  for (const keyId of [...listed].reverse()) {
    // A rotation may have come after the entries were read: its successor is not among them.
    for (let next: string | undefined = keyId; next !== undefined; ) {
      const key = rows.get(keyKey(next));
      if (key !== undefined && key.revokedAt === undefined && key.expiresAt === undefined && !isEnded(next))
        return next;
      next = rows.get(rotationKey(next))?.newKeyId;
      if (next !== undefined && listed.has(next)) break;
    }
  }
  return undefined;
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
