import type { ReviewBindings, ReviewCase } from '../../../domain/review.js';
import { type Row, type Session, type Statement, textIn } from '../driver/session.js';
import { ttlOf } from './review-rows.js';

const GET =
  'SELECT review_id, expires_at, op, creation FROM review_place WHERE proof_id = ? AND partner_id = ? AND bindings = ?';
const INSERT =
  'INSERT INTO review_place (proof_id, partner_id, bindings, review_id, expires_at, op, creation) VALUES (?, ?, ?, ?, ?, ?, ?) IF NOT EXISTS USING TTL ?';
const TAKE_OVER =
  'UPDATE review_place USING TTL ? SET review_id = ?, expires_at = ?, op = ?, creation = ? WHERE proof_id = ? AND partner_id = ? AND bindings = ? IF op = ?';
// All columns but the operation id: a node that hung may still carry out the statement that took the row,
// after the row was released.
const RELEASE =
  'DELETE review_id, expires_at, creation FROM review_place WHERE proof_id = ? AND partner_id = ? AND bindings = ? IF op = ?';

/** Members by which a review is unique among unresolved reviews. */
export type ReviewScope = Pick<ReviewCase, 'proofId' | 'partnerId' | 'bindings'>;

/**
 * Uniqueness rows, of table `review_place`: the one unresolved review of a partner for a proof and bindings.
 * A row is held as long as its review is
 * unresolved and in its time.
 */
export class UniquenessRows {
  readonly #session: Session;

  constructor(session: Session) {
    this.#session = session;
  }

  /** The same rows with serial reads. */
  serialReads(): UniquenessRows {
    return new UniquenessRows(this.#session.serialReads());
  }

  get({ proofId, partnerId, bindings }: ReviewScope): Promise<Row | undefined> {
    return this.#session.first(GET, [proofId, partnerId, textOf(bindings)]);
  }

  /**
   * The statement that takes the row for a review.
   * @param row the row as it was read; undefined where there is none
   * @param creation all of the creation, so that another process can finish it
   */
  taking(review: ReviewCase, row: Row | undefined, op: string, creation: Buffer): Statement {
    const { proofId, partnerId, reviewId, createdAt, expiresAt } = review;
    const bindings = textOf(review.bindings);
    const ttl = ttlOf(review, createdAt);
    const operation = { column: 'op', id: op };
    return row === undefined
      ? {
          query: INSERT,
          params: [proofId, partnerId, bindings, reviewId, expiresAt, op, creation, ttl],
          operation,
        }
      : {
          query: TAKE_OVER,
          params: [ttl, reviewId, expiresAt, op, creation, proofId, partnerId, bindings, textIn(row, 'op')],
          operation,
        };
  }

  /** @param op id of the creation that took the row */
  async release({ proofId, partnerId, bindings }: ReviewScope, op: string): Promise<void> {
    const params = [proofId, partnerId, textOf(bindings), op];
    await this.#session.lightweightTransaction({ query: RELEASE, params });
  }
}

/** Key of the keyed mutex, and of the row, for bindings. */
export function textOf({ creatorId, accountId, submissionId, trackId }: ReviewBindings): string {
  return JSON.stringify([creatorId, accountId, submissionId, trackId]);
}
