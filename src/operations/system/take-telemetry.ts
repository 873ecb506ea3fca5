import { DomainError } from '../../domain/errors.js';
import { isProductEvent } from '../../domain/product-event.js';
import type { Observer } from '../../ports/observer.js';

/**
 * "Content-free product telemetry": counts under names of a closed list; all of a report or nothing of it.
 */
export function takeTelemetry(
  observer: Observer,
  events: readonly { readonly name: string; readonly count: number; readonly at: number }[],
): { readonly accepted: number } {
  for (const { name } of events)
    if (!isProductEvent(name))
      throw new DomainError('invalid_request', 'There is no event of that name.', {
        reason: 'invalid_member',
      });
  for (const { name, count } of events) observer.productEvent(name, count);
  return { accepted: events.length };
}
