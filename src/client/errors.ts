/** The error codes of the client itself. All other codes come from the service. */
export type ClientErrorCode =
  /** The connection failed, or closed before a response. */
  | 'connection_failed'
  /** The server's certificate is not trusted, or the server does not speak TLS. A retry does not help. */
  | 'tls_failed'
  /** There was no response or no progress within the timeout. */
  | 'timed_out'
  /** The response does not follow the contract. */
  | 'bad_response'
  /** The audio or sidecar could not be read locally, or did not have the announced length. */
  | 'source_failed'
  /** The store holds another rotation, which would be lost. */
  | 'rotation_unfinished';

export interface TakemarkErrorOptions {
  readonly status?: number | undefined;
  readonly reason?: string | undefined;
  readonly limit?: string | undefined;
  readonly reviewId?: string | undefined;
  readonly requestId?: string | undefined;
  readonly retryAfterSeconds?: number | undefined;
  readonly cause?: unknown;
}

/**
 * The error of every failed call, except an aborted call, which rejects with the signal's reason. `code` is a
 * code of the service or a `ClientErrorCode`. Treat an unknown code by the class of its status. The message
 * never contains a key, a form field or an address.
 */
export class TakemarkError extends Error {
  readonly code: string;
  /** The HTTP status. Absent without a response. */
  readonly status: number | undefined;
  /** The precise reason, if the service sends one. */
  readonly reason: string | undefined;
  /** The exceeded limit, with the code `rate_limited`. */
  readonly limit: string | undefined;
  /** The existing unresolved review, with the reason `review_exists`. */
  readonly reviewId: string | undefined;
  /** The request id. Quote it in problem reports. */
  readonly requestId: string | undefined;
  /** The seconds that the service asks to wait. */
  readonly retryAfterSeconds: number | undefined;

  constructor(code: string, message: string, options: TakemarkErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'TakemarkError';
    this.code = code;
    this.status = options.status;
    this.reason = options.reason;
    this.limit = options.limit;
    this.reviewId = options.reviewId;
    this.requestId = options.requestId;
    this.retryAfterSeconds = options.retryAfterSeconds;
  }
}

/** Creates the error for a response outside 2xx, with any body. */
export function errorFromResponse(
  status: number,
  headers: { readonly [name: string]: string | string[] | undefined },
  body: Buffer,
): TakemarkError {
  const { error, code, reason, limit, reviewId } = parseErrorBody(body);
  return new TakemarkError(code ?? codeOfStatusClass(status), error ?? `the service returned ${status}`, {
    status,
    reason,
    limit,
    reviewId,
    requestId: singleHeader(headers['x-request-id']),
    retryAfterSeconds: parseRetryAfter(singleHeader(headers['retry-after']), timeOf(headers['date'])),
  });
}

export function singleHeader(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value[0] : value;
}

/**
 * Parses Retry-After: seconds, or the HTTP date that a proxy may send (RFC 9110, section 10.2.3).
 * @param now the sender's time if known, because this machine's clock may differ
 */
export function parseRetryAfter(value: string | undefined, now = Date.now()): number | undefined {
  if (value === undefined) return undefined;
  if (/^\d+$/.test(value)) return Math.min(Number(value), Number.MAX_SAFE_INTEGER);
  // A date starts with a day name. `Date.parse('+60')` would return a date in the past.
  const at = /^[A-Za-z]/.test(value) ? Date.parse(value) : Number.NaN;
  return Number.isNaN(at) ? undefined : Math.max(0, Math.ceil((at - now) / 1000));
}

function timeOf(date: string | string[] | undefined): number | undefined {
  const at = Date.parse(singleHeader(date) ?? '');
  return Number.isNaN(at) ? undefined : at;
}

type ErrorMembers = { error?: string; code?: string; reason?: string; limit?: string; reviewId?: string };

function parseErrorBody(body: Buffer): ErrorMembers {
  let parsed: unknown;
  try {
    parsed = JSON.parse(body.toString('utf8'));
  } catch {
    // The HTML page of a proxy, or a truncated response: only the status is usable.
    return {};
  }
  if (typeof parsed !== 'object' || parsed === null) return {};
  const members: ErrorMembers = {};
  for (const name of ['error', 'code', 'reason', 'limit', 'reviewId'] as const) {
    const value = (parsed as Record<string, unknown>)[name];
    if (typeof value === 'string' && value !== '') members[name] = value.slice(0, 1000);
  }
  return members;
}

/** Returns the code of a status class, for a response without a code (rule 5.3). */
function codeOfStatusClass(status: number): string {
  const known: Record<number, string> = {
    403: 'forbidden',
    404: 'not_found',
    409: 'conflict',
    411: 'length_required',
    413: 'payload_too_large',
    429: 'rate_limited',
    503: 'unavailable',
  };
  return known[status] ?? (status >= 500 ? 'internal' : status >= 400 ? 'invalid_request' : 'bad_response');
}
