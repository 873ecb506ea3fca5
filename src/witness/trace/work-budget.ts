import { DomainError } from '../../core/domain/errors.js';

/**
 * The work that the replay of one trace may take. A unit is about a microsecond of a slow processor. The number of
 * units depends only on the bytes of the trace, so every machine refuses the same traces.
 */
export const WORK_UNITS = 10_000_000;

/** The units of each kind of work. They were measured, and are rounded up. */
export const WORK = {
  /** Verifying one signature of the device. */
  signature: 100,
  /** Hashing and splitting one segment, in each of the two passes. */
  segment: 10,
  /** Decoding and following one event. */
  event: 1,
  /** Visiting a clip, a source, a derivation or a point of the tempo map at the end of the replay. */
  visit: 1,
  /** Adding a span to the placements of an import. Spans are cheap and may be sixteen million. */
  span: 1 / 16,
} as const;

/** Counts the work of one replay. */
export class WorkBudget {
  #left: number;

  constructor(units: number = WORK_UNITS) {
    this.#left = units;
  }

  get left(): number {
    return this.#left;
  }

  /**
   * Takes units from the budget, before the work is done.
   * @throws DomainError `unprocessable` / `trace_too_large` when fewer units are left
   */
  spend(units: number): void {
    this.#left -= units;
    if (this.#left < 0)
      throw new DomainError('unprocessable', 'Replaying the trace takes more work than allowed.', {
        reason: 'trace_too_large',
      });
  }

  /** Takes the units of sorting so many items. */
  spendOnSorting(items: number): void {
    this.spend(items * WORK.visit * Math.ceil(Math.log2(items + 1)));
  }
}
