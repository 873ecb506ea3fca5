import { defined } from '../../../domain/defined.js';
import type { PartnerKey, Scope } from '../../../domain/partner.js';
import type { RowCodes } from '../driver/row-codes.js';
import { numberIn, type Row, type Session, type Statement, textIn } from '../driver/session.js';

const KEY_COLUMNS =
  'key_id, partner_id, name, scopes, secret_hash, pepper_id, created_at, expires_at, revoked_at, public_key, mac';
const GET = `SELECT ${KEY_COLUMNS} FROM api_key WHERE key_id = ?`;
const GET_WHOLE = `SELECT ${KEY_COLUMNS}, create_op, revoke_op, rotate_op, rotation, rotation_replay, successor FROM api_key WHERE key_id = ?`;
const INSERT =
  'INSERT INTO api_key (key_id, partner_id, name, scopes, secret_hash, pepper_id, created_at, expires_at, revoked_at, public_key, create_op, mac) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) IF NOT EXISTS';
const INDEX = 'INSERT INTO key_by_partner (partner_id, created_at, key_id) VALUES (?, ?, ?)';

/** Rows of `api_key`, with the index by partner. */
export class KeyRows {
  readonly #session: Session;
  readonly #serialReads: Session;
  readonly #codes: RowCodes;

  constructor(session: Session, codes: RowCodes) {
    this.#session = session;
    this.#serialReads = session.serialReads();
    this.#codes = codes;
  }

  /** The columns of a key alone. */
  get(keyId: string): Promise<Row | undefined> {
    return this.#session.first(GET, [keyId]);
  }

  /** The columns of a key, its operations and its rotation. */
  getWhole(keyId: string): Promise<Row | undefined> {
    return this.#session.first(GET_WHOLE, [keyId]);
  }

  /** Tells by a serial read whether the operation decided on the key; `column` is the one of its id. */
  async isDecidedBy(op: string, column: string, keyId: string): Promise<boolean> {
    const row = await this.#serialReads.first(GET_WHOLE, [keyId]);
    return row !== undefined && textIn(row, column) === op;
  }

  /** @throws DomainError `internal` / `record_damaged` */
  keyOf(row: Row): PartnerKey {
    const key = keyOfColumns(row);
    this.#codes.check('api_key', key.keyId, keyValues(key), textIn(row, 'mac'));
    return key;
  }

  /** Code of a key's row as a statement leaves it. */
  codeOf(key: PartnerKey): string {
    return this.#codes.make('api_key', key.keyId, keyValues(key));
  }

  insertion(key: PartnerKey, op: string): Statement {
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
        op,
        this.codeOf(key),
      ],
      operation: { column: 'create_op', id: op },
    };
  }

  async index({ partnerId, createdAt, keyId }: PartnerKey): Promise<void> {
    await this.#session.write(INDEX, [partnerId, createdAt, keyId]);
  }
}

/**
 * Members of a key that its code covers: the ones that let somebody in. The blobs of a rotation have codes of
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

export function keyOfColumns(row: Row): PartnerKey {
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
