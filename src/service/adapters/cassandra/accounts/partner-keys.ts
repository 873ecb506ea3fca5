import { DomainError } from '../../../../core/domain/errors.js';
import type { PartnerKey } from '../../../domain/partner.js';
import type { KeyStore } from '../../../ports/stores.js';
import type { Decisions } from '../commit/decisions.js';
import type { Blobs } from '../driver/blobs.js';
import { KeyedMutex } from '../driver/keyed-mutex.js';
import type { RowCodes } from '../driver/row-codes.js';
import { numberIn, type Row, type Session, textIn } from '../driver/session.js';
import { keyRevocation } from './key-revocation.js';
import { keyRotation } from './key-rotation.js';
import { KeyRows } from './key-rows.js';

const LIST =
  'SELECT key_id, created_at FROM key_by_partner WHERE partner_id = ? AND (created_at, key_id) > (?, ?) LIMIT ?';
// The time of use is the timestamp, so the latest use wins in any order of arrival.
const TOUCH = 'INSERT INTO key_use (partner_id, key_id, used_at) VALUES (?, ?, ?) USING TIMESTAMP ?';
const USES = 'SELECT key_id, used_at FROM key_use WHERE partner_id = ? AND key_id IN ?';

/** Keys read in one page where the caller sets no limit, and asked for in one statement. */
const STEP = 100;

export function keyStore(session: Session, decisions: Decisions, blobs: Blobs, codes: RowCodes): KeyStore {
  const mutex = new KeyedMutex();
  const rows = new KeyRows(session, codes);
  const rotations = keyRotation(session, decisions, blobs, rows);
  const creating = decisions.operations<undefined>({
    kind: 'key_created',
    table: rows.table,
    follow: async (keyId) => rows.index(rows.keyOf((await rows.get(keyId))!)),
  });
  const listKeys: KeyStore['listKeys'] = async (partnerId, page) => {
    const listed: Row[] = [];
    const limit = page?.limit ?? Number.POSITIVE_INFINITY;
    let after = page?.after ?? { createdAt: -1, keyId: '' };
    while (listed.length < limit) {
      const asked = Math.min(STEP, limit - listed.length);
      const entries = (await session.rows(LIST, [partnerId, after.createdAt, after.keyId, asked])).map(
        (row) => ({ createdAt: numberIn(row, 'created_at')!, keyId: textIn(row, 'key_id')! }),
      );
      const found = await Promise.all(entries.map(({ keyId }) => rows.getListed(keyId)));
      listed.push(...found.filter((row) => row !== undefined));
      if (entries.length < asked) break;
      after = entries.at(-1)!;
    }
    const keys = listed.map((row) => rows.keyOf(row));
    const lacking = await rotations.lackingSuccessors(listed, new Set(keys.map(({ keyId }) => keyId)));
    if (lacking.length === 0) return keys;
    const from = page?.after;
    return [...keys, ...lacking.map((row) => rows.keyOf(row))]
      .filter((key) => from === undefined || inOrder(from, key) < 0)
      .toSorted(inOrder)
      .slice(0, limit);
  };

  return {
    async createKey(key, audit) {
      const { keyId } = key;
      const { applied } = await creating.commit({
        key: keyId,
        audit,
        data: undefined,
        statements: () => [rows.insertion(key)],
      });
      if (applied) return;
      // Ids are drawn once, so an equal creation time is the same call again.
      const row = await rows.get(keyId);
      const existing = row && rows.keyOf(row);
      if (
        existing?.partnerId !== key.partnerId ||
        existing.createdAt !== key.createdAt ||
        existing.name !== key.name
      )
        throw new DomainError('conflict', 'This id is taken.');
      await rows.index(key);
    },

    async getKey(keyId) {
      const row = await rows.get(keyId);
      return row === undefined ? undefined : rows.keyOf(row);
    },

    listKeys,

    revokeKey: keyRevocation(session, decisions, blobs, { rows, rotations, listKeys }),

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

type Place = Pick<PartnerKey, 'createdAt' | 'keyId'>;

/** Compares two keys in the order of the index, which begins with the oldest key. */
function inOrder(a: Place, b: Place): number {
  return a.createdAt - b.createdAt || (a.keyId < b.keyId ? -1 : a.keyId > b.keyId ? 1 : 0);
}
