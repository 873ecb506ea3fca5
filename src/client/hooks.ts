import type { IncomingHttpHeaders } from 'node:http';
import { singleHeader } from './errors.js';

/** Attempt of a call that has ended. It holds neither keys nor bodies. */
export interface Exchange {
  readonly method: string;
  /** Without its query; ids of proofs, reviews and uploads can stand in it. */
  readonly path: string;
  /** HTTP status; absent where no response came. */
  readonly status?: number;
  /** `TakemarkError.code` of a failure, `aborted` of a call that its signal ended. */
  readonly code?: string;
  readonly requestId?: string;
  /** Milliseconds from the request to the end of its response; of a download, to its beginning. */
  readonly durationMs: number;
}

/** Announcement that something a call uses will end (rule 14.3; RFC 9745 and RFC 8594). */
export interface DeprecationNotice {
  readonly method: string;
  /** Without its query. */
  readonly path: string;
  /** Unix seconds at which it was announced. */
  readonly since?: number;
  /** Unix seconds after which it may be gone. */
  readonly sunset?: number;
  /** Address of the migration guide. */
  readonly guide?: string;
}

/** Functions that are told what happens. What one throws is not thrown further: it would hide the response. */
export interface ClientHooks {
  /** Told of every attempt, repeated ones too: a logger. */
  readonly onExchange?: ((exchange: Exchange) => void) | undefined;
  /** Told with every response that carries such a notice. */
  readonly onDeprecation?: ((notice: DeprecationNotice) => void) | undefined;
}

/** Calls a hook, where there is one; it may be an asynchronous function. */
export function tell<Value>(hook: ((value: Value) => void) | undefined, value: Value): void {
  try {
    // The response counts, and the hook is its owner's: a rejection of it would end the process.
    const told: unknown = hook?.(value);
    if (told instanceof Promise) told.catch(() => undefined);
  } catch {
    // Likewise.
  }
}

/** The notice of a response, where it carries one; parts that cannot be read are absent. */
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
