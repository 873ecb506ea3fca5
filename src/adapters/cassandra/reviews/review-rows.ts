import { defined } from '../../../domain/defined.js';
import type {
  EvidenceKind,
  EvidenceRequest,
  EvidenceStatus,
  ReviewCase,
  ReviewOutcome,
} from '../../../domain/review.js';
import type { Transact } from '../commit/intents.js';
import { numberIn, type Row, type Session, type Statement, textIn } from '../driver/session.js';

const REVIEW_COLUMNS =
  'partner_id, proof_id, creator_id, account_id, submission_id, track_id, status, outcome, created_at, updated_at, resolved_at, expires_at, version';
const GET = `SELECT part, ${REVIEW_COLUMNS}, create_op, TTL(create_op) AS lives, position, request_id, request_status, response_reference, requested_at, changed_at FROM review WHERE review_id = ?`;
const CREATE =
  'UPDATE review USING TTL ? SET partner_id = ?, proof_id = ?, creator_id = ?, account_id = ?, submission_id = ?, track_id = ?, status = ?, outcome = ?, created_at = ?, updated_at = ?, resolved_at = ?, expires_at = ?, version = ?, create_op = ? WHERE review_id = ? IF version = null AND create_op = null';
const CHANGE =
  'UPDATE review USING TTL ? SET status = ?, outcome = ?, updated_at = ?, resolved_at = ?, version = ? WHERE review_id = ? IF version = ?';
const SET_REQUEST =
  'INSERT INTO review (review_id, part, position, request_id, request_status, response_reference, requested_at, changed_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?) USING TTL ?';
const SET_OPERATION = 'INSERT INTO review (review_id, part, changed_at) VALUES (?, ?, ?) USING TTL ?';
const REMOVE = `UPDATE review USING TTL ? SET create_op = ?, ${REVIEW_COLUMNS.replaceAll(/\w+/g, '$& = null')} WHERE review_id = ? IF version = ?`;
const REMOVE_PART = 'DELETE FROM review WHERE review_id = ? AND part = ?';

const EVIDENCE = 'evidence/';
const CHANGED = 'change/';
const SPARE_SECONDS = 3600;
/**
 * Life of the operation id of a removed review: longer than a node hangs and still carries out a statement.
 */
const OPERATION_SECONDS = 3600;

/** A review as its partition holds it. */
export interface StoredReview {
  readonly review: ReviewCase;
  readonly version: number;
  readonly createOp: string;
  /** Time at which the server ends the review, by this process's monotonic clock, in seconds. */
  readonly endsAt: number;
  /** Ids of the operations that changed the review. */
  readonly ops: ReadonlySet<string>;
  /** Keys of all rows of the partition. */
  readonly parts: readonly string[];
}

/** A change of a review, under the id of its operation. */
export interface ReviewWrite {
  readonly stored: StoredReview;
  readonly changed: ReviewCase;
  readonly op: string;
  readonly now: number;
}

/**
 * Time to live of everything that is written at `now` for a new review: its 180 days and an hour, because
 * `expiresAt` and the caller's clock decide what is there. A write without it would leave a part of the
 * review behind for good.
 */
export function ttlOf({ expiresAt }: Pick<ReviewCase, 'expiresAt'>, now: number): number {
  return expiresAt - now + SPARE_SECONDS;
}

/**
 * Rows of `review`. A review is one partition, changed as a whole on the condition of its version. Each
 * change leaves the id of its operation as a row.
 */
export class ReviewRows {
  readonly #session: Session;

  constructor(session: Session) {
    this.#session = session;
  }

  async get(reviewId: string): Promise<StoredReview | undefined> {
    const rows = await this.#session.rows(GET, [reviewId]);
    const [first] = rows;
    // Without its static columns there is no review, whatever rows have outlived them.
    const version = first === undefined ? undefined : numberIn(first, 'version');
    const lives = first === undefined ? undefined : numberIn(first, 'lives');
    if (first === undefined || version === undefined || lives === undefined) return undefined;
    const parts = rows.map((row) => textIn(row, 'part')).filter((part) => part !== undefined);
    return {
      review: reviewOf(reviewId, first, rows),
      version,
      createOp: textIn(first, 'create_op')!,
      endsAt: performance.now() / 1000 + lives,
      ops: new Set(
        parts.filter((part) => part.startsWith(CHANGED)).map((part) => part.slice(CHANGED.length)),
      ),
      parts,
    };
  }

