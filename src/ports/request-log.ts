/**
 * The record of one request with its response. No member can contain a secret, a body, a form field or an id
 * from a URL.
 */
export interface RequestRecord {
  readonly listener: 'partner' | 'operator';
  /** The method, from a closed list, or `other`. */
  readonly method: string;
  /** The route's template, or `unmatched` or `malformed`. */
  readonly route: string;
  /** The status. 0 when the caller left before a response began. */
  readonly status: number;
  readonly requestId: string;
  readonly keyId?: string;
  readonly durationMs: number;
  /** The bytes read of the request body. */
  readonly bytesIn: number;
  /** The bytes of the response body. */
  readonly bytesOut: number;
}

/** Receives the record of every finished request from the listeners. */
export interface RequestLog {
  request(record: RequestRecord): void;
}
