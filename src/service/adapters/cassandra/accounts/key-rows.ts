import { defined } from '../../../../core/domain/defined.js';
import type { PartnerKey, Scope } from '../../../domain/partner.js';
import type { Rotation } from '../../../ports/stores.js';
import type { DecidedTable } from '../commit/decisions.js';
import type { Blobs } from '../driver/blobs.js';
import type { RowCodes } from '../driver/row-codes.js';
import { numberIn, type Row, type Session, type Statement, textIn } from '../driver/session.js';

const KEY_COLUMNS =
  'key_id, partner_id, name, scopes, secret_hash, pepper_id, created_at, expires_at, revoked_at, public_key, mac';
const GET = `SELECT ${KEY_COLUMNS} FROM api_key WHERE key_id = ? AND part = ''`;
const GET_LISTED = `SELECT ${KEY_COLUMNS}, rotation, successor FROM api_key WHERE key_id = ? AND part = ''`;
const GET_WHOLE = `SELECT ${KEY_COLUMNS}, gen, rotation, rotation_replay, successor FROM api_key WHERE key_id = ? AND part = ''`;
const INSERT =
  "INSERT INTO api_key (key_id, part, gen, partner_id, name, scopes, secret_hash, pepper_id, created_at, expires_at, revoked_at, public_key, mac) VALUES (?, '', 1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) IF NOT EXISTS";
const VOID = "INSERT INTO api_key (key_id, part, gen) VALUES (?, '', 1) IF NOT EXISTS USING TTL 2592000";
const FENCE = "UPDATE api_key SET gen = ? WHERE key_id = ? AND part = '' IF gen = ?";
const SET_ROTATION =
  "UPDATE api_key SET rotation = ?, successor = ? WHERE key_id = ? AND part = '' IF rotation = null";
const INDEX = 'INSERT INTO key_by_partner (partner_id, created_at, key_id) VALUES (?, ?, ?)';

/** Rows of `api_key`, with the index by partner. */
export class KeyRows {
  readonly #session: Session;
  readonly #codes: RowCodes;
  /** The table, for decisions. */
  readonly table: DecidedTable;

  constructor(session: Session, codes: RowCodes) {
    this.#session = session;
    this.#codes = codes;
    this.table = {
      name: 'api_key',
      keyColumns: ['key_id'],
      keyValues: (keyId) => [keyId],
      async fence(keyId) {
        const row = await session.serialReads().first(GET_WHOLE, [keyId]);
        await session.lightweightTransaction(
          row === undefined
            ? { query: VOID, params: [keyId] }
            : { query: FENCE, params: [row['gen'] + 1, keyId, row['gen']] },
        );
      },
    };
  }

  /** Returns the columns of a key, without its generation and its rotation. */
  async get(keyId: string): Promise<Row | undefined> {
    return present(await this.#session.first(GET, [keyId]));
  }

  /** Returns the columns of a key, and its rotation without the replay. */
  async getListed(keyId: string): Promise<Row | undefined> {
    return present(await this.#session.first(GET_LISTED, [keyId]));
  }

  /** Returns the columns of a key, its generation and its rotation with the replay. */
  async getWhole(keyId: string): Promise<Row | undefined> {
    return present(await this.#session.first(GET_WHOLE, [keyId]));
  }

  /** @throws DomainError `internal` / `record_damaged` */
  keyOf(row: Row): PartnerKey {
    const key = keyOfColumns(row);
    this.#codes.check('api_key', key.keyId, keyValues(key), textIn(row, 'mac'));
    return key;
  }

  /** Returns the code of a key's row as a statement leaves the row. */
  codeOf(key: PartnerKey): string {
    return this.#codes.make('api_key', key.keyId, keyValues(key));
  }

  insertion(key: PartnerKey): Statement {
    return {
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
        this.codeOf(key),
      ],
    };
  }

  /** Inserts a key of another store, with its rotation. What exists stays as it is. */
  async insert(
    key: PartnerKey,
    blobs: Blobs,
    rotated?: { readonly rotation: Rotation; readonly successor: PartnerKey },
  ): Promise<void> {
    // The index comes first: an entry without a row is passed over.
    await this.index(key);
    await this.#session.lightweightTransaction(this.insertion(key));
    if (rotated === undefined) return;
    const { keyId } = key;
    await this.#session.lightweightTransaction({
      query: SET_ROTATION,
      params: [
        blobs.encode(`rotation/${keyId}`, rotated.rotation),
        blobs.encode(`successor/${keyId}`, rotated.successor),
        keyId,
      ],
    });
  }

  async index({ partnerId, createdAt, keyId }: PartnerKey): Promise<void> {
    await this.#session.write(INDEX, [partnerId, createdAt, keyId]);
  }
}

/**
 * Returns the members of a key that its code covers, which are the ones that admit a caller. The blobs of a
 * rotation have codes of their own.
 */
function keyValues({
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

function keyOfColumns(row: Row): PartnerKey {
  return defined({
    keyId: textIn(row, 'key_id')!,
    partnerId: textIn(row, 'partner_id')!,
    name: textIn(row, 'name')!,
    scopes: (row['scopes'] as Scope[] | null) ?? [],
    secretHash: textIn(row, 'secret_hash')!,
    pepperId: textIn(row, 'pepper_id')!,
    createdAt: numberIn(row, 'created_at')!,
    expiresAt: numberIn(row, 'expires_at'),
    revokedAt: numberIn(row, 'revoked_at'),
    publicKey: textIn(row, 'public_key'),
  });
}

/** Returns the row if it has a key, else undefined. A creation that was given up leaves a row without a key. */
function present(row: Row | undefined): Row | undefined {
  return row === undefined || textIn(row, 'partner_id') === undefined ? undefined : row;
}
