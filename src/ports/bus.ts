import type { ServiceEvent, Topic } from '../domain/events.js';

/**
 * Takes events in the order of their key, at least once each. A PoisonError concerns one event: a batch that
 * throws it is given again one by one. Any other error is the world's: what was not taken comes again, after
 * a pause, until it is taken.
 */
export type EventHandler = (events: readonly ServiceEvent[]) => Promise<void>;

/** An event that nobody could take, with what is known of it. */
export interface DeadLetter {
  readonly topic: Topic;
  /** Name among the dead letters of its topic. */
  readonly position: string;
  /** Reason in words of ours, with nothing of the event in it. */
  readonly reason: string;
  /** Unix seconds. */
  readonly at: number;
  /** Id of the event, where it can be read. */
  readonly id?: string;
  readonly kind?: string;
}

/** Events that were taken, and messages that can never be. */
export interface Replayed {
  readonly taken: number;
  readonly left: number;
}

/** Called for every event that was put to the dead letters. */
export type DeadLetterReport = (topic: Topic) => void;

/** Tells that an event is kept for good or, where there is a fault, is to be published again. */
export type Settled = (event: ServiceEvent, fault?: unknown) => void;

/** Carries events from the outbox to the consumers. */
export interface EventBus {
  /**
   * Resolves when all of them are kept for good. Events of one key arrive in the order given here. An event
   * that is neither kept nor refused is still in the bus's hands, for however long: it is not to be published
   * again meanwhile.
   * @param onSettled called for each event, as it was given, when it is kept for good or, with a fault, when
   * it is to be published again
   * @throws DomainError `unavailable` / `bus_unavailable` when the bus has none of them in hand any more: what
   * `onSettled` has not told of is to be published again
   */
  publish(events: readonly ServiceEvent[], onSettled?: Settled): Promise<void>;
  /**
   * Sets the handler of a topic, one a process, before `start`. Processes of one group share the events of a
   * topic.
   */
  handle(topic: Topic, handler: EventHandler): void;
  /** Begins to deliver. */
  start(): Promise<void>;
  /**
   * Every event that the topic keeps, from its beginning to what it holds now, to a handler of the caller's
   * own.
   */
  replay(topic: Topic, handler: EventHandler): Promise<Replayed>;
  /**
   * By topic, of those that this process listens to: events that it was to take by now and has not, as far as
   * it knows without asking. Absent: it has no connection.
   */
  lag(): ReadonlyMap<Topic, number>;
  /** Oldest first, at most `limit`. */
  deadLetters(topic: Topic, limit: number): Promise<readonly DeadLetter[]>;
  /**
   * Puts the oldest ones, at most `limit`, into their topic again and takes them off the list. @returns how
   * many
   */
  replayDeadLetters(topic: Topic, limit: number): Promise<number>;
  /**
   * Resolves when the bus answers, and each handler of this process is connected to it.
   * @throws DomainError `unavailable` / `bus_unavailable`
   */
  ping(): Promise<void>;
  /** Finishes the batch that is being handled, then lets go. Safe to call twice. */
  close(): Promise<void>;
}
