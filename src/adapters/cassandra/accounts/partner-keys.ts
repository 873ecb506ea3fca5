import { DomainError } from '../../../domain/errors.js';
import type { PartnerKey } from '../../../domain/partner.js';
import type { KeyStore } from '../../../ports/stores.js';
import type { Intents } from '../commit/intents.js';
import type { Blobs } from '../driver/blobs.js';
import { KeyedMutex } from '../driver/keyed-mutex.js';
import type { RowCodes } from '../driver/row-codes.js';
import { numberIn, type Session, textIn } from '../driver/session.js';
import { keyRotation } from './key-rotation.js';
import { KeyRows } from './key-rows.js';

// The code in the condition stands for all columns that it covers: a rotation in between would make the new
// code wrong.
const REVOKE =
  'UPDATE api_key SET revoked_at = ?, revoke_op = ?, mac = ? WHERE key_id = ? IF partner_id = ? AND revoke_op = null AND revoked_at = null AND mac = ?';
const LIST =
  'SELECT key_id, created_at FROM key_by_partner WHERE partner_id = ? AND (created_at, key_id) > (?, ?) LIMIT ?';
// The time of use is the timestamp, so the latest use wins whatever arrives last.
const TOUCH = 'INSERT INTO key_use (partner_id, key_id, used_at) VALUES (?, ?, ?) USING TIMESTAMP ?';
const USES = 'SELECT key_id, used_at FROM key_use WHERE partner_id = ? AND key_id IN ?';

/** Keys read in one page where the caller sets no limit, and asked for in one statement. */
const STEP = 100;

interface KeyTarget {
  readonly keyId: string;
}

export function keyStore(session: Session, intents: Intents, blobs: Blobs, codes: RowCodes): KeyStore {
  const mutex = new KeyedMutex();
  const rows = new KeyRows(session, codes);
  const rotations = keyRotation(session, intents, blobs, rows);
  const creating = intents.operations<KeyTarget>({
    kind: 'key_created',
    isDecided: ({ op, target }) => rows.isDecidedBy(op, 'create_op', target.keyId),
    follow: async ({ target }) => rows.index(rows.keyOf((await rows.get(target.keyId))!)),
  });
  const revoking = intents.operations<KeyTarget>({
    kind: 'key_revoked',
    isDecided: ({ op, target }) => rows.isDecidedBy(op, 'revoke_op', target.keyId),
  });

  return {
    async createKey(key, audit) {
      const { applied, current } = await creating.commit({ keyId: key.keyId }, audit, (transact, { op }) =>
        transact(rows.insertion(key, op)),
      );
      if (applied) return;
      // Ids are drawn once, so an equal creation time is the same call again.
      const existing = current && rows.keyOf(current);
      if (
        existing?.partnerId !== key.partnerId ||
        existing.createdAt !== key.createdAt ||
        existing.name !== key.name
      )
        throw new DomainError('conflict', 'This id is taken.');
    },

    async getKey(keyId) {
      const row = await rows.get(keyId);
      return row === undefined ? undefined : rows.keyOf(row);
    },

    async listKeys(partnerId, page) {
      const keys: PartnerKey[] = [];
      const limit = page?.limit ?? Number.POSITIVE_INFINITY;
      let after = page?.after ?? { createdAt: -1, keyId: '' };
      while (keys.length < limit) {
        const asked = Math.min(STEP, limit - keys.length);
        const entries = (await session.rows(LIST, [partnerId, after.createdAt, after.keyId, asked])).map(
          (row) => ({ createdAt: numberIn(row, 'created_at')!, keyId: textIn(row, 'key_id')! }),
        );
        const found = await Promise.all(entries.map(({ keyId }) => rows.get(keyId)));
        for (const row of found) if (row !== undefined) keys.push(rows.keyOf(row));
        if (entries.length < asked) break;
        after = entries.at(-1)!;
      }
      return keys;
    },

    revokeKey: (partnerId, keyId, at, audit) =>
      mutex.run(keyId, async () => {
        for (;;) {
          const row = await rows.get(keyId);
          if (row === undefined || textIn(row, 'partner_id') !== partnerId) return 'not_found';
          const key = rows.keyOf(row);
          // A revocation that is seen has been decided.
          if (key.revokedAt !== undefined) return 'already_revoked';
          const code = rows.codeOf({ ...key, revokedAt: at });
          const { applied, current } = await revoking.commit({ keyId }, audit, (transact, { op }) =>
            transact({
              query: REVOKE,
              params: [at, op, code, keyId, partnerId, textIn(row, 'mac') ?? null],
              operation: { column: 'revoke_op', id: op },
            }),
          );
          if (applied) return 'revoked';
          if (current === undefined || textIn(current, 'revoke_op') !== undefined) return 'already_revoked';
        }
      }),

    getRotation: rotations.getRotation,
    rotateKey: (rotation, successor, audit) =>
      mutex.run(rotation.keyId, () => rotations.rotateKey(rotation, successor, audit)),

    async touchKeys(uses) {
      for (let from = 0; from < uses.length; from += STEP) {
        await Promise.all(
          uses
            .slice(from, from + STEP)
            .map(({ partnerId, keyId, at }) => session.write(TOUCH, [partnerId, keyId, at, at * 1_000_000])),
        );
      }
    },

    async getKeyUses(partnerId, keyIds) {
      const uses = new Map<string, number>();
      for (let from = 0; from < keyIds.length; from += STEP) {
        for (const row of await session.rows(USES, [partnerId, keyIds.slice(from, from + STEP)]))
          uses.set(textIn(row, 'key_id')!, numberIn(row, 'used_at')!);
      }
      return uses;
    },
  };
}
