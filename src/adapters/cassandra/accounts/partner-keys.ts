import { DomainError } from '../../../domain/errors.js';
import type { PartnerKey, Scope } from '../../../domain/partner.js';
import type { KeyStore, Rotation, RotationReplay } from '../../../ports/stores.js';
import type { Intent, Intents } from '../commit/intents.js';
import type { Blobs } from '../driver/blobs.js';
import { Lanes } from '../driver/keyed-mutex.js';
import type { RowCodes } from '../driver/row-codes.js';
import { numberIn, type Row, type Session, type Statement, textIn } from '../driver/session.js';

const COLUMNS =
  'key_id, partner_id, name, scopes, secret_hash, pepper_id, created_at, expires_at, revoked_at, public_key, create_op, revoke_op, rotate_op, rotation, rotation_replay, successor, mac';
const GET =
  'SELECT key_id, partner_id, name, scopes, secret_hash, pepper_id, created_at, expires_at, revoked_at, public_key, mac FROM api_key WHERE key_id = ?';
const GET_WHOLE = `SELECT ${COLUMNS} FROM api_key WHERE key_id = ?`;
const INSERT =
  'INSERT INTO api_key (key_id, partner_id, name, scopes, secret_hash, pepper_id, created_at, expires_at, revoked_at, public_key, create_op, mac) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) IF NOT EXISTS';
// The code is the condition for all columns that it covers: a rotation in between would make the new one
// wrong.
const REVOKE =
  'UPDATE api_key SET revoked_at = ?, revoke_op = ?, mac = ? WHERE key_id = ? IF partner_id = ? AND revoke_op = null AND revoked_at = null AND mac = ?';
const ROTATE =
  'UPDATE api_key SET expires_at = ?, rotation = ?, successor = ?, rotate_op = ?, mac = ? WHERE key_id = ? IF partner_id = ? AND revoked_at = null AND rotate_op = null';
// A statement apart from ROTATE, in one batch with it: only these cells live for a day.
const KEEP_REPLAY = 'UPDATE api_key USING TTL ? SET rotation_replay = ? WHERE key_id = ?';
const INDEX = 'INSERT INTO key_by_partner (partner_id, created_at, key_id) VALUES (?, ?, ?)';
const LIST =
  'SELECT key_id, created_at FROM key_by_partner WHERE partner_id = ? AND (created_at, key_id) > (?, ?) LIMIT ?';
// The latest use wins because its time is the timestamp, whatever arrives last.
const TOUCH = 'INSERT INTO key_use (partner_id, key_id, used_at) VALUES (?, ?, ?) USING TIMESTAMP ?';
const USES = 'SELECT key_id, used_at FROM key_use WHERE partner_id = ? AND key_id IN ?';

/**
 * Seconds by which a replay's cells outlive its window. The caller's clock decides on the window, and clocks
 * differ.
 */
const SPARE_SECONDS = 3600;

/** Keys read in one page where the caller sets no limit, and asked for in one statement. */
const STEP = 100;

interface OfKey {
  readonly keyId: string;
}

