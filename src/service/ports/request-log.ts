import type { ErrorCode, ErrorReason } from '../../core/domain/errors.js';
import type { RouteName } from './observer.js';

/**
 * The record of one request with its response. No member can contain a secret, a body, a form field or an id
 * from a URL.
 */
export interface RequestRecord {
  readonly listener: 'partner' | 'operator';
  /** The method, from a closed list, or `other`. */
  readonly method: string;
  /** The route's template, or `unmatched` or `malformed`. */
  readonly route: RouteName;
  /** The status. 0 when the caller left before a response began. */
  readonly status: number;
  readonly requestId: string;
  /** The trace id of the caller, or a new one. Undefined for bytes that are not a request. */
  readonly traceId?: string | undefined;
  readonly keyId?: string | undefined;
  /** The partner of the key, or undefined before the key is known. */
  readonly partnerId?: string | undefined;
  /** The name of the operator's token, if it has one. */
  readonly operator?: string | undefined;
  /** The address group of the caller: an IPv4 address, or the /64 of an IPv6 address. */
  readonly address: string;
  /** The code and the reason of an error response. */
  readonly code?: ErrorCode | undefined;
  readonly reason?: ErrorReason | undefined;
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
