import { DomainError } from '../../../../core/domain/errors.js';
import type { PartnerKey } from '../../../domain/partner.js';
import type { KeyStore, Rotation, RotationReplay } from '../../../ports/stores.js';
import type { Decisions } from '../commit/decisions.js';
import type { Blobs } from '../driver/blobs.js';
import { numberIn, type Row, type Session, type Statement, textIn } from '../driver/session.js';
import type { KeyRows } from './key-rows.js';

const ROTATE =
  "UPDATE api_key SET expires_at = ?, rotation = ?, successor = ?, mac = ? WHERE key_id = ? AND part = '' IF partner_id = ? AND gen = ? AND revoked_at = null AND rotation = null";
// A statement apart from ROTATE, in one batch with it: only these cells live for a day.
const KEEP_REPLAY = "UPDATE api_key USING TTL ? SET rotation_replay = ? WHERE key_id = ? AND part = ''";

/**
 * The time in seconds that a replay's cells outlive its window. The caller's clock decides the window, and clocks
 * differ.
 */
const SPARE_SECONDS = 3600;

export interface KeyRotation extends Pick<KeyStore, 'getRotation' | 'rotateKey'> {
  /**
   * Returns the successors that the given rows name and `known` lacks, and writes those that are missing. A caller that
   * learns of an expiring key then also learns of its successor.
   */
  lackingSuccessors(listed: readonly Row[], known: ReadonlySet<string>): Promise<readonly Row[]>;
}

/**
 * Returns the calls that rotate keys and read rotations. The decision is one write of the old key's row, which then
 * holds the rotation and the whole successor. Each reader of a rotation makes sure that the successor exists.
 */
export function keyRotation(
  session: Session,
  decisions: Decisions,
  blobs: Blobs,
  rows: KeyRows,
): KeyRotation {
  const keptOf = (row: Row): Rotation =>
    blobs.decode<Rotation>(`rotation/${textIn(row, 'key_id')!}`, row['rotation']);

  const rotationOf = (row: Row): Rotation => {
    const keyId = textIn(row, 'key_id')!;
    const rotation = keptOf(row);
    const replay = row['rotation_replay'] as Buffer | null;
    return replay === null
      ? rotation
      : { ...rotation, replay: blobs.decode<RotationReplay>(`rotation-replay/${keyId}`, replay) };
  };

  /** Writes the successor's row: by the call that rotated, one that asks for the rotation, or the sweep. */
  const bringSuccessor = async (row: Row): Promise<void> => {
    const successor = blobs.decode<PartnerKey>(`successor/${textIn(row, 'key_id')!}`, row['successor']);
    // The index comes first: an entry without a row is passed over, a row without an entry would be missing
    // from the list.
    await rows.index(successor);
    const { applied, current } = await session.lightweightTransaction(rows.insertion(successor));
    // The successor that is there was brought by another call, or by this one, of a sending whose outcome was
    // lost. Ids are drawn at random, so another key with this id is a defect.
    if (!applied && current !== undefined && textIn(current, 'secret_hash') !== successor.secretHash)
      throw new DomainError('conflict', 'This id is taken.');
  };

  /** Returns the rotation of a row. Its reader may report it, so the successor must exist. */
  const completeRotation = async (row: Row): Promise<Rotation> => {
    const rotation = rotationOf(row);
    if ((await rows.get(rotation.newKeyId)) === undefined) await bringSuccessor(row);
    return rotation;
  };

  const rotating = decisions.operations<undefined>({
    kind: 'key_rotated',
    table: rows.table,
    follow: async (keyId) => bringSuccessor((await rows.getWhole(keyId))!),
  });

  const rotation = (
    { replay, ...kept }: Rotation,
    key: PartnerKey,
    successor: PartnerKey,
    gen: number,
  ): readonly Statement[] => {
    const { keyId, partnerId, previousKeyExpiresAt, replayUntil, rotatedAt } = kept;
    const decision: Statement = {
      query: ROTATE,
      params: [
        previousKeyExpiresAt,
        blobs.encode(`rotation/${keyId}`, kept),
        blobs.encode(`successor/${keyId}`, successor),
        rows.codeOf({ ...key, expiresAt: previousKeyExpiresAt }),
        keyId,
        partnerId,
        gen,
      ],
    };
    if (replay === undefined) return [decision];
    const replayBlob = blobs.encode(`rotation-replay/${keyId}`, replay);
    return [
      decision,
      { query: KEEP_REPLAY, params: [replayUntil - rotatedAt + SPARE_SECONDS, replayBlob, keyId] },
    ];
  };

  return {
    lackingSuccessors: (listed, known) =>
      Promise.all(
        listed
          .filter((row) => row['rotation'] !== null && !known.has(keptOf(row).newKeyId))
          .map(async (row) => {
            const { newKeyId } = keptOf(row);
            const there = await rows.get(newKeyId);
            if (there !== undefined) return there;
            await bringSuccessor(row);
            return (await rows.get(newKeyId))!;
          }),
      ),

    async getRotation(keyId) {
      const row = await rows.getWhole(keyId);
      return row === undefined || row['rotation'] === null ? undefined : completeRotation(row);
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
        if (row['rotation'] !== null) return completeRotation(row);
        const { applied } = await rotating.commit({
          key: asked.keyId,
          audit,
          data: undefined,
          statements: () => rotation(asked, key, successor, row['gen'] as number),
        });
        if (applied) return asked;
      }
    },
  };
}