export function keyStore(session: Session, intents: Intents, blobs: Blobs, codes: RowCodes): KeyStore {
  const codeOf = (key: PartnerKey): string => codes.make('api_key', key.keyId, keyValues(key));
  const keyOf = (row: Row): PartnerKey => checked(codes, row);
  const insertion = (key: PartnerKey, op: string): Statement => ({
    query: INSERT,
    params: [
      key.keyId,
      key.partnerId,
      key.name,
      key.scopes,
      key.secretHash,
      key.pepperId,
      key.createdAt,
      key.expiresAt,
      key.revokedAt,
      key.publicKey,
      op,
      codeOf(key),
    ],
  });
  const lanes = new Lanes();
  const whole = (keyId: string, reader = session) => reader.first(GET_WHOLE, [keyId]);
  const settled = session.settled();
  const index = ({ partnerId, createdAt, keyId }: PartnerKey) =>
    session.write(INDEX, [partnerId, createdAt, keyId]);
  const rotationOf = (row: Row): Rotation => {
    const keyId = textIn(row, 'key_id')!;
    const rotation = blobs.decode<Rotation>(`rotation/${keyId}`, row['rotation']);
    const replay = row['rotation_replay'] as Buffer | null;
    return replay === null
      ? rotation
      : { ...rotation, replay: blobs.decode<RotationReplay>(`rotation-replay/${keyId}`, replay) };
  };

  /**
   * The successor's row, written by whoever comes first: the one that rotated, one that asks for the
   * rotation, or the sweep.
   */
  const bringSuccessor = async (row: Row): Promise<Rotation> => {
    const successor = blobs.decode<PartnerKey>(`successor/${textIn(row, 'key_id')!}`, row['successor']);
    const op = textIn(row, 'rotate_op')!;
    // The index first: an entry without a row is passed over, a row without an entry would be missing from
    // the list.
    await index(successor);
    const { applied, current } = await session.decide(insertion(successor, op));
    // Ids are drawn at random; a key that is there is no other's.
    if (!applied && current !== undefined && textIn(current, 'create_op') !== op)
      throw new DomainError('conflict', 'This id is taken.');
    return rotationOf(row);
  };
  /** A rotation that was read: as good as told, so its successor must be there. */
  const rotationHeld = async (row: Row): Promise<Rotation> => {
    const rotation = rotationOf(row);
    return (await session.first(GET, [rotation.newKeyId])) === undefined ? bringSuccessor(row) : rotation;
  };

  intents.onAbandoned('key_created', async (intent: Intent<OfKey>) => {
    const row = await whole(intent.target.keyId, settled);
    if (row === undefined || textIn(row, 'create_op') !== intent.op) return;
    await index(keyOf(row));
    await intents.finish(intent);
  });
  intents.onAbandoned('key_revoked', async (intent: Intent<OfKey>) => {
    const row = await whole(intent.target.keyId, settled);
    if (row !== undefined && textIn(row, 'revoke_op') === intent.op) await intents.finish(intent);
  });
  intents.onAbandoned('key_rotated', async (intent: Intent<OfKey>) => {
    const row = await whole(intent.target.keyId, settled);
    if (row === undefined || textIn(row, 'rotate_op') !== intent.op) return;
    await bringSuccessor(row);
    await intents.finish(intent);
  });

  return {
    async createKey(key, audit) {
      const intent = await intents.begin('key_created', { keyId: key.keyId }, audit);
      intents.assertTimely(intent);
      const { applied, current } = await session.decide(insertion(key, intent.op));
      if (applied || (current !== undefined && textIn(current, 'create_op') === intent.op)) {
        await index(key);
        return intents.finish(intent);
      }
      intents.drop(intent);
      // Ids are drawn once, so an equal creation time is the same call again.
      const existing = current && keyOf(current);
      if (
        existing?.partnerId !== key.partnerId ||
        existing.createdAt !== key.createdAt ||
        existing.name !== key.name
      )
        throw new DomainError('conflict', 'This id is taken.');
    },

    async getKey(keyId) {
      const row = await session.first(GET, [keyId]);
      return row === undefined ? undefined : keyOf(row);
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
        const rows = await Promise.all(entries.map(({ keyId }) => session.first(GET, [keyId])));
        for (const row of rows) if (row !== undefined) keys.push(keyOf(row));
        if (entries.length < asked) break;
        after = entries.at(-1)!;
      }
      return keys;
    },

    revokeKey: (partnerId, keyId, at, audit) =>
      lanes.run(keyId, async () => {
        for (;;) {
          const row = await session.first(GET, [keyId]);
          if (row === undefined || textIn(row, 'partner_id') !== partnerId) return 'not_found';
          const key = keyOf(row);
          // A revocation that is seen has been decided.
          if (key.revokedAt !== undefined) return 'already_revoked';
          const intent = await intents.begin('key_revoked', { keyId }, audit);
          intents.assertTimely(intent);
          const { applied, current } = await session.decide({
            query: REVOKE,
            params: [
              at,
              intent.op,
              codeOf({ ...key, revokedAt: at }),
              keyId,
              partnerId,
              textIn(row, 'mac') ?? null,
            ],
          });
          if (applied || (current !== undefined && textIn(current, 'revoke_op') === intent.op)) {
            await intents.finish(intent);
            return 'revoked';
          }
          intents.drop(intent);
          if (current === undefined || textIn(current, 'revoke_op') !== undefined) return 'already_revoked';
        }
      }),

    async getRotation(keyId) {
      const row = await whole(keyId);
      return row === undefined || textIn(row, 'rotate_op') === undefined ? undefined : rotationHeld(row);
    },

    rotateKey: (rotation, successor, audit) =>
      lanes.run(rotation.keyId, async () => {
        const { keyId, partnerId } = rotation;
        for (;;) {
          const row = await whole(keyId);
          if (
            row === undefined ||
            textIn(row, 'partner_id') !== partnerId ||
            numberIn(row, 'revoked_at') !== undefined
          )
            return undefined;
          const key = keyOf(row);
          if (textIn(row, 'rotate_op') !== undefined) return rotationHeld(row);
          const intent = await intents.begin('key_rotated', { keyId }, audit);
          intents.assertTimely(intent);
          const { replay, ...kept } = rotation;
          const { applied, current } = await session.decide(
            {
              query: ROTATE,
              params: [
                rotation.previousKeyExpiresAt,
                blobs.encode(`rotation/${keyId}`, kept),
                blobs.encode(`successor/${keyId}`, successor),
                intent.op,
                codeOf({ ...key, expiresAt: rotation.previousKeyExpiresAt }),
                keyId,
                partnerId,
              ],
            },
            ...(replay === undefined
              ? []
              : [
                  {
                    query: KEEP_REPLAY,
                    params: [
                      rotation.replayUntil - rotation.rotatedAt + SPARE_SECONDS,
                      blobs.encode(`rotation-replay/${keyId}`, replay),
                      keyId,
                    ],
                  },
                ]),
          );
          // The witness comes first: where this rotation took effect and a revocation came right behind it,
          // it holds all the same.
          if (applied || (current !== undefined && textIn(current, 'rotate_op') === intent.op)) {
            const decided = await whole(keyId);
            await bringSuccessor(decided!);
            await intents.finish(intent);
            return rotation;
          }
          intents.drop(intent);
        }
      }),

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

/**
 * The members of a key that its code covers: those that let somebody in. A rotation's blobs have codes of
 * their own.
 */
export function keyValues({
  partnerId,
  name,
  scopes,
  secretHash,
  pepperId,
  createdAt,
  expiresAt,
  revokedAt,
  publicKey,
}: PartnerKey) {
  return [partnerId, name, scopes, secretHash, pepperId, createdAt, expiresAt, revokedAt, publicKey];
}

function checked(codes: RowCodes, row: Row): PartnerKey {
  const key = keyOfColumns(row);
  codes.check('api_key', key.keyId, keyValues(key), textIn(row, 'mac'));
  return key;
}

export function keyOfColumns(row: Row): PartnerKey {
  const expiresAt = numberIn(row, 'expires_at');
  const revokedAt = numberIn(row, 'revoked_at');
  const publicKey = textIn(row, 'public_key');
  return {
    keyId: textIn(row, 'key_id')!,
    partnerId: textIn(row, 'partner_id')!,
    name: textIn(row, 'name')!,
    scopes: (row['scopes'] as Scope[] | null) ?? [],
    secretHash: textIn(row, 'secret_hash')!,
    pepperId: textIn(row, 'pepper_id')!,
    createdAt: numberIn(row, 'created_at')!,
    ...(expiresAt === undefined ? {} : { expiresAt }),
    ...(revokedAt === undefined ? {} : { revokedAt }),
    ...(publicKey === undefined ? {} : { publicKey }),
  };
}
