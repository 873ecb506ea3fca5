import { DomainError, isRecordDamaged } from '../../core/domain/errors.js';
import { PoisonError } from '../domain/batch-delivery.js';
import { TOPICS, type Topic } from '../domain/events.js';
import type { AssetStore } from '../ports/assets.js';
import type { EventBus, EventHandler } from '../ports/bus.js';
import type { ErasureJournal } from '../ports/journals.js';
import type { Observer } from '../ports/observer.js';
import type { Stores } from '../ports/stores.js';
import type { Clock } from '../ports/system.js';
import { erasureConsumer } from './erasure.js';
import { retentionConsumer } from './retention.js';
import { usageConsumer } from './usage.js';

export interface ConsumersDeps {
  readonly stores: Stores;
  readonly assets: AssetStore;
  readonly journal: Pick<ErasureJournal, 'record'>;
  readonly clock: Clock;
  readonly observer: Pick<Observer, 'events'>;
}

/** Registers the consumer of each topic at the bus. Call it before the bus starts. */
export function listen(bus: Pick<EventBus, 'handle'>, deps: ConsumersDeps): void {
  const consumers: Readonly<Record<Topic, EventHandler>> = {
    erasure: erasureConsumer(deps),
    usage: usageConsumer(deps),
    retention: retentionConsumer(deps),
  };
  for (const topic of TOPICS) bus.handle(topic, observed(topic, consumers[topic], deps.observer));
}

function observed(topic: Topic, consumer: EventHandler, observer: Pick<Observer, 'events'>): EventHandler {
  return async (events) => {
    await undamaged(consumer)(events);
    observer.events(topic, 'handled', events.length);
  };
}

/**
 * Wraps a consumer so that an event moves to the dead letters when it fails for any reason except an
 * unavailable server. Examples are a damaged record, an unreadable row and a defect. If the event were
 * delivered again and again, it would block all later events.
 */
export function undamaged(consumer: EventHandler): EventHandler {
  return async (events) => {
    try {
      await consumer(events);
    } catch (error) {
      if (error instanceof PoisonError || (error instanceof DomainError && error.code === 'unavailable'))
        throw error;
      // Error names originate in the code, so they contain nothing of the event.
      const reason = isRecordDamaged(error)
        ? 'a record that the event needs is damaged'
        : `its consumer failed: ${error instanceof Error ? error.name : typeof error}`;
      throw new PoisonError(reason, { cause: error });
    }
  };
}
