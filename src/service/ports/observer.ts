import type { Displacement } from '../../core/ports/audio-engine.js';
import { TOPICS, type Topic } from '../domain/events.js';

export const UPLOAD_OUTCOMES = ['stored', 'refused', 'aborted', 'failed'] as const;
export type UploadOutcome = (typeof UPLOAD_OUTCOMES)[number];

/** The reasons why a call was refused because its partner had too many of its kind. */
export const REFUSALS = [
  /** The main thread was busy, and the partner had its share of the running calls. */
  'calls_of_partner',
  /** The partner had as many downloads as a partner may have. */
  'downloads_of_partner',
] as const;
export type Refusal = (typeof REFUSALS)[number];

/** The parts of the program whose faults are counted apart. A fault of a call is counted by its route. */
export const FAULT_PLACES = [
  'audit',
  'file_digests',
  'certificates',
  'clock',
  'clocks',
  'collect',
  'content_keys',
  'credential_reader',
  'dependencies',
  'engine',
  'erasures',
  'key_uses',
  'meter',
  'outbox',
  'plans',
  'processes',
  'producer',
  'quota',
  'reader',
  'restore',
  'retention',
  'store',
  'tls',
  ...TOPICS.map((topic) => `consumer of ${topic}` as const),
] as const;

/** The template of a route, or the reason why a request has none. */
export type RouteName = `/${string}` | 'unmatched' | 'malformed';
export type FaultPlace = (typeof FAULT_PLACES)[number] | RouteName;

/** The call during which a fault happened. */
export interface FaultedCall {
  readonly requestId: string;
  readonly traceId?: string;
  readonly route: RouteName;
  /** Undefined before the key is known, and on routes without a partner. */
  readonly partnerId: string | undefined;
}

/**
 * Receives the telemetry of all parts of the service, which do not depend on the telemetry code. Labels are
 * from closed lists, and never contain an id, a secret or content.
 */
export interface Observer {
  verdict(verdict: string, carrier: string): void;
  upload(outcome: UploadOutcome, bytes: number): void;
  /** Counts a form or an upload that was displaced by another. */
  displaced(reason: Displacement): void;
  /** Counts a call that was refused because its partner had too many of its kind. */
  refused(reason: Refusal): void;
  issued(carrier: string): void;
  /** Adds counts that partners' products report. The names are from PRODUCT_EVENTS. */
  productEvent(name: string, count: number): void;
  /**
   * Counts events of a topic that were published to the bus, handled by a consumer of this process, or moved
   * to the dead letters.
   */
  events(topic: Topic, outcome: 'published' | 'handled' | 'dead', count: number): void;
  /**
   * Reports a failure that the caller sees only as `internal` or `unavailable`.
   * @param call the affected call, absent for work of the background
   */
  fault(where: FaultPlace, error: unknown, call?: FaultedCall): void;
}
