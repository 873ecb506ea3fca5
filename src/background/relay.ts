import { pauseAfter } from '../async/backoff.js';
import type { Topic } from '../domain/events.js';
import type { EventBus } from '../ports/bus.js';
import type { Observer } from '../ports/observer.js';
import type { OutboxStore, WaitingEvent } from '../ports/stores.js';

/** Events of one round trip to the bus. */
const BATCH = 500;
/**
 * `firstMs` doubles with every failure up to `longestMs`; `idleMs` is how often the outbox is looked at
 * without being woken.
 */
const PAUSES = { firstMs: 100, longestMs: 5000, idleMs: 5000 };

export interface EventRelay {
  /** Begins to publish; events that wait from before go first. */
  start(): void;
  /** Finishes the batch that is under way. Safe to call twice. */
  stop(): Promise<void>;
}

export interface EventRelayDeps {
  readonly stores: OutboxStore;
  readonly bus: Pick<EventBus, 'publish'>;
  readonly observer: Pick<Observer, 'events' | 'fault'>;
  readonly pauses?: typeof PAUSES;
}

/**
 * Publishes the outbox to the bus, oldest first, one batch at a time. Events are marked when the bus has
 * confirmed them: a batch that failed comes again as it was, so the order within a key holds and nothing is
 * lost.
 */
export function createEventRelay({ stores, bus, observer, pauses = PAUSES }: EventRelayDeps): EventRelay {
  let running = false;
  let round: Promise<void> | undefined;
  let timer: NodeJS.Timeout | undefined;
  let woken = false;
  let failures = 0;

  const publishWaiting = async (): Promise<void> => {
    for (let more = true; more && running; ) {
      woken = false;
      const batch = await stores.waitingEvents(BATCH);
      if (batch.length > 0) {
        await bus.publish(batch.map(({ event }) => event));
        await stores.markPublished(batch);
        for (const [topic, count] of countTopics(batch)) observer.events(topic, 'published', count);
      }
      failures = 0;
      more = woken || batch.length === BATCH;
    }
  };
  const begin = (): void => {
    clearTimeout(timer);
    round = publishWaiting()
      .catch((error: unknown) => {
        failures += 1;
        // An outage is reported once, however long it lasts.
        if (failures === 1) observer.fault('outbox', error);
      })
      .then(() => {
        round = undefined;
        if (!running) return;
        timer = setTimeout(begin, failures === 0 ? pauses.idleMs : pauseAfter(failures, pauses));
        // Woken between the last look and here.
        if (woken && failures === 0) begin();
      });
  };
  return {
    start() {
      running = true;
      stores.onWaiting(() => {
        woken = true;
        // In an outage the pause is kept, whatever comes in.
        if (running && round === undefined && failures === 0) begin();
      });
      begin();
    },
    async stop() {
      running = false;
      clearTimeout(timer);
      await round;
    },
  };
}

function countTopics(batch: readonly WaitingEvent[]): Map<Topic, number> {
  const counts = new Map<Topic, number>();
  for (const { event } of batch) counts.set(event.topic, (counts.get(event.topic) ?? 0) + 1);
  return counts;
}
