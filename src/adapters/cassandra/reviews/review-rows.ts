import type {
  EvidenceKind,
  EvidenceRequest,
  EvidenceStatus,
  ReviewCase,
  ReviewOutcome,
} from '../../../domain/review.js';
import { numberIn, type Row, type Session, type Statement, textIn } from '../driver/session.js';

const CASE_COLUMNS =
  'partner_id, proof_id, creator_id, account_id, submission_id, track_id, status, outcome, created_at, updated_at, resolved_at, expires_at, version';
const GET = `SELECT part, ${CASE_COLUMNS}, create_op, TTL(create_op) AS lives, position, request_id, request_status, response_reference, requested_at, changed_at FROM review WHERE review_id = ?`;
const CREATE =
  'UPDATE review USING TTL ? SET partner_id = ?, proof_id = ?, creator_id = ?, account_id = ?, submission_id = ?, track_id = ?, status = ?, outcome = ?, created_at = ?, updated_at = ?, resolved_at = ?, expires_at = ?, version = ?, create_op = ? WHERE review_id = ? IF version = null AND create_op = null';
const CHANGE =
  'UPDATE review USING TTL ? SET status = ?, outcome = ?, updated_at = ?, resolved_at = ?, version = ? WHERE review_id = ? IF version = ?';
const SET_REQUEST =
  'INSERT INTO review (review_id, part, position, request_id, request_status, response_reference, requested_at, changed_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?) USING TTL ?';
const SET_WITNESS = 'INSERT INTO review (review_id, part, changed_at) VALUES (?, ?, ?) USING TTL ?';
const REMOVE = `UPDATE review USING TTL ? SET create_op = ?, ${CASE_COLUMNS.replaceAll(/\w+/g, '$& = null')} WHERE review_id = ? IF version = ?`;
const REMOVE_PART = 'DELETE FROM review WHERE review_id = ? AND part = ?';

const EVIDENCE = 'evidence/';
const CHANGED = 'change/';
const SPARE_SECONDS = 3600;
/** Longer than a node can hang and still carry out what it was sent. */
const REMEMBERED_SECONDS = 3600;

/** A case as its partition holds it. */
export interface StoredCase {
  readonly review: ReviewCase;
  readonly version: number;
  readonly createOp: string;
  /** When the server will have ended it, by this process's monotonic clock, in seconds. */
  readonly endsAt: number;
  /** Operations that changed it. */
  readonly ops: ReadonlySet<string>;
  /** All rows of the partition. */
  readonly parts: readonly string[];
}

/**
 * The time to live of everything written at `now` for a new case: its 180 days, and an hour, because
 * `expiresAt` and the caller's clock decide what is there. One write without it would leave a part of the
 * case behind for good.
 */
export function ttlOf({ expiresAt }: Pick<ReviewCase, 'expiresAt'>, now: number): number {
  return expiresAt - now + SPARE_SECONDS;
}

/**
 * A case is one partition, changed as a whole on the condition of its version; each change leaves its
 * operation's id as a row.
 */
export class ReviewRows {
  readonly #session: Session;

  constructor(session: Session) {
    this.#session = session;
  }

  async get(reviewId: string): Promise<StoredCase | undefined> {
    const rows = await this.#session.rows(GET, [reviewId]);
    const [first] = rows;
    // Without its static columns there is no case, whatever has outlived them.
    const version = first === undefined ? undefined : numberIn(first, 'version');
    const lives = first === undefined ? undefined : numberIn(first, 'lives');
    if (first === undefined || version === undefined || lives === undefined) return undefined;
    const parts = rows.map((row) => textIn(row, 'part')).filter((part) => part !== undefined);
    return {
      review: caseOf(reviewId, first, rows),
      version,
      createOp: textIn(first, 'create_op')!,
      endsAt: performance.now() / 1000 + lives,
      ops: new Set(
        parts.filter((part) => part.startsWith(CHANGED)).map((part) => part.slice(CHANGED.length)),
      ),
      parts,
    };
  }

  /** @returns false where another case has this id */
  async create(review: ReviewCase, op: string, now: number): Promise<boolean> {
    const { bindings } = review;
    const { applied, current } = await this.#session.decide({
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
    });
    return applied || (current !== undefined && textIn(current, 'create_op') === op);
  }

  /** @returns false where it has changed since it was read, so that the rule must be asked again */
  async change(stored: StoredCase, changed: ReviewCase, op: string, now: number): Promise<boolean> {
    // What the server says is left of it, so that all of it ends together, whatever the clocks say. Never 0,
    // which is for ever.
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
    const { applied } = await this.#session.decide(
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
      { query: SET_WITNESS, params: [reviewId, CHANGED + op, now, ttl] },
    );
    if (applied) return true;
    // Refused by another change, or by this one, of an attempt whose answer was lost.
    return (await this.get(reviewId))?.ops.has(op) ?? false;
  }

  /**
   * Removes the case, whatever its state. The witness of its creation stays for a while: the same statement,
   * sent to a node that hung before another one answered, would bring the case back.
   * @param first what has to be done while the case still tells of it; repeatable
   */
  async remove(
    reviewId: string,
    first: (review: ReviewCase) => Promise<void> = async () => undefined,
  ): Promise<void> {
    for (let stored = await this.get(reviewId); stored !== undefined; stored = await this.get(reviewId)) {
      await first(stored.review);
      await this.#session.decide(
        { query: REMOVE, params: [REMEMBERED_SECONDS, stored.createOp, reviewId, stored.version] },
        ...stored.parts.map((part) => ({ query: REMOVE_PART, params: [reviewId, part] })),
      );
    }
  }
}

function caseOf(reviewId: string, row: Row, rows: readonly Row[]): ReviewCase {
  const outcome = textIn(row, 'outcome');
  const resolvedAt = numberIn(row, 'resolved_at');
  const requests = rows
    .filter((each) => textIn(each, 'part')?.startsWith(EVIDENCE) === true)
    .sort((a, b) => numberIn(a, 'position')! - numberIn(b, 'position')!);
  return {
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
    ...(outcome === undefined ? {} : { outcome: outcome as ReviewOutcome }),
    createdAt: numberIn(row, 'created_at')!,
    updatedAt: numberIn(row, 'updated_at')!,
    ...(resolvedAt === undefined ? {} : { resolvedAt }),
    expiresAt: numberIn(row, 'expires_at')!,
    evidenceRequests: requests.map(requestOf),
  };
}

function requestOf(row: Row): EvidenceRequest {
  const responseReference = textIn(row, 'response_reference');
  return {
    requestId: textIn(row, 'request_id')!,
    kind: textIn(row, 'part')!.slice(EVIDENCE.length) as EvidenceKind,
    status: textIn(row, 'request_status') as EvidenceStatus,
    ...(responseReference === undefined ? {} : { responseReference }),
    createdAt: numberIn(row, 'requested_at')!,
    updatedAt: numberIn(row, 'changed_at')!,
  };
}
