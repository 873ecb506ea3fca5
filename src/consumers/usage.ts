import { PoisonError } from '../domain/batch-delivery.js';
import type { ServiceEvent, UsageEvent } from '../domain/events.js';
import type { EventHandler } from '../ports/bus.js';
import type { UsageStore } from '../ports/stores.js';

/** Greatest number of one event. A day's total has capacity for a thousand such. */
const MOST_UNITS = 2_000_000;

/** Aggregates events into per-day consumption exactly once (rule 15.2). */
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
  // The numbers of a billed source are units, so that the day's totals can be held against the month's quota.
  const units = counts.reduce((sum, count) => sum + count.units, 0);
  // A total that a store cannot hold would be refused again and again.
  if (units > MOST_UNITS) throw new PoisonError('the units are more than anybody counts');
  if (source.startsWith('billed/') && units !== to - from)
    throw new PoisonError('the units are not those of the span');
  return event;
}
