import type { ServiceEvent, Topic } from '../domain/events.js';

/**
 * Handles events, at least once each and in order within each key. A PoisonError concerns one event. A batch
 * that throws a PoisonError is delivered again one event at a time. Any other error is treated as an outage.
 * Unhandled events are then delivered again after a pause, until they are handled.
 */
export type EventHandler = (events: readonly ServiceEvent[]) => Promise<void>;

/** An event that no consumer could handle, with the known facts about it. */
export interface DeadLetter {
  readonly topic: Topic;
  /** The name of the dead letter within its topic. */
  readonly position: string;
  /** The reason, without any content of the event. */
  readonly reason: string;
  /** The time of the dead letter in unix seconds. */
  readonly at: number;
  /** The id of the event, if it can be read. */
  readonly id?: string;
  readonly kind?: string;
}

/** The counts of handled events, and of messages that can never be handled. */
export interface Replayed {
  readonly taken: number;
  readonly left: number;
}

/** A callback for every event that was moved to the dead letters. */
export type DeadLetterReport = (topic: Topic) => void;

/** Reports that an event is stored durably or, with a fault, must be published again. */
export type Settled = (event: ServiceEvent, fault?: unknown) => void;

/** Carries events from the outbox to the consumers. */
export interface EventBus {
  /**
   * Publishes events, and resolves when all of them are stored durably. Events of one key arrive in the order
   * given here. The bus still holds an event that it has neither stored nor refused, and no caller may
   * publish that event again.
   * @param onSettled called for each given event when it is stored durably or, with a fault, when it must be
   * published again
   * @throws DomainError `unavailable` / `bus_unavailable` when the bus holds none of the events any more.
   * Events without a call of `onSettled` must be published again.
   */
  publish(events: readonly ServiceEvent[], onSettled?: Settled): Promise<void>;
  /**
   * Sets the handler of a topic. Call it before `start`, once per topic. The processes of a group share the
   * events of a topic.
   */
  handle(topic: Topic, handler: EventHandler): void;
  /** Starts delivery. */
  start(): Promise<void>;
  /**
   * Delivers every event that the topic stores, from its beginning to its current end, to the caller's own
   * handler.
   */
  replay(topic: Topic, handler: EventHandler): Promise<Replayed>;
  /**
   * Returns, for each topic that this process consumes, the number of events waiting to be handled. The count
   * is what this process knows without a request. A topic without a connection is absent.
   */
  lag(): ReadonlyMap<Topic, number>;
  /** Lists the dead letters of a topic, oldest first, at most `limit`. */
  deadLetters(topic: Topic, limit: number): Promise<readonly DeadLetter[]>;
  /**
   * Moves the oldest dead letters, at most `limit`, back into their topic.
   * @returns how many were moved
   */
  replayDeadLetters(topic: Topic, limit: number): Promise<number>;
  /**
   * Discards the oldest dead letters, at most `limit`. They are not handled, and no list has them any more.
   * @param record called with the letters before they are discarded. If it fails, nothing is discarded
   * @returns the discarded letters
   */
  discardDeadLetters(
    topic: Topic,
    limit: number,
    record: (letters: readonly DeadLetter[]) => Promise<void>,
  ): Promise<readonly DeadLetter[]>;
  /**
   * Resolves when the bus responds and each handler of this process is connected.
   * @throws DomainError `unavailable` / `bus_unavailable`
   */
  ping(): Promise<void>;
  /** Finishes the current batch, then closes all connections. May be called twice. */
  close(): Promise<void>;
}