  /** @returns false where another review has this id */
  async create(review: ReviewCase, op: string, now: number): Promise<boolean> {
    const { bindings } = review;
    const { applied } = await this.#session.lightweightTransaction({
      query: CREATE,
      params: [
        ttlOf(review, now),
        review.partnerId,
        review.proofId,
        bindings.creatorId,
        bindings.accountId,
        bindings.submissionId,
        bindings.trackId,
        review.status,
        review.outcome,
        review.createdAt,
        review.updatedAt,
        review.resolvedAt,
        review.expiresAt,
        1,
        op,
        review.reviewId,
      ],
      operation: { column: 'create_op', id: op },
    });
    return applied;
  }

  /** @returns false where the review has changed since it was read, so that the rule must be asked again */
  async change(transact: Transact, { stored, changed, op, now }: ReviewWrite): Promise<boolean> {
    // The time that the server says is left, so that all of the review ends together, whatever the clocks
    // say. Never 0, which would be for ever.
    const ttl = Math.max(1, Math.round(stored.endsAt - performance.now() / 1000));
    const { reviewId } = stored.review;
    const requests = changed.evidenceRequests.flatMap((request, position): Statement[] =>
      request === stored.review.evidenceRequests[position]
        ? []
        : [
            {
              query: SET_REQUEST,
              params: [
                reviewId,
                EVIDENCE + request.kind,
                position,
                request.requestId,
                request.status,
                request.responseReference,
                request.createdAt,
                request.updatedAt,
                ttl,
              ],
            },
          ],
    );
    const { applied } = await transact(
      {
        query: CHANGE,
        params: [
          ttl,
          changed.status,
          changed.outcome,
          changed.updatedAt,
          changed.resolvedAt,
          stored.version + 1,
          reviewId,
          stored.version,
        ],
      },
      ...requests,
      { query: SET_OPERATION, params: [reviewId, CHANGED + op, now, ttl] },
    );
    if (applied) return true;
    // The refusal comes from another change, or from this one, of a sending whose outcome was lost.
    return (await this.get(reviewId))?.ops.has(op) ?? false;
  }

  /**
   * Removes the review, whatever its state. The id of its creation stays for a while: the same statement,
   * sent to a node that hung before another one answered, would bring the review back.
   * @param first repeatable work that needs the review's columns, done before they go
   */
  async remove(
    reviewId: string,
    first: (review: ReviewCase) => Promise<void> = async () => undefined,
  ): Promise<void> {
    for (let stored = await this.get(reviewId); stored !== undefined; stored = await this.get(reviewId)) {
      await first(stored.review);
      await this.#session.lightweightTransaction(
        { query: REMOVE, params: [OPERATION_SECONDS, stored.createOp, reviewId, stored.version] },
        ...stored.parts.map((part) => ({ query: REMOVE_PART, params: [reviewId, part] })),
      );
    }
  }
}

function reviewOf(reviewId: string, row: Row, rows: readonly Row[]): ReviewCase {
  const requests = rows
    .filter((part) => textIn(part, 'part')?.startsWith(EVIDENCE) === true)
    .sort((a, b) => numberIn(a, 'position')! - numberIn(b, 'position')!);
  return defined({
    reviewId,
    partnerId: textIn(row, 'partner_id')!,
    proofId: textIn(row, 'proof_id')!,
    bindings: {
      creatorId: textIn(row, 'creator_id')!,
      accountId: textIn(row, 'account_id')!,
      submissionId: textIn(row, 'submission_id')!,
      trackId: textIn(row, 'track_id')!,
    },
    status: textIn(row, 'status') as ReviewCase['status'],
    outcome: textIn(row, 'outcome') as ReviewOutcome | undefined,
    createdAt: numberIn(row, 'created_at')!,
    updatedAt: numberIn(row, 'updated_at')!,
    resolvedAt: numberIn(row, 'resolved_at'),
    expiresAt: numberIn(row, 'expires_at')!,
    evidenceRequests: requests.map(requestOf),
  });
}

function requestOf(row: Row): EvidenceRequest {
  return defined({
    requestId: textIn(row, 'request_id')!,
    kind: textIn(row, 'part')!.slice(EVIDENCE.length) as EvidenceKind,
    status: textIn(row, 'request_status') as EvidenceStatus,
    responseReference: textIn(row, 'response_reference'),
    createdAt: numberIn(row, 'requested_at')!,
    updatedAt: numberIn(row, 'changed_at')!,
  });
}
