import { chargeBucketOf, chargeBucketsIn, minuteOf } from '../commit/time-bucket.js';
import { Watermark } from '../commit/watermark.js';
import type { Session } from '../driver/session.js';
import type { ChargeEvents } from './charge-events.js';
import type { Consumption } from './consumption.js';

/** Minutes after which an event that no consumer has aggregated is aggregated from the store. */
const LEFT_MINUTES = 60;
/**
 * Minutes between two passes, of all processes together. A pass reads over the ranges that were removed since the one
 * before it.
 */
const EVERY_MINUTES = 15;

/**
 * Aggregates old charges that reached no consumer, because the bus lost them or no consumer runs. An event that arrives
 * after all is recognized by its numbers.
 */
export class FoldLeft {
  readonly #partnerIds: () => Promise<readonly string[]>;
  readonly #events: ChargeEvents;
  readonly #consumption: Consumption;
  readonly #lastPass: Watermark;

  /**
   * @param partnerIds of all partners. A scan of the charges for their names would read over the dedupe rows that
   * have ended, of a partner without calls over all of them
   */
  constructor(
    session: Session,
    events: ChargeEvents,
    consumption: Consumption,
    partnerIds: () => Promise<readonly string[]>,
  ) {
    this.#partnerIds = partnerIds;
    this.#events = events;
    this.#consumption = consumption;
    this.#lastPass = new Watermark(session, 'fold');
  }

  /**
   * Does nothing where some process made a pass within `EVERY_MINUTES`. Two processes that begin together do the
   * same work twice, with the effect of once.
   * @throws the first failure, at the end: a damaged event holds up none but those of its own partner
   */
  async run(now: number): Promise<void> {
    const minute = minuteOf(now);
    const last = await this.#lastPass.read();
    if (last !== undefined && minute < last + EVERY_MINUTES) return;
    await this.#lastPass.write(minute);
    const before = chargeBucketOf(now) - chargeBucketsIn(LEFT_MINUTES);
    const failures: unknown[] = [];
    for (const partnerId of await this.#partnerIds()) {
      await this.#foldPartner(partnerId, before, now).catch((error: unknown) => failures.push(error));
    }
    if (failures.length > 0) throw failures[0];
  }

  async #foldPartner(partnerId: string, before: number, now: number): Promise<void> {
    let damage: unknown;
    for await (const { sound, failure } of this.#events.before(partnerId, before)) {
      damage ??= failure;
      await this.#consumption.aggregate(sound);
    }
    if (damage !== undefined) throw damage;
    // Also if nothing was left: one removed range replaces those of each writer's time buckets, which every read of
    // events would pass over as long as the nodes store them.
    await this.#events.removeBefore(partnerId, before, now);
  }
}
