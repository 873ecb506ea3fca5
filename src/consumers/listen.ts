import { PoisonError } from '../domain/batch-delivery.js';
import { DomainError, isRecordDamaged } from '../domain/errors.js';
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
 * A consumer that gives an event to the dead letters which it cannot take for any reason but that a server
 * does not answer: a damaged record, a row that cannot be read, a defect. Given again and again the event
 * would hold up all those behind it.
 */
export function undamaged(consumer: EventHandler): EventHandler {
  return async (events) => {
    try {
      await consumer(events);
    } catch (error) {
      if (error instanceof PoisonError || (error instanceof DomainError && error.code === 'unavailable'))
        throw error;
      // Names of errors are of the code, never of the event.
      const reason = isRecordDamaged(error)
        ? 'a record that it needs is damaged'
        : `its consumer failed: ${error instanceof Error ? error.name : typeof error}`;
      throw new PoisonError(reason, { cause: error });
    }
  };
}
