import { DomainError, isRecordDamaged } from '../../../domain/errors.js';
import { numberIn, type Session, textIn } from '../driver/session.js';
import { isIn, type ProofRows } from './proof-rows.js';

const BUCKET_SECONDS = 600;
/** A bucket stays listed so long after its end, for processes that reserve in it with a slow clock. */
const LISTED_SECONDS = 86_400;
const STEP = 200;

const SET_BUCKET = "INSERT INTO proof_reserved_bucket (all_buckets, bucket) VALUES ('all', ?)";
const DELETE_BUCKET = "DELETE FROM proof_reserved_bucket WHERE all_buckets = 'all' AND bucket = ?";
const BUCKETS = "SELECT bucket FROM proof_reserved_bucket WHERE all_buckets = 'all' AND bucket <= ?";
const SET = 'INSERT INTO proof_reserved (bucket, reserved_at, proof_id) VALUES (?, ?, ?)';
const DELETE = 'DELETE FROM proof_reserved WHERE bucket = ? AND reserved_at = ? AND proof_id = ?';
const OLD =
  'SELECT reserved_at, proof_id FROM proof_reserved WHERE bucket = ? AND (reserved_at, proof_id) > (?, ?) AND (reserved_at) < (?) LIMIT ?';
const RESERVE =
  "INSERT INTO proof (proof_id, partner_id, state, reserved_at, mac) VALUES (?, ?, 'pending', ?, ?) IF NOT EXISTS";
const TAKE_BACK = "DELETE FROM proof WHERE proof_id = ? IF state = 'pending' AND reserved_at = ?";

/**
 * Ids that are reserved and not issued yet. The entry by age is written before the row: a row without one
 * would never be swept.
 */
export class Reservations {
  readonly #session: Session;
  readonly #rows: ProofRows;

  constructor(session: Session, rows: ProofRows) {
    this.#session = session;
    this.#rows = rows;
  }

  async reserve(proofId: string, partnerId: string, now: number): Promise<void> {
    const bucket = bucketOf(now);
    await this.#session.write(SET_BUCKET, [bucket]);
    await this.#session.write(SET, [bucket, now, proofId]);
    const { applied, current } = await this.#session.decide({
      query: RESERVE,
      params: [
        proofId,
        partnerId,
        now,
        this.#rows.codeOf({ proofId, partnerId, state: 'pending', reservedAt: now }),
      ],
    });
    // The row is its own witness; an entry that is left over points at nothing pending, and the sweep removes
    // it.
    if (
      !applied &&
      (current === undefined ||
        textIn(current, 'state') !== 'pending' ||
        textIn(current, 'partner_id') !== partnerId)
    )
      throw new DomainError('conflict', 'This id is taken.');
  }

  /** The proof has been issued. */
  async done(proofId: string, reservedAt: number): Promise<void> {
    await this.#session.write(DELETE, [bucketOf(reservedAt), reservedAt, proofId]);
  }

  async sweep(before: number): Promise<readonly string[]> {
    const swept: string[] = [];
    for (const row of await this.#session.rows(BUCKETS, [bucketOf(before)])) {
      const bucket = numberIn(row, 'bucket')!;
      let after = { reservedAt: -1, proofId: '' };
      for (;;) {
        const entries = (
          await this.#session.rows(OLD, [bucket, after.reservedAt, after.proofId, before, STEP])
        ).map((entry) => ({
          reservedAt: numberIn(entry, 'reserved_at')!,
          proofId: textIn(entry, 'proof_id')!,
        }));
        const taken = await Promise.all(
          entries.map(async (entry) => ((await this.#takeBack(entry)) ? [entry.proofId] : [])),
        );
        swept.push(...taken.flat());
        if (entries.length < STEP) break;
        after = entries.at(-1)!;
      }
      if ((bucket + 1) * BUCKET_SECONDS + LISTED_SECONDS <= before)
        await this.#session.write(DELETE_BUCKET, [bucket]);
    }
    return swept;
  }

  async #takeBack({
    proofId,
    reservedAt,
  }: {
    readonly proofId: string;
    readonly reservedAt: number;
  }): Promise<boolean> {
    const row = await this.#rows.row(proofId).catch((error: unknown) => {
      // Readers of the record meet the fault; the others need not wait for it.
      if (isRecordDamaged(error)) return undefined;
      throw error;
    });
    let taken = false;
    if (isIn(row, 'pending') && numberIn(row!, 'reserved_at') === reservedAt) {
      const { applied, current } = await this.#session.decide({
        query: TAKE_BACK,
        params: [proofId, reservedAt],
      });
      // Not there any more: by this call or another's sweep, and its files may go either way.
      taken = applied || current === undefined;
    }
    await this.done(proofId, reservedAt);
    return taken;
  }
}

function bucketOf(at: number): number {
  return Math.floor(at / BUCKET_SECONDS);
}
