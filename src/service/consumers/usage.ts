import { PoisonError } from '../domain/batch-delivery.js';
import type { ServiceEvent, UsageEvent } from '../domain/events.js';
import type { EventHandler } from '../ports/bus.js';
import type { UsageStore } from '../ports/stores.js';

/** The most units of one event. A daily total has room for a thousand of these. */
const MOST_UNITS = 2_000_000;

/** Returns the consumer that adds events to daily totals exactly once (rule 15.2). */
export function usageConsumer({
  stores,
}: {
  readonly stores: Pick<UsageStore, 'aggregateUsage'>;
}): EventHandler {
  return async (events) => stores.aggregateUsage(events.map(checked));
}

function checked(event: ServiceEvent): UsageEvent {
  if (event.topic !== 'usage') throw new PoisonError('not a count of units');
  const { source, from, to, counts } = event.data;
  if (to <= from) throw new PoisonError('the span is empty');
  // The numbers of a billed source are units, so that daily totals can be compared with the month's quota.
  const units = counts.reduce((sum, count) => sum + count.units, 0);
  // A total that a store cannot hold would fail again and again.
  if (units > MOST_UNITS) throw new PoisonError('the event counts too many units');
  if (source.startsWith('billed/') && units !== to - from)
    throw new PoisonError('the units do not match the span');
  return event;
}
