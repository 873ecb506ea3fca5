import type { Topic } from '../domain/events.js';

/** Reason for which a form or an upload lost its place to another. */
export type Displacement =
  /** The oldest form without proof, when forms had no place left. */
  | 'form_oldest'
  /** The oldest form without proof of an address that had too many. */
  | 'form_of_address'
  /** The slowest upload of a partner above its fair share of the engine. */
  | 'upload_over_share'
  /** An upload that stood still, when the engine had no place left. */
  | 'upload_stalled'
  /** The upload that stood still for longest, of an address that had too many of them. */
  | 'upload_of_address';

/**
 * Reports of every room to telemetry, which none of them knows. Labels come from closed lists; never an id,
 * secret or content.
 */
export interface Observer {
  verdict(verdict: string, carrier: string): void;
  upload(outcome: 'stored' | 'refused' | 'aborted' | 'failed', bytes: number): void;
  /** A form or an upload lost its place to another. */
  displaced(reason: Displacement): void;
  issued(carrier: string): void;
  /** Counts that partners' products report, under names of PRODUCT_EVENTS. */
  productEvent(name: string, count: number): void;
  /** Events of a topic that were put on the bus, taken by a consumer of this process, or given up by one. */
  events(topic: Topic, outcome: 'published' | 'handled' | 'dead', count: number): void;
  /** A failure that the caller sees only as `internal` or `unavailable`. */
  fault(where: string, error: unknown): void;
}
