import { DomainError } from '../../../core/domain/errors.js';
import { isProductEvent } from '../../domain/product-event.js';
import type { Observer } from '../../ports/observer.js';
import type { Caller } from '../caller.js';
import type { RateLimits } from '../usage/rate-limits.js';

/**
 * Returns the configured address of a product's download.
 * @throws DomainError `not_found`
 */
export function findDownload(
  /** The addresses by `product/platform`. */
  { downloads }: { readonly downloads: ReadonlyMap<string, string> },
  { product, platform }: { readonly product: string; readonly platform: string },
): string {
  const address = downloads.get(`${product}/${platform}`);
  if (address === undefined) throw new DomainError('not_found', 'There is no such download.');
  return address;
}

/**
 * Counts product events by name, without content. Names come from a closed list. One unknown name refuses the
 * whole report.
 * @throws DomainError `rate_limited` / `rate_exceeded` when the partner reports more events than its share of
 * the counters, which all partners use
 */
export function takeTelemetry(
  { observer, limits }: { readonly observer: Observer; readonly limits: RateLimits },
  { partnerId, plan }: Pick<Caller, 'partnerId' | 'plan'>,
  events: readonly { readonly name: string; readonly count: number; readonly at: number }[],
): { readonly accepted: number } {
  for (const { name } of events)
    if (!isProductEvent(name))
      throw new DomainError('invalid_request', 'No event has this name.', {
        reason: 'invalid_member',
      });
  const total = events.reduce((sum, { count }) => sum + count, 0);
  limits.spend(partnerId, plan, 'product_events', total);
  for (const { name, count } of events) observer.productEvent(name, count);
  return { accepted: events.length };
}
