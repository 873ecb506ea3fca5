import type { Topic } from '../domain/events.js';

/** How everyone reports to telemetry without knowing it. Labels come from closed lists; never an id, secret or content. */
export interface Observer {
  verdict(verdict: string, carrier: string): void;
  upload(outcome: 'stored' | 'refused' | 'aborted' | 'failed', bytes: number): void;
  issued(carrier: string): void;
  /** Counts that partners' products report, under names of PRODUCT_EVENTS. */
  productEvent(name: string, count: number): void;
  /** Events of a topic that were put on the bus, taken by a consumer of this process, or given up by one. */
  events(topic: Topic, outcome: 'published' | 'handled' | 'dead', count: number): void;
  /** A failure that the caller sees only as `internal` or `unavailable`. */
  fault(where: string, error: unknown): void;
}
