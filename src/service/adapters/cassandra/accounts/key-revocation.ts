import { defined } from '../../../../core/domain/defined.js';
import { isRecordDamaged } from '../../../../core/domain/errors.js';
import { type KeyRevocation, needsAnotherActive, refuseCallingKey } from '../../../domain/key-revocation.js';
import type { PartnerKey } from '../../../domain/partner.js';
import type { KeyStore, RevocationOutcome } from '../../../ports/stores.js';
import type { DecidedTable, Decisions } from '../commit/decisions.js';
import type { Blobs } from '../driver/blobs.js';
import { KeyedMutex } from '../driver/keyed-mutex.js';
import { type Row, type Session, textIn } from '../driver/session.js';
import type { KeyRotation } from './key-rotation.js';
import type { KeyRows } from './key-rows.js';

const GET = "SELECT gen, revocation FROM key_revocation WHERE partner_id = ? AND part = ''";
const BEGIN = "INSERT INTO key_revocation (partner_id, part, gen) VALUES (?, '', 1) IF NOT EXISTS";
const FENCE = "UPDATE key_revocation SET gen = ? WHERE partner_id = ? AND part = '' IF gen = ?";
const DECIDE =
  "UPDATE key_revocation SET gen = ?, revocation = ? WHERE partner_id = ? AND part = '' IF gen = ?";
// The code in the condition covers all columns that decide: a rotation in between makes the new code wrong.
const REVOKE =
  "UPDATE api_key SET revoked_at = ?, mac = ? WHERE key_id = ? AND part = '' IF partner_id = ? AND gen = ? AND revoked_at = null AND mac = ?";

/** Keys read in one page in the search for another active key. */
const STEP = 100;

export interface RevocationParts {
  readonly rows: KeyRows;
  readonly rotations: Pick<KeyRotation, 'getRotation'>;
  readonly listKeys: KeyStore['listKeys'];
}

/**
 * Returns the function that revokes keys. Rule 4.15 is about several keys of a partner, and each key has a partition
 * of its own. So a revocation is decided in a partition of the partner, against the generation that was read before
 * the keys were. Then the rows of the keys are changed, before the caller is answered. Every later revocation first
 * carries out the last one that was decided, so it finds the keys as that one leaves them. Rotations do not take
 * part: a rotation ends a key only together with the creation of its active successor.
 */
