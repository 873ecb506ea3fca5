import { createHash } from 'node:crypto';
import type { ReviewBindings, ReviewCase } from '../../../domain/review.js';
import type { ReviewReplay } from '../../../ports/stores.js';
import type { Blobs } from '../driver/blobs.js';
import { numberIn, type Row, type Session, type Statement, textIn } from '../driver/session.js';
import { type Head, type ProofRows, standing } from '../proofs/proof-rows.js';

const FIND = 'SELECT proof_id FROM review_proof WHERE review_id = ?';
const POINT = 'INSERT INTO review_proof (review_id, proof_id) VALUES (?, ?) USING TTL ?';
const CREATE =
  'INSERT INTO record (proof_id, part, version, op, data) VALUES (?, ?, 1, ?, ?) IF NOT EXISTS USING TTL ?';
const CHANGE =
  'UPDATE record USING TTL ? SET version = ?, op = ?, data = ? WHERE proof_id = ? AND part = ? IF version = ?';
const TAKE = 'INSERT INTO record (proof_id, part, op, data) VALUES (?, ?, ?, ?) IF NOT EXISTS USING TTL ?';
const TAKE_OVER = 'UPDATE record USING TTL ? SET op = ?, data = ? WHERE proof_id = ? AND part = ? IF op = ?';
const RELEASE = 'DELETE FROM record WHERE proof_id = ? AND part = ? IF op = ?';

const SPARE_SECONDS = 3600;

/** The members that make a review unique among unresolved reviews. */
export type ReviewScope = Pick<ReviewCase, 'proofId' | 'partnerId' | 'bindings'>;

/** A review as its row holds it. */
export interface StoredReview {
  readonly review: ReviewCase;
  readonly version: number;
  /** The id of the operation that created the review. */
  readonly createOp: string;
  /** The time at which the server ends the review, in seconds of this process's monotonic clock. */
  readonly endsAt: number;
}

interface StoredCase {
  readonly review: ReviewCase;
  readonly createOp: string;
}

/** The holder of a place: the one unresolved review of a partner for a proof and bindings. */
export interface Place {
  readonly reviewId: string;
  readonly expiresAt: number;
  /** The id of the operation that took the place. */
  readonly op: string;
}

/** The content of the row of an Idempotency-Key: the review that was created under the key. */
interface StoredKey {
  readonly requestSha256: string;
  readonly reviewId: string;
  readonly createdAt: number;
  readonly expiresAt: number;
}

/** The row of an Idempotency-Key, written in the batch that creates the review. */
export interface KeyRow extends StoredKey {
  /** The id of the operation that created the review. */
  readonly op: string;
}

/** The rows on a proof about one review, or about one that shall be created. */
export interface OnProof {
  readonly head?: Head;
  readonly stored?: StoredReview;
  readonly place?: Place;
  readonly keyRow?: KeyRow;
}

/**
 * Returns the time to live of everything that is written at `now` for a new review: its 180 days and an hour, because
 * `expiresAt` and the caller's clock decide what exists. A write without it would leave a part of the review for good.
 */
export function ttlOf({ expiresAt }: Pick<ReviewCase, 'expiresAt'>, now: number): number {
  return expiresAt - now + SPARE_SECONDS;
}

/**
 * Reviews, each one row in the partition of its proof, and the places of unresolved ones. Every conditional batch
 * demands that the proof is still issued, so that no review is left beside a tombstone.
 */
export class ReviewRows {
  readonly #session: Session;
  readonly #blobs: Blobs;
  readonly #proofs: ProofRows;

  constructor(session: Session, blobs: Blobs, proofs: ProofRows) {
    this.#session = session;
    this.#blobs = blobs;
    this.#proofs = proofs;
  }

  /** Returns the id of a review's proof. The review need not exist. */
  async proofOf(reviewId: string): Promise<string | undefined> {
    const row = await this.#session.first(FIND, [reviewId]);
    return row && textIn(row, 'proof_id');
  }

