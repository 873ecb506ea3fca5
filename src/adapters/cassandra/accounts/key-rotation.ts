import { DomainError } from '../../../domain/errors.js';
import type { PartnerKey } from '../../../domain/partner.js';
import type { KeyStore, Rotation, RotationReplay } from '../../../ports/stores.js';
import type { Intents } from '../commit/intents.js';
import type { Blobs } from '../driver/blobs.js';
import { numberIn, type Row, type Session, type Statement, textIn } from '../driver/session.js';
import type { KeyRows } from './key-rows.js';

const ROTATE =
  'UPDATE api_key SET expires_at = ?, rotation = ?, successor = ?, rotate_op = ?, mac = ? WHERE key_id = ? IF partner_id = ? AND revoked_at = null AND rotate_op = null';
// A statement apart from ROTATE, in one batch with it: only these cells live for a day.
const KEEP_REPLAY = 'UPDATE api_key USING TTL ? SET rotation_replay = ? WHERE key_id = ?';

/**
 * Seconds by which a replay's cells outlive its window. The caller's clock decides on the window, and clocks
 * differ.
 */
const SPARE_SECONDS = 3600;

/**
 * Rotations. The decision is one write of the old key's row, which then holds the rotation and the whole
 * successor. Whoever reads a rotation first makes sure that its successor is there.
 */
export function keyRotation(
  session: Session,
  intents: Intents,
  blobs: Blobs,
  rows: KeyRows,
): Pick<KeyStore, 'getRotation' | 'rotateKey'> {
  const rotationOf = (row: Row): Rotation => {
    const keyId = textIn(row, 'key_id')!;
    const rotation = blobs.decode<Rotation>(`rotation/${keyId}`, row['rotation']);
    const replay = row['rotation_replay'] as Buffer | null;
    return replay === null
      ? rotation
      : { ...rotation, replay: blobs.decode<RotationReplay>(`rotation-replay/${keyId}`, replay) };
  };

  /** Writes the successor's row: by the call that rotated, one that asks for the rotation, or the sweep. */
  const bringSuccessor = async (row: Row): Promise<void> => {
    const successor = blobs.decode<PartnerKey>(`successor/${textIn(row, 'key_id')!}`, row['successor']);
    const op = textIn(row, 'rotate_op')!;
    // The index comes first: an entry without a row is passed over, a row without an entry would be missing
    // from the list.
    await rows.index(successor);
    const { applied, current } = await session.lightweightTransaction(rows.insertion(successor, op));
    // Ids are drawn at random, so another key with the successor's id is a defect.
    if (!applied && current !== undefined) throw new DomainError('conflict', 'This id is taken.');
  };

  /** The rotation of a row that was read. Its reader may be told of it, so the successor must be there. */
  const completeRotation = async (row: Row): Promise<Rotation> => {
    const rotation = rotationOf(row);
    if ((await rows.get(rotation.newKeyId)) === undefined) await bringSuccessor(row);
    return rotation;
  };

  const rotating = intents.operations<{ readonly keyId: string }>({
    kind: 'key_rotated',
    isDecided: ({ op, target }) => rows.isDecidedBy(op, 'rotate_op', target.keyId),
    follow: async ({ target }) => bringSuccessor((await rows.getWhole(target.keyId))!),
  });

  const rotation = (
    { replay, ...kept }: Rotation,
    key: PartnerKey,
    successor: PartnerKey,
    op: string,
  ): readonly Statement[] => {
    const { keyId, partnerId, previousKeyExpiresAt, replayUntil, rotatedAt } = kept;
    const decision: Statement = {
      query: ROTATE,
      params: [
        previousKeyExpiresAt,
        blobs.encode(`rotation/${keyId}`, kept),
        blobs.encode(`successor/${keyId}`, successor),
        op,
        rows.codeOf({ ...key, expiresAt: previousKeyExpiresAt }),
        keyId,
        partnerId,
      ],
      // A revocation that came right behind the rotation takes nothing back.
      operation: { column: 'rotate_op', id: op },
    };
    if (replay === undefined) return [decision];
    const replayBlob = blobs.encode(`rotation-replay/${keyId}`, replay);
    return [
      decision,
      { query: KEEP_REPLAY, params: [replayUntil - rotatedAt + SPARE_SECONDS, replayBlob, keyId] },
    ];
  };

  return {
    async getRotation(keyId) {
      const row = await rows.getWhole(keyId);
      return row === undefined || textIn(row, 'rotate_op') === undefined ? undefined : completeRotation(row);
    },

    async rotateKey(asked, successor, audit) {
      for (;;) {
        const row = await rows.getWhole(asked.keyId);
        if (
          row === undefined ||
          textIn(row, 'partner_id') !== asked.partnerId ||
          numberIn(row, 'revoked_at') !== undefined
        )
          return undefined;
        const key = rows.keyOf(row);
        if (textIn(row, 'rotate_op') !== undefined) return completeRotation(row);
        const { applied } = await rotating.commit({ keyId: asked.keyId }, audit, (transact, { op }) =>
          transact(...rotation(asked, key, successor, op)),
        );
        if (applied) return asked;
      }
    },
  };
}
