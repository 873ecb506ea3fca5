import type { IssuingReplay } from '../../../ports/stores.js';
import { type Row, type Session, type Statement, textIn } from '../driver/session.js';

const GET =
  'SELECT replay_key, request_sha256, proof_id, expires_at, op FROM issuing_replay WHERE replay_key = ?';
const INSERT =
  'INSERT INTO issuing_replay (replay_key, request_sha256, proof_id, expires_at, op) VALUES (?, ?, ?, ?, ?) IF NOT EXISTS USING TTL ?';
const TAKE_OVER =
  'UPDATE issuing_replay USING TTL ? SET request_sha256 = ?, proof_id = ?, expires_at = ?, op = ? WHERE replay_key = ? IF op = ?';
// All columns but the operation id, which stays until the row would have expired: a node that hung may still
// carry out the statement that took the key, after others have done so and released it.
const RELEASE =
  'DELETE request_sha256, proof_id, expires_at FROM issuing_replay WHERE replay_key = ? IF op = ?';

/** The seconds that a record lives beyond its time. The caller's clock decides, and clocks differ. */
const SPARE_SECONDS = 3600;

/**
 * The idempotency records, of table `issuing_replay`: the proof that belongs to an Idempotency-Key. A record has no
 * content but a digest, and counts only while its proof is issued. The record of an erased proof expires.
 */
export class IdempotencyRecords {
  readonly #session: Session;

  constructor(session: Session) {
    this.#session = session;
  }

  get(key: string): Promise<Row | undefined> {
    return this.#session.first(GET, [key]);
  }

  /**
   * Returns the statement that takes a record for an issuing, or for the creation of a review.
   * @param record the record as it was read; undefined where there is none
   * @param createdAt the unix second from which the record's time to live counts
   */
  taking(
    { key, requestSha256, proofId, expiresAt }: IssuingReplay,
    record: Row | undefined,
    op: string,
    createdAt: number,
  ): Statement {
    const ttl = expiresAt - createdAt + SPARE_SECONDS;
    const operation = { column: 'op', id: op };
    return record === undefined
      ? { query: INSERT, params: [key, requestSha256, proofId, expiresAt, op, ttl], operation }
      : {
          query: TAKE_OVER,
          params: [ttl, requestSha256, proofId, expiresAt, op, key, textIn(record, 'op')],
          operation,
        };
  }

  /** @param op id of the issuing, or of the review, that took the record */
  async release(key: string, op: string): Promise<void> {
    await this.#session.lightweightTransaction({ query: RELEASE, params: [key, op] });
  }
}
