import { defined } from '../../../core/domain/defined.js';
import { DomainError } from '../../../core/domain/errors.js';
import { BatchDelivery } from '../../domain/batch-delivery.js';
import { type ServiceEvent, TOPICS, type Topic } from '../../domain/events.js';
import type {
  DeadLetter,
  DeadLetterReport,
  EventBus,
  EventHandler,
  Replayed,
  Settled,
} from '../../ports/bus.js';
import type { Clock } from '../../ports/system.js';
import { DeadLetterFile, type DeadLetterReader, type KeptDeadLetter } from './dead-letter-file.js';

/** The most events that a handler gets at once. */
const BATCH = 500;
const RETRY_SECONDS = 1;

export interface LocalBusOptions extends DeadLetterReader {
  readonly directory: string;
  readonly clock: Clock;
  readonly onDeadLetter?: DeadLetterReport;
}

/**
 * Opens the bus of a service that is one process. `publish` hands the events to this process's handlers and resolves
 * when they took them. The outbox that they come from is the log, so nothing else is kept but the dead letters, in
 * files of `directory`.
 */
export async function openLocalBus({
  directory,
  authenticator,
  acceptWithoutMac,
  clock,
  onDeadLetter = () => undefined,
}: LocalBusOptions): Promise<EventBus> {
  return new LocalBus(
    await DeadLetterFile.open(directory, { authenticator, acceptWithoutMac }),
    clock,
    onDeadLetter,
  );
}

class LocalBus implements EventBus {
  readonly #deadLetters: DeadLetterFile;
  readonly #clock: Clock;
  readonly #onDeadLetter: DeadLetterReport;
  readonly #handlers = new Map<Topic, EventHandler>();
  #state: 'made' | 'started' | 'closed' = 'made';
  /**
   * The end of the publications so far. They follow one another, so that none overtakes events that come again.
   */
  #last: Promise<unknown> = Promise.resolve();
  /** The number of publications that failed, by topic. */
  readonly #failures: Record<Topic, number> = { erasure: 0, usage: 0, retention: 0 };
  /** The ids of events that already are dead letters when their failed publication comes again. */
  readonly #isolated = new Set<string>();

  constructor(deadLetters: DeadLetterFile, clock: Clock, onDeadLetter: DeadLetterReport) {
    this.#deadLetters = deadLetters;
    this.#clock = clock;
    this.#onDeadLetter = onDeadLetter;
  }

  handle(topic: Topic, handler: EventHandler): void {
    if (this.#state !== 'made' || this.#handlers.has(topic))
      throw new Error(`the topic ${topic} can have only one handler, and it must be added before the start`);
    this.#handlers.set(topic, handler);
  }

  async start(): Promise<void> {
    if (this.#state === 'made') this.#state = 'started';
  }

  publish(events: readonly ServiceEvent[], onSettled: Settled = () => undefined): Promise<void> {
    const failures = { ...this.#failures };
    return this.#next(async () => {
      let fault: unknown;
      for (const topic of TOPICS) {
        const own = events.filter((event) => event.topic === topic);
        if (own.length === 0) continue;
        try {
          // An event that waited after a failure may delay later events of the same keys.
          if (this.#state !== 'started' || failures[topic] !== this.#failures[topic]) throw unavailable();
          await this.#deliverAll(topic, own, onSettled);
        } catch (error) {
          fault ??= error;
        }
      }
      if (fault !== undefined) throw fault;
    });
  }

  async replay(): Promise<Replayed> {
    return { taken: 0, left: 0 };
  }

  /** Returns 0 for each handled topic: events that were published were taken, and the rest waits in the outbox. */
  lag(): ReadonlyMap<Topic, number> {
    return new Map([...this.#handlers.keys()].map((topic) => [topic, 0]));
  }

  deadLetters(topic: Topic, limit: number): ReturnType<EventBus['deadLetters']> {
    return this.#next(async () =>
      (await this.#deadLetters.list(topic, limit)).map((kept) => deadLetterOf(topic, kept)),
    );
  }

  replayDeadLetters(topic: Topic, limit: number): Promise<number> {
    return this.#next(async () => {
      const kept = await this.#deadLetters.replayable(topic, limit);
      for (const { number, event, line } of kept) {
        if (event === undefined) {
          await this.#deadLetters.appendLine(line);
          this.#onDeadLetter(topic);
        } else await this.#deliverAll(topic, [event], () => undefined);
        await this.#deadLetters.markReplayed(topic, number);
      }
      return kept.length;
    });
  }

  discardDeadLetters(
    topic: Topic,
    limit: number,
    record: (letters: readonly DeadLetter[]) => Promise<void>,
  ): Promise<readonly DeadLetter[]> {
    return this.#next(async () => {
      const kept = await this.#deadLetters.replayable(topic, limit);
      const letters = kept.map((each) => deadLetterOf(topic, each));
      const last = kept.at(-1);
      if (last === undefined) return letters;
      await record(letters);
      await this.#deadLetters.markReplayed(topic, last.number);
      return letters;
    });
  }

  async ping(): Promise<void> {
    if (this.#state !== 'started') throw unavailable();
  }

  async close(): Promise<void> {
    if (this.#state === 'closed') return void (await this.#last);
    this.#state = 'closed';
    const closed = this.#last.then(() => this.#deadLetters.close());
    this.#last = closed;
    await closed;
  }

  #next<Value>(work: () => Promise<Value>): Promise<Value> {
    const done = this.#last.then(async () => {
      if (this.#state === 'closed') throw unavailable();
      return work();
    });
    this.#last = done.catch(() => undefined);
    return done;
  }

  /** Refuses the batch that fails, and the later events of its topic. */
  async #deliverAll(topic: Topic, events: readonly ServiceEvent[], onSettled: Settled): Promise<void> {
    const handler = this.#handlers.get(topic);
    try {
      for (let from = 0; from < events.length; from += BATCH) {
        if (this.#state === 'closed') throw new Error('the bus is closing');
        const batch = events.slice(from, from + BATCH);
        // Without a handler, no event has to be delivered again.
        if (handler !== undefined)
          await this.#deliver(
            batch.filter(({ id }) => !this.#isolated.has(id)),
            handler,
          );
        for (const event of batch) {
          this.#isolated.delete(event.id);
          onSettled(event);
        }
      }
    } catch (cause) {
      this.#failures[topic] += 1;
      throw unavailable(cause);
    }
  }

  #deliver(events: readonly ServiceEvent[], handler: EventHandler): Promise<void> {
    const isolate = async (event: ServiceEvent, { message }: Error): Promise<void> => {
      await this.#deadLetters.append(event, message, Math.floor(this.#clock.now() / 1000));
      this.#isolated.add(event.id);
      this.#onDeadLetter(event.topic);
    };
    return new BatchDelivery(events, handler, isolate).run();
  }
}

function deadLetterOf(topic: Topic, { number, reason, at, event }: KeptDeadLetter): DeadLetter {
  return {
    topic,
    position: String(number),
    reason,
    at,
    ...defined({ id: event?.id, kind: event?.kind }),
  };
}

function unavailable(cause?: unknown): DomainError {
  return new DomainError('unavailable', 'Events cannot be published at the moment.', {
    reason: 'bus_unavailable',
    retryAfterSeconds: RETRY_SECONDS,
    dependency: 'disk',
    ...defined({ cause }),
  });
}
