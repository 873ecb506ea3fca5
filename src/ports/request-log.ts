/**
 * Record of one request with its response. Nothing in it can hold a secret, a body, a form field or an id
 * that came in a URL.
 */
export interface RequestRecord {
  readonly listener: 'partner' | 'operator';
  /** A method of a closed list, or `other`. */
  readonly method: string;
  /** The route's template, or `unmatched` or `malformed`. */
  readonly route: string;
  /** 0 where the caller left before anything was answered. */
  readonly status: number;
  readonly requestId: string;
  readonly keyId?: string;
  readonly durationMs: number;
  /** Bytes of the request's body that were read. */
  readonly bytesIn: number;
  /** Bytes of the response's body. */
  readonly bytesOut: number;
}

/** Sink of the listeners for requests that got a response. */
export interface RequestLog {
  request(record: RequestRecord): void;
}
