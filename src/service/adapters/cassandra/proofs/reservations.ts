import { DomainError, isRecordDamaged } from '../../../../core/domain/errors.js';
import type { Pointer, Pointers, Visited } from '../commit/pointers.js';
import { pointerBucketOf, startOf } from '../commit/time-bucket.js';
import type { Lease } from '../driver/lease.js';
import type { ProofRows } from './proof-rows.js';

/** The kind of the pointers to issued proofs, and to ids under which none was issued. */
export const ISSUING = 'proof_issued';

/** The age in milliseconds from which another process's reservation is taken back, longer than any upload. */
const ABANDONED_MS = 3_600_000;
/** The milliseconds after which an id that was taken back is given out again, for files that were sent late. */
const AGAIN_MS = 86_400_000;
/** The most ids that wait to be given out. */
const WAITING = 10_000;

interface Reservation {
  readonly partnerId: string;
  /** The time of the reservation in unix seconds, by the caller's clock. */
  readonly reservedAt: number;
  readonly pointer: Promise<Pointer>;
}

/**
 * Ids that are reserved and not issued yet. A reservation is the pointer that its issuing needs anyway, and a
 * note in this process: the proof is issued by the process that reserved its id. Where a process dies the
 * pointer is left: the id is made void, so that nothing is issued under it any more, and given out for its
 * files to be removed.
 */
export class Reservations {
  readonly #pointers: Pointers;
  readonly #rows: ProofRows;
  readonly #lease: Lease;
  readonly #own = new Map<string, Reservation>();
  /** The ids whose files may be left, which the sweep found. */
  readonly #abandoned = new Set<string>();
  /** The ids that were given out since their pointers were visited. */
  readonly #givenOut = new Set<string>();

  /** @param lease of the work on what other processes have left */
  constructor(pointers: Pointers, rows: ProofRows, lease: Lease) {
    this.#pointers = pointers;
    this.#rows = rows;
    this.#lease = lease;
  }

  async reserve(proofId: string, partnerId: string, now: number): Promise<void> {
    const known = this.#own.get(proofId);
    if (known !== undefined && known.partnerId !== partnerId) throw idTaken();
    if (known === undefined) {
      const pointer = this.#pointers.put(proofId, ISSUING, proofId);
      this.#own.set(proofId, { partnerId, reservedAt: now, pointer });
      try {
        const [head] = await Promise.all([this.#rows.head(proofId), pointer]);
        if (head?.state === 'void') throw givenUp();
        if (head !== undefined) throw idTaken();
      } catch (error) {
        this.#own.delete(proofId);
        throw error;
      }
    }
    await known?.pointer;
  }

  get(proofId: string): Reservation | undefined {
    return this.#own.get(proofId);
  }

  /** Forgets an id that was issued, or can not be issued any more. */
  end(proofId: string): void {
    this.#own.delete(proofId);
  }

  /** Visits a pointer whose issuing was not decided. */
  async visit(pointer: Pointer): Promise<Visited> {
    const { bucket, key: proofId } = pointer;
    if (this.#own.has(proofId)) return 'stays';
    const head = await this.#rows.serialHead(proofId);
    if (head !== undefined && head.state !== 'void') return 'removed';
    if (head === undefined && this.#pointers.now() - startOf(bucket) < ABANDONED_MS) return 'stays';
    if (!this.#givenOut.has(proofId)) {
      if (this.#abandoned.size < WAITING) this.#abandoned.add(proofId);
      return 'stays';
    }
    if (head === undefined) return 'stays';
    this.#givenOut.delete(proofId);
    // The pointer is in a time bucket of after the id was made void: its files were removed twice.
    if (startOf(bucket) > head.voidAt! * 1000 + AGAIN_MS / 2) return 'removed';
    await this.#pointers.putInto({ ...pointer, bucket: pointerBucketOf(this.#pointers.now() + AGAIN_MS) });
    return 'removed';
  }

  /**
   * Takes back ids that were reserved before a time.
   * @param remove removes the files of an id; one for which that failed comes again with its pointer
   */
  async collect(before: number, remove: (proofId: string) => Promise<boolean>): Promise<void> {
    const old = [...this.#own].flatMap(([proofId, { reservedAt }]) => (reservedAt < before ? [proofId] : []));
    // Every process sees them, and who has the lease gives them out.
    if (this.#abandoned.size > 0 && !(await this.#lease.hold())) this.#abandoned.clear();
    for (const proofId of [...old, ...this.#abandoned]) {
      const isVoid = await this.#rows
        .voidId(proofId, Math.floor(this.#pointers.now() / 1000))
        .catch((error: unknown) => {
          // Readers of the record meet the fault; other reservations need not wait for its repair.
          if (isRecordDamaged(error)) return false;
          throw error;
        });
      this.#own.delete(proofId);
      const isRemoved = isVoid && (await remove(proofId));
      this.#abandoned.delete(proofId);
      if (!isRemoved) continue;
      this.#givenOut.add(proofId);
      if (this.#givenOut.size > WAITING) this.#givenOut.delete(this.#givenOut.keys().next().value!);
    }
  }
}

function idTaken(): DomainError {
  return new DomainError('conflict', 'This id is taken.');
}

/** Returns the error for an id of an interrupted call. Only an import repeats an id, so only it meets this error. */
function givenUp(): DomainError {
  return new DomainError(
    'conflict',
    'An earlier call with this id was interrupted, and its id was given up. Repeat the call after three days.',
  );
}
