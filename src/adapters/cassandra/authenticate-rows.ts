import { types } from 'cassandra-driver';
import type { Authenticator } from '../../codec/authenticator.js';
import { defined } from '../../domain/defined.js';
import { isRecordDamaged } from '../../domain/errors.js';
import { keyOfColumns, keyValues } from './accounts/key-rows.js';
import { partnerOfColumns, partnerValues, SHARDS } from './accounts/partners.js';
import { Blobs } from './driver/blobs.js';
import { RowCodes } from './driver/row-codes.js';
import {
  type ConnectionOptions,
  connect,
  type Row,
  type Session,
  type Statement,
  textIn,
} from './driver/session.js';
import { columnsOf, proofValues } from './proofs/proof-rows.js';

const STEP = 500;
const AT_ONCE = 16;

const PARTNERS =
  'SELECT shard, partner_id, name, plan, created_at, source_detail, source_detail_at, mac FROM partner WHERE shard = ?';
const SET_PARTNER =
  'UPDATE partner SET mac = ? WHERE shard = ? AND partner_id = ? IF name = ? AND plan = ? AND mac = ?';
const KEYS =
  'SELECT token(key_id) AS row_token, key_id, partner_id, name, scopes, secret_hash, pepper_id, created_at, expires_at, revoked_at, public_key, rotate_op, rotation, successor, mac FROM api_key WHERE token(key_id) > ? LIMIT ?';
const SET_KEY =
  'UPDATE api_key SET rotation = ?, successor = ?, mac = ? WHERE key_id = ? IF revoked_at = ? AND rotate_op = ? AND mac = ?';
const PROOFS =
  'SELECT token(proof_id) AS row_token, proof_id, partner_id, state, reserved_at, body, replay_key, erased_at, confirmed_at, mac FROM proof WHERE token(proof_id) > ? LIMIT ?';
const SET_PROOF =
  'UPDATE proof SET body = ?, mac = ? WHERE proof_id = ? IF state = ? AND body = ? AND confirmed_at = ? AND mac = ?';

export interface AuthenticatedRows {
  /** Rows that were given their codes. */
  readonly authenticated: number;
  /** Rows that no longer are what a version without codes wrote. */
  readonly damaged: number;
}

/**
 * Gives rows of a version that made no codes their codes, as the rows are then. Rows with a code are left
 * alone. Safe to run again, and beside processes of this version: a row that a process changes meanwhile gets
 * its code from the change.
 */
export async function authenticateRows(
  options: ConnectionOptions & { readonly keyspace: string },
  authenticator: Authenticator,
): Promise<AuthenticatedRows> {
  const session = await connect(options, options.keyspace);
  const codes = new RowCodes(authenticator, false);
  const blobs = new Blobs(authenticator, true);
  const renewed = (key: string, blob: unknown): Buffer | undefined =>
    blob === null || blob === undefined ? undefined : blobs.renewed(key, blob);
  const count = { authenticated: 0, damaged: 0 };

  const visit = async (isDue: () => boolean, statement: () => Statement): Promise<void> => {
    try {
      if (!isDue()) return;
      if ((await session.lightweightTransaction(statement())).applied) count.authenticated += 1;
    } catch (error) {
      if (!isRecordDamaged(error)) throw error;
      count.damaged += 1;
    }
  };
  const partner = (row: Row): Promise<void> => {
    const known = partnerOfColumns(row);
    const values = partnerValues(known);
    return visit(
      () => !codes.holds('partner', known.partnerId, values, textIn(row, 'mac')),
      () => ({
        query: SET_PARTNER,
        params: [
          codes.make('partner', known.partnerId, values),
          row['shard'],
          known.partnerId,
          known.name,
          known.plan,
          row['mac'],
        ],
      }),
    );
  };
  const key = (row: Row): Promise<void> => {
    const known = keyOfColumns(row);
    const values = keyValues(known);
    const { keyId } = known;
    return visit(
      () => !codes.holds('api_key', keyId, values, textIn(row, 'mac')),
      () => ({
        query: SET_KEY,
        params: [
          renewed(`rotation/${keyId}`, row['rotation']),
          renewed(`successor/${keyId}`, row['successor']),
          codes.make('api_key', keyId, values),
          keyId,
          row['revoked_at'],
          row['rotate_op'],
          row['mac'],
        ],
      }),
    );
  };
  const proof = (row: Row): Promise<void> => {
    const columns = columnsOf(row);
    const { proofId } = columns;
    return visit(
      () => !codes.holds('proof', proofId, proofValues(columns), textIn(row, 'mac')),
      () => {
        const body = renewed(`proof/${proofId}`, row['body']);
        return {
          query: SET_PROOF,
          params: [
            body,
            codes.make('proof', proofId, proofValues(defined({ ...columns, body }))),
            proofId,
            row['state'],
            row['body'],
            row['confirmed_at'],
            row['mac'],
          ],
        };
      },
    );
  };
  try {
    for (let shard = 0; shard < SHARDS; shard += 1)
      await visitAll(await session.rows(PARTNERS, [shard]), partner);
    await visitTable(session, KEYS, key);
    await visitTable(session, PROOFS, proof);
    return count;
  } finally {
    await session.close();
  }
}

/** Visits all rows of a table, in the order of their tokens. */
async function visitTable(
  session: Session,
  query: string,
  visit: (row: Row) => Promise<void>,
): Promise<void> {
  for (let after: types.Long = types.Long.MIN_VALUE; ; ) {
    const rows = await session.rows(query, [after, STEP]);
    await visitAll(rows, visit);
    const last = rows.at(-1);
    if (last === undefined || rows.length < STEP) return;
    after = last['row_token'] as types.Long;
  }
}

async function visitAll(rows: readonly Row[], visit: (row: Row) => Promise<void>): Promise<void> {
  for (let from = 0; from < rows.length; from += AT_ONCE)
    await Promise.all(rows.slice(from, from + AT_ONCE).map(visit));
}
