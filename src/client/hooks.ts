import type { IncomingHttpHeaders } from 'node:http';
import { singleHeader } from './errors.js';

/** A finished attempt of a call. It contains neither keys nor bodies. */
export interface Exchange {
  readonly method: string;
  /** The path without its query. It can contain ids of proofs, reviews and uploads. */
  readonly path: string;
  /** The HTTP status. Absent without a response. */
  readonly status?: number;
  /** The `TakemarkError.code` of a failure, or `aborted` if the signal ended the call. */
  readonly code?: string;
  readonly requestId?: string;
  /** The milliseconds from the request to the end of the response, or to its start for a download. */
  readonly durationMs: number;
}

/** A notice that the service will remove something that a call uses (rule 14.3, RFC 9745 and RFC 8594). */
export interface DeprecationNotice {
  readonly method: string;
  /** The path without its query. */
  readonly path: string;
  /** The time of the announcement in unix seconds. */
  readonly since?: number;
  /** The time in unix seconds after which it may be removed. */
  readonly sunset?: number;
  /** The address of the migration guide. */
  readonly guide?: string;
}

/** The functions that the client calls. Errors of a hook are ignored, because they would hide the response. */
export interface ClientHooks {
  /** Receives every finished attempt, including retries, for example for a log. */
  readonly onExchange?: ((exchange: Exchange) => void) | undefined;
  /** Receives the deprecation notice of every response that has one. */
  readonly onDeprecation?: ((notice: DeprecationNotice) => void) | undefined;
}

/** Calls a hook if there is one. The hook may be asynchronous. */
export function callHook<Value>(hook: ((value: Value) => void) | undefined, value: Value): void {
  try {
    // An unhandled rejection of a hook would end the process.
    const result: unknown = hook?.(value);
    if (result instanceof Promise) result.catch(() => undefined);
  } catch {
    // Ignored, see `ClientHooks`.
  }
}

/** Returns the deprecation notice of a response, if there is one. Unreadable parts are omitted. */
export function deprecationOf(
  headers: IncomingHttpHeaders,
): Pick<DeprecationNotice, 'since' | 'sunset' | 'guide'> | undefined {
  const [deprecation, sunsetDate, link] = ['deprecation', 'sunset', 'link'].map((name) =>
    singleHeader(headers[name]),
  );
  if (deprecation === undefined && sunsetDate === undefined) return undefined;
  const since = /^@(\d{1,12})$/.exec(deprecation ?? '')?.[1];
  const sunset = Date.parse(sunsetDate ?? '');
  const guide = /<([^<>]*)>\s*;\s*rel="?deprecation"?/.exec(link ?? '')?.[1];
  return {
    ...(since === undefined ? {} : { since: Number(since) }),
    ...(Number.isNaN(sunset) ? {} : { sunset: sunset / 1000 }),
    ...(guide === undefined ? {} : { guide }),
  };
}
