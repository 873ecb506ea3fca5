/** How everyone reports to telemetry without knowing it. Labels come from closed lists; never an id, secret or content. */
export interface Observer {
  verdict(verdict: string, carrier: string): void;
  upload(outcome: 'stored' | 'refused' | 'aborted' | 'failed', bytes: number): void;
  issued(carrier: string): void;
  /** Counts that partners' products report, under names of PRODUCT_EVENTS. */
  productEvent(name: string, count: number): void;
  /** A failure that the caller sees only as `internal` or `unavailable`. */
  fault(where: string, error: unknown): void;
}
