import { DomainError, isRecordDamaged } from '../../../domain/errors.js';
import { timeBucketOf } from '../commit/time-bucket.js';
import { numberIn, type Session, textIn } from '../driver/session.js';
import type { EvidenceRows } from './evidence-rows.js';
import { isInState, type ProofRows } from './proof-rows.js';

const TIME_BUCKET_SECONDS = 600;
/** Time for which a time bucket stays listed after its end, for processes that reserve with a slow clock. */
const LISTED_SECONDS = 86_400;
const STEP = 200;

const LIST_TIME_BUCKET = "INSERT INTO proof_reserved_bucket (all_buckets, bucket) VALUES ('all', ?)";
const UNLIST_TIME_BUCKET = "DELETE FROM proof_reserved_bucket WHERE all_buckets = 'all' AND bucket = ?";
const TIME_BUCKETS = "SELECT bucket FROM proof_reserved_bucket WHERE all_buckets = 'all' AND bucket <= ?";
const SET = 'INSERT INTO proof_reserved (bucket, reserved_at, proof_id) VALUES (?, ?, ?)';
const DELETE = 'DELETE FROM proof_reserved WHERE bucket = ? AND reserved_at = ? AND proof_id = ?';
const OLD =
  'SELECT reserved_at, proof_id FROM proof_reserved WHERE bucket = ? AND (reserved_at, proof_id) > (?, ?) AND (reserved_at) < (?) LIMIT ?';
const RESERVE =
  "INSERT INTO proof (proof_id, partner_id, state, reserved_at, mac) VALUES (?, ?, 'pending', ?, ?) IF NOT EXISTS";
const TAKE_BACK = "DELETE FROM proof WHERE proof_id = ? IF state = 'pending' AND reserved_at = ?";

/**
 * Ids that are reserved and not issued yet. The entry by age is written before the row: a row without an
 * entry would never be collected.
 */
export class Reservations {
  readonly #session: Session;
  readonly #rows: ProofRows;
  readonly #evidence: EvidenceRows;

  constructor(session: Session, rows: ProofRows, evidence: EvidenceRows) {
    this.#session = session;
    this.#rows = rows;
    this.#evidence = evidence;
  }

  async reserve(proofId: string, partnerId: string, now: number): Promise<void> {
    const timeBucket = timeBucketOf(now, TIME_BUCKET_SECONDS);
    await this.#session.write(LIST_TIME_BUCKET, [timeBucket]);
    await this.#session.write(SET, [timeBucket, now, proofId]);
    const { applied, current } = await this.#session.lightweightTransaction({
      query: RESERVE,
      params: [
        proofId,
        partnerId,
        now,
        this.#rows.codeOf({ proofId, partnerId, state: 'pending', reservedAt: now }),
      ],
    });
    // A pending row of the same partner is of this call. An entry that is left over points at nothing
    // pending, and `collect` removes it.
    if (
      !applied &&
      (current === undefined ||
        textIn(current, 'state') !== 'pending' ||
        textIn(current, 'partner_id') !== partnerId)
    )
      throw new DomainError('conflict', 'This id is taken.');
  }

  /** Removes the entry of an id that was issued or taken back. */
  async remove(proofId: string, reservedAt: number): Promise<void> {
    await this.#session.write(DELETE, [timeBucketOf(reservedAt, TIME_BUCKET_SECONDS), reservedAt, proofId]);
  }

  /** Takes back ids that were reserved before a time. @returns the ids */
  async collect(before: number): Promise<readonly string[]> {
    const collected: string[] = [];
    for (const row of await this.#session.rows(TIME_BUCKETS, [timeBucketOf(before, TIME_BUCKET_SECONDS)])) {
      const timeBucket = numberIn(row, 'bucket')!;
      let after = { reservedAt: -1, proofId: '' };
      for (;;) {
        const entries = (
          await this.#session.rows(OLD, [timeBucket, after.reservedAt, after.proofId, before, STEP])
        ).map((entry) => ({
          reservedAt: numberIn(entry, 'reserved_at')!,
          proofId: textIn(entry, 'proof_id')!,
        }));
        const taken = await Promise.all(
          entries.map(async (entry) => ((await this.#takeBack(entry)) ? [entry.proofId] : [])),
        );
        collected.push(...taken.flat());
        if (entries.length < STEP) break;
        after = entries.at(-1)!;
      }
      if ((timeBucket + 1) * TIME_BUCKET_SECONDS + LISTED_SECONDS <= before)
        await this.#session.write(UNLIST_TIME_BUCKET, [timeBucket]);
    }
    return collected;
  }

  async #takeBack({
    proofId,
    reservedAt,
  }: {
    readonly proofId: string;
    readonly reservedAt: number;
  }): Promise<boolean> {
    const row = await this.#rows.row(proofId).catch((error: unknown) => {
      // Readers of the record meet the fault; other reservations need not wait for its repair.
      if (isRecordDamaged(error)) return 'damaged';
      throw error;
    });
    let taken = false;
    if (typeof row === 'object' && isInState(row, 'pending') && numberIn(row, 'reserved_at') === reservedAt) {
      const { applied, current } = await this.#session.lightweightTransaction({
        query: TAKE_BACK,
        params: [proofId, reservedAt],
      });
      // A row that is gone was taken back by this call or by another process: its files may go either way.
      taken = applied || current === undefined;
    }
    // Before the entry: without it nobody would look for the evidence again. A row that is gone was taken back
    // by a call that may have died here.
    if (taken || row === undefined) await this.#evidence.remove({ proofId, reservedAt });
    await this.remove(proofId, reservedAt);
    return taken;
  }
}