  /** Writes the row that leads from a review's id to its proof, before the review, so that every review is found. */
  async point({ reviewId, proofId }: ReviewCase, ttl: number): Promise<void> {
    await this.#session.write(POINT, [reviewId, proofId, ttl]);
  }

  /** Returns a review and its proof's head, by one read. */
  async get(proofId: string, reviewId: string): Promise<OnProof> {
    const name = caseOf(reviewId);
    const { head, rows } = await this.#proofs.parts(proofId, name);
    const row = rows.get(name);
    return { ...(head && { head }), ...(row && { stored: this.#storedOf(proofId, reviewId, row) }) };
  }

  /**
   * Returns a review, the place of its bindings, its proof's head and the row of an Idempotency-Key, by one read.
   * @param key the digest of the Idempotency-Key
   */
  async getWithPlace(scope: ReviewScope, reviewId: string, key?: string): Promise<OnProof> {
    const { proofId } = scope;
    const [name, place] = [caseOf(reviewId), placeOf(scope)];
    const keyPart = key && keyPartOf(key);
    const { head, rows } = await this.#proofs.parts(proofId, name, place, ...(keyPart ? [keyPart] : []));
    const row = rows.get(name);
    const placed = rows.get(place);
    const keyed = keyPart && rows.get(keyPart);
    return {
      ...(head && { head }),
      ...(row && { stored: this.#storedOf(proofId, reviewId, row) }),
      ...(placed && { place: this.#placeOf(proofId, place, placed) }),
      ...(keyPart && keyed && { keyRow: this.#keyRowOf(proofId, keyPart, keyed) }),
    };
  }

  /**
   * Returns the batch that creates a review on an issued proof.
   * @param former the holder of the place, if it has ended
   * @param keyed the Idempotency-Key, with its row if that has ended
   * @param writtenAt the unix second from which the review's life counts, its creation by default
   */
  creating(
    review: ReviewCase,
    head: Head,
    former: Place | undefined,
    op: string,
    keyed?: { readonly replay: ReviewReplay; readonly former: KeyRow | undefined; readonly now: number },
    writtenAt = review.createdAt,
  ): readonly Statement[] {
    const { proofId, reviewId, partnerId, expiresAt } = review;
    const ttl = ttlOf(review, writtenAt);
    const place = placeOf(review);
    const taken = this.#blobs.encode(partLabelOf(proofId, place, op), { reviewId, expiresAt });
    const stored: StoredCase = { review, createOp: op };
    return [
      head.reviewers.includes(partnerId) ? standing(head) : standing(head, partnerId),
      taking({ proofId, part: place, op, data: taken, ttl }, former),
      {
        query: CREATE,
        params: [
          proofId,
          caseOf(reviewId),
          op,
          this.#blobs.encode(labelOf(proofId, reviewId, 1), stored),
          ttl,
        ],
      },
      ...(keyed === undefined ? [] : [this.#keyTaking(review, op, keyed)]),
    ];
  }

  /**
   * Returns the batch that inserts a review of another store on an issued proof, for the rest of its life.
   * @param isOpen true if the review takes the place of its bindings
   */
  moving(
    review: ReviewCase,
    head: Head,
    {
      isOpen,
      replay,
      op,
      now,
    }: {
      readonly isOpen: boolean;
      readonly replay: ReviewReplay | undefined;
      readonly op: string;
      readonly now: number;
    },
  ): readonly Statement[] {
    const [demand, place, ...others] = this.creating(
      review,
      head,
      undefined,
      op,
      replay && { replay, former: undefined, now },
      now,
    );
    return [demand!, ...(isOpen ? [place!] : []), ...others];
  }

  /**
   * Returns the batch that changes a review if it is still as it was read.
   * @param place the review's own place, where the change gives it up
   */
  changing({
    stored,
    head,
    changed,
    place,
    op,
  }: {
    readonly stored: StoredReview;
    readonly head: Head;
    readonly changed: ReviewCase;
    readonly place?: Place;
    readonly op: string;
  }): readonly Statement[] {
    const { proofId, reviewId } = stored.review;
    const version = stored.version + 1;
    const blob = this.#blobs.encode(labelOf(proofId, reviewId, version), {
      review: changed,
      createOp: stored.createOp,
    } satisfies StoredCase);
    // The remaining time according to the server, so that all of the review ends together if clocks differ. Never 0,
    // which would mean without an end.
    const ttl = Math.max(1, Math.round(stored.endsAt - performance.now() / 1000));
    return [
      standing(head),
      { query: CHANGE, params: [ttl, version, op, blob, proofId, caseOf(reviewId), stored.version] },
      ...(place === undefined
        ? []
        : [{ query: RELEASE, params: [proofId, placeOf(stored.review), place.op] }]),
    ];
  }

  #keyTaking(
    { proofId, reviewId, createdAt }: ReviewCase,
    op: string,
    {
      replay: { key, requestSha256, expiresAt },
      former,
      now,
    }: { readonly replay: ReviewReplay; readonly former: KeyRow | undefined; readonly now: number },
  ): Statement {
    const part = keyPartOf(key);
    const content: StoredKey = { requestSha256, reviewId, createdAt, expiresAt };
    const data = this.#blobs.encode(partLabelOf(proofId, part, op), content);
    return taking({ proofId, part, op, data, ttl: ttlOf({ expiresAt }, now) }, former);
  }

  #placeOf(proofId: string, place: string, row: Row): Place {
    const op = textIn(row, 'op')!;
    return { ...this.#blobs.decode<Omit<Place, 'op'>>(partLabelOf(proofId, place, op), row['data']), op };
  }

  #keyRowOf(proofId: string, part: string, row: Row): KeyRow {
    const op = textIn(row, 'op')!;
    return { ...this.#blobs.decode<StoredKey>(partLabelOf(proofId, part, op), row['data']), op };
  }

  #storedOf(proofId: string, reviewId: string, row: Row): StoredReview {
    const version = row['version'] as number;
    const { review, createOp } = this.#blobs.decode<StoredCase>(
      labelOf(proofId, reviewId, version),
      row['data'],
    );
    return { review, createOp, version, endsAt: performance.now() / 1000 + numberIn(row, 'lives')! };
  }
}

/** Returns the bindings as text, for the key of the keyed mutex and the name of a place. */
export function textOf({ creatorId, accountId, submissionId, trackId }: ReviewBindings): string {
  return JSON.stringify([creatorId, accountId, submissionId, trackId]);
}

/** Returns the part of the proof's partition that has a review. */
export function caseOf(reviewId: string): string {
  return `case/${reviewId}`;
}

function placeOf({ partnerId, bindings }: ReviewScope): string {
  return `place/${partnerId}/${createHash('sha256').update(textOf(bindings)).digest('base64url')}`;
}

function keyPartOf(key: string): string {
  return `key/${key}`;
}

/** Returns the statement that takes a part of a proof's partition, or takes it over from a holder that has ended. */
function taking(
  row: {
    readonly proofId: string;
    readonly part: string;
    readonly op: string;
    readonly data: Buffer;
    readonly ttl: number;
  },
  former: { readonly op: string } | undefined,
): Statement {
  const { proofId, part, op, data, ttl } = row;
  return former === undefined
    ? { query: TAKE, params: [proofId, part, op, data, ttl] }
    : { query: TAKE_OVER, params: [ttl, op, data, proofId, part, former.op] };
}

/** Returns a part's label. The operation is in the label, so that no earlier holder passes for the present one. */
function partLabelOf(proofId: string, part: string, op: string): string {
  return `${proofId}/${part}/${op}`;
}

/** Returns a review's label. The version is in the label, so that no earlier row passes for the present one. */
function labelOf(proofId: string, reviewId: string, version: number): string {
  return `case/${proofId}/${reviewId}/${version}`;
}
