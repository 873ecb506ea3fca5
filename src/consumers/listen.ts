import { PoisonError } from '../domain/batch-delivery.js';
import { isRecordDamaged } from '../domain/errors.js';
import { TOPICS, type Topic } from '../domain/events.js';
import type { AssetStore } from '../ports/assets.js';
import type { EventBus, EventHandler } from '../ports/bus.js';
import type { Observer } from '../ports/observer.js';
import type { Stores } from '../ports/stores.js';
import type { Clock } from '../ports/system.js';
import { erasureConsumer } from './erasure.js';
import { retentionConsumer } from './retention.js';
import { usageConsumer } from './usage.js';

export interface ConsumersDeps {
  readonly stores: Stores;
  readonly assets: AssetStore;
  readonly clock: Clock;
  readonly observer: Pick<Observer, 'events'>;
}

/** Gives the bus the consumer of each topic; before it starts. */
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
 * A consumer that gives an event with a damaged row to the dead letters: given again and again the event
 * would hold up all those behind it.
 */
export function undamaged(consumer: EventHandler): EventHandler {
  return async (events) => {
    try {
      await consumer(events);
    } catch (error) {
      throw isRecordDamaged(error)
        ? new PoisonError('a record that it needs is damaged', { cause: error })
        : error;
    }
  };
}
