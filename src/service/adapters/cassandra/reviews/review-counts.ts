import { REVIEW_LIFE_SECONDS, type ReviewBounds, type ReviewCase } from '../../../domain/review.js';
import { shardOf } from '../commit/time-bucket.js';
import { aheadOfClocks, numberIn, type Session, textIn } from '../driver/session.js';
import { caseOf } from './review-rows.js';

const ADD =
  'INSERT INTO review_by_partner (partner_id, shard, proof_id, created_at, review_id) VALUES (?, ?, ?, ?, ?) USING TTL ?';
const FORGET =
  'DELETE FROM review_by_partner USING TIMESTAMP ? WHERE partner_id = ? AND shard = ? AND proof_id = ?';
const LIST_PROOF =
  'SELECT created_at FROM review_by_partner WHERE partner_id = ? AND shard = ? AND proof_id = ? AND created_at > ? LIMIT ?';
const LIST_WHOLE_PROOF =
  'SELECT created_at, review_id FROM review_by_partner WHERE partner_id = ? AND shard = ? AND proof_id = ? AND created_at > ?';
const FIND = 'SELECT part FROM record WHERE proof_id = ? AND part IN ?';
// ALLOW FILTERING reads the partner's partitions alone, because their keys are given.
const COUNT_ALL =
  'SELECT count(*) AS reviews, min(created_at) AS oldest FROM review_by_partner WHERE partner_id = ? AND shard IN ? AND created_at > ? ALLOW FILTERING';

/** The number of partitions of one partner. */
const PARTITIONS = 32;
export const ALL_SHARDS: readonly number[] = Array.from({ length: PARTITIONS }, (_, shard) => shard);

export function shardOfProof(proofId: string): number {
  return shardOf(proofId, PARTITIONS);
}

/**
 * Parts of the reviews that a partner may still create. A process counts again when it has created one part:
 * so eight processes keep the bound together.
 */
const SHARES = 8;
/** The number of reviews that one read looks for. */
const FOUND_AT_ONCE = 100;
/** The milliseconds that a partner at its bound is refused without a count, unless its oldest review ends before. */
const REFUSED_MS = 10_000;
/** The most partners whose totals are remembered. */
const PARTNERS = 10_000;

type CountedReview = Pick<ReviewCase, 'partnerId' | 'proofId' | 'createdAt' | 'reviewId'>;

interface Total {
  readonly reviews: number;
  readonly oldest: number | undefined;
  readonly countedAt: number;
  /** The number of creations until the next count. */
  left: number;
}

/**
 * Counts of a partner's reviews, from rows beside the reviews. These rows expire with their reviews, so no stored
 * number can become wrong. Earlier versions left rows of reviews that did not come to be. The rows of one proof
 * are read each time, up to the bound. If they reach it, the reviews themselves are read. All rows of a partner are
 * counted at times: the fewer reviews it may still create, the more often.
 */
export class ReviewCounts {
  readonly #session: Session;
  readonly #totals = new Map<string, Total>();
  readonly #counting = new Map<string, Promise<Total>>();

  constructor(session: Session) {
    this.#session = session;
  }

  /**
   * @returns when the oldest review ends that keeps this one from coming to be; undefined where none does
   */
  async fullUntil(
    { partnerId, proofId }: ReviewCase,
    now: number,
    bounds: ReviewBounds,
  ): Promise<number | undefined> {
    const ended = now - REVIEW_LIFE_SECONDS;
    const [onProof, total] = await Promise.all([
      this.#session.rows(LIST_PROOF, [partnerId, shardOfProof(proofId), proofId, ended, bounds.perProof]),
      this.#total(partnerId, ended, bounds),
    ]);
    if (onProof.length >= bounds.perProof) {
      const created = await this.#createdOn(partnerId, proofId, ended);
      if (created.length >= bounds.perProof) return created[0]! + REVIEW_LIFE_SECONDS;
    }
    if (total.reviews >= bounds.perPartner) return total.oldest! + REVIEW_LIFE_SECONDS;
    total.left -= 1;
    return undefined;
  }

  /** Writes the row of a review that exists. The head of its proof names the partner then, so `forget` removes it. */
  async add({ partnerId, proofId, createdAt, reviewId }: CountedReview, ttl: number): Promise<void> {
    await this.#session.write(ADD, [partnerId, shardOfProof(proofId), proofId, createdAt, reviewId, ttl]);
  }

  /**
   * Removes the rows of an erased proof, with a timestamp ahead of every clock: the proof gets no more
   * reviews.
   */
  async forget(partnerId: string, proofId: string): Promise<void> {
    await this.#session.write(FORGET, [aheadOfClocks(), partnerId, shardOfProof(proofId), proofId]);
    this.#totals.delete(partnerId);
  }

  /** Returns the times of creation of a partner's present reviews of a proof, oldest first. */
  async #createdOn(partnerId: string, proofId: string, ended: number): Promise<readonly number[]> {
    const key = [partnerId, shardOfProof(proofId), proofId, ended];
    const rows = await this.#session.rows(LIST_WHOLE_PROOF, key);
    const created: number[] = [];
    for (let at = 0; at < rows.length; at += FOUND_AT_ONCE) {
      const some = rows.slice(at, at + FOUND_AT_ONCE);
      const parts = some.map((row) => caseOf(textIn(row, 'review_id')!));
      const there = await this.#session.rows(FIND, [proofId, parts]);
      const found = new Set(there.map((row) => textIn(row, 'part')));
      for (const [i, row] of some.entries())
        if (found.has(parts[i])) created.push(numberIn(row, 'created_at')!);
    }
    return created;
  }

  async #total(partnerId: string, ended: number, { perPartner }: ReviewBounds): Promise<Total> {
    const known = this.#totals.get(partnerId);
    if (
      known !== undefined &&
      (known.reviews < perPartner
        ? known.left > 0
        : ended < known.oldest! && performance.now() - known.countedAt < REFUSED_MS)
    )
      return known;
    // Callers that ask while a count runs share it.
    const counting =
      this.#counting.get(partnerId) ??
      this.#count(partnerId, ended, perPartner).finally(() => this.#counting.delete(partnerId));
    this.#counting.set(partnerId, counting);
    return counting;
  }

  async #count(partnerId: string, ended: number, perPartner: number): Promise<Total> {
    const row = (await this.#session.first(COUNT_ALL, [partnerId, ALL_SHARDS, ended]))!;
    const reviews = numberIn(row, 'reviews')!;
    const total: Total = {
      reviews,
      oldest: numberIn(row, 'oldest'),
      countedAt: performance.now(),
      left: Math.floor((perPartner - reviews) / SHARES),
    };
    this.#totals.delete(partnerId);
    this.#totals.set(partnerId, total);
    if (this.#totals.size > PARTNERS) this.#totals.delete(this.#totals.keys().next().value!);
    return total;
  }
}