export function keyRevocation(
  session: Session,
  decisions: Decisions,
  blobs: Blobs,
  { rows, rotations, listKeys }: RevocationParts,
): KeyStore['revokeKey'] {
  const mutex = new KeyedMutex();
  const serialReads = session.serialReads();

  /** Returns the partner's row. Creates the row if it does not exist. */
  const rowOf = async (partnerId: string): Promise<Row> => {
    for (;;) {
      const row = await serialReads.first(GET, [partnerId]);
      if (row !== undefined) return row;
      await session.lightweightTransaction({ query: BEGIN, params: [partnerId] });
    }
  };
  const table: DecidedTable = {
    name: 'key_revocation',
    keyColumns: ['partner_id'],
    keyValues: (partnerId) => [partnerId],
    async fence(partnerId) {
      const gen = (await rowOf(partnerId))['gen'] as number;
      await session.lightweightTransaction({ query: FENCE, params: [gen + 1, partnerId, gen] });
    },
  };

  const revokingOne = decisions.operations<undefined>({ kind: 'key_revoked', table: rows.table });

  /** Revokes one key, unless it is revoked. */
  const revokeOne = async (
    keyId: string,
    { partnerId, at, callingKeyId, operator, requestId }: KeyRevocation,
  ): Promise<void> => {
    for (;;) {
      const row = await rows.getWhole(keyId);
      const key = row && rows.keyOf(row);
      if (row === undefined || key === undefined || key.revokedAt !== undefined) return;
      const code = rows.codeOf({ ...key, revokedAt: at });
      const { applied } = await revokingOne.commit({
        key: keyId,
        audit: {
          partnerId,
          action: 'key_revoked',
          at,
          actor: callingKeyId ?? operator ?? 'operator',
          subjects: [keyId],
          ...defined({ requestId }),
        },
        data: undefined,
        statements: () => [
          { query: REVOKE, params: [at, code, keyId, partnerId, row['gen'], textIn(row, 'mac') ?? null] },
        ],
      });
      if (applied) return;
    }
  };

  /** Carries out a decided revocation. A revoked key cannot be rotated, so its successors are final. */
  const carryOut = async (revocation: KeyRevocation): Promise<void> => {
    for (let keyId: string | undefined = revocation.keyId; keyId !== undefined; ) {
      await revokeOne(keyId, revocation);
      keyId = revocation.withSuccessors === true ? (await rotations.getRotation(keyId))?.newKeyId : undefined;
    }
  };

  const revoking = decisions.operations<KeyRevocation>({
    kind: 'keys_revoked',
    table,
    follow: (_partnerId, { data }) => carryOut(data),
  });

  const getKey = async (keyId: string): Promise<PartnerKey | undefined> => {
    const row = await rows.get(keyId);
    return row && rows.keyOf(row);
  };

  /** Returns the keys that a revocation names, or undefined if the first of them is not the partner's. */
  const namedKeys = async ({
    partnerId,
    keyId,
    withSuccessors,
  }: KeyRevocation): Promise<readonly PartnerKey[] | undefined> => {
    const keys: PartnerKey[] = [];
    for (let next: string | undefined = keyId; next !== undefined; ) {
      const key = await getKey(next);
      if (key?.partnerId !== partnerId) return undefined;
      keys.push(key);
      next = withSuccessors === true ? (await rotations.getRotation(next))?.newKeyId : undefined;
    }
    return keys;
  };

  const hasActiveBeside = async (partnerId: string, ended: readonly PartnerKey[]): Promise<boolean> => {
    let after: { readonly createdAt: number; readonly keyId: string } | undefined;
    for (;;) {
      const keys = await listKeys(partnerId, { limit: STEP, ...(after && { after }) });
      const other = keys.find(
        (key) =>
          key.revokedAt === undefined &&
          key.expiresAt === undefined &&
          ended.every(({ keyId }) => keyId !== key.keyId),
      );
      if (other !== undefined) return true;
      const last = keys.at(-1);
      if (last === undefined || keys.length < STEP) return false;
      after = { createdAt: last.createdAt, keyId: last.keyId };
    }
  };

  /**
   * Carries out the partner's last revocation. Damage in it, or in the row of a key that it names, must not stop the
   * revocation of other keys: every call with the damaged key fails, and sweeps repeat what is left of the revocation.
   */
  const carryOutLast = async (partnerId: string, cell: unknown): Promise<void> => {
    try {
      await carryOut(blobs.decode<KeyRevocation>(`key-revocation/${partnerId}`, cell));
    } catch (error) {
      if (!isRecordDamaged(error)) throw error;
    }
  };

  const revoke = async (revocation: KeyRevocation): Promise<RevocationOutcome> => {
    const { partnerId, callingKeyId } = revocation;
    for (;;) {
      const row = await rowOf(partnerId);
      const gen = row['gen'] as number;
      if (row['revocation'] !== null) await carryOutLast(partnerId, row['revocation']);
      const calling = callingKeyId === undefined ? undefined : await getKey(callingKeyId);
      const refusal = callingKeyId === undefined ? undefined : refuseCallingKey(calling, revocation);
      if (refusal !== undefined) return { outcome: refusal };
      const keys = await namedKeys(revocation);
      if (keys === undefined) return { outcome: 'not_found' };
      const ended = keys.filter((key) => key.revokedAt === undefined);
      if (ended.length === 0) return { outcome: 'already_revoked', keyIds: keys.map(({ keyId }) => keyId) };
      if (
        calling !== undefined &&
        needsAnotherActive(calling, ended, revocation) &&
        !(await hasActiveBeside(partnerId, keys))
      )
        return { outcome: 'last_active_key' };
      const { applied } = await revoking.commit({
        key: partnerId,
        data: revocation,
        statements: () => [
          {
            query: DECIDE,
            params: [gen + 1, blobs.encode(`key-revocation/${partnerId}`, revocation), partnerId, gen],
          },
        ],
      });
      if (applied)
        return {
          outcome: 'revoked',
          keyIds: ((await namedKeys(revocation)) ?? keys).map(({ keyId }) => keyId),
        };
    }
  };

  return (revocation) => mutex.run(revocation.partnerId, () => revoke(revocation));
}
