/** Codes the client makes itself, beside those the service sends. */
export type ClientErrorCode =
  /** No connection, or one that broke before a response. */
  | 'connection_failed'
  /** The other side is not who it should be, or does not speak TLS; trying again would not change that. */
  | 'tls_failed'
  /** No response, or no progress, within the time allowed. */
  | 'timed_out'
  /** A response that is not what the contract says. */
  | 'bad_response'
  /** The audio or sidecar could not be read on this side, or was not of the length announced. */
  | 'source_failed'
  /** The store of a rotation holds another one that would be lost. */
  | 'rotation_unfinished';

export interface TakemarkErrorOptions {
  readonly status?: number | undefined;
  readonly reason?: string | undefined;
  readonly reviewId?: string | undefined;
  readonly requestId?: string | undefined;
  readonly retryAfterSeconds?: number | undefined;
  readonly cause?: unknown;
}

/**
 * Every failure of a call but an abort, which rejects with the signal's own reason. `code` is the service's
 * slug, or one of `ClientErrorCode`; an unrecognised one is to be treated as its status class. The message
 * never holds a key, a form field or an address.
 */
export class TakemarkError extends Error {
  readonly code: string;
  /** HTTP status; absent where no response came. */
  readonly status: number | undefined;
  /** The precise slug beside `code`, where the service sends one. */
  readonly reason: string | undefined;
  /** With the reason `review_exists`: the unresolved review that is there. */
  readonly reviewId: string | undefined;
  /** To be quoted in problem reports. */
  readonly requestId: string | undefined;
  /** Seconds the service asked to wait. */
  readonly retryAfterSeconds: number | undefined;

  constructor(code: string, message: string, options: TakemarkErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'TakemarkError';
    this.code = code;
    this.status = options.status;
    this.reason = options.reason;
    this.reviewId = options.reviewId;
    this.requestId = options.requestId;
    this.retryAfterSeconds = options.retryAfterSeconds;
  }
}

/** Makes an error of a response outside 2xx; the body may be anything. */
export function errorFromResponse(
  status: number,
  headers: { readonly [name: string]: string | string[] | undefined },
  body: Buffer,
): TakemarkError {
  const { error, code, reason, reviewId } = parseErrorBody(body);
  return new TakemarkError(code ?? codeOfStatusClass(status), error ?? `the service answered ${status}`, {
    status,
    reason,
    reviewId,
    requestId: singleHeader(headers['x-request-id']),
    retryAfterSeconds: parseRetryAfter(singleHeader(headers['retry-after']), timeOf(headers['date'])),
  });
}

export function singleHeader(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value[0] : value;
}

/**
 * Seconds, or the HTTP date that proxies in between may send (RFC 9110, section 10.2.3).
 * @param now by the sender's clock, where it tells that: this machine's may be another
 */
export function parseRetryAfter(value: string | undefined, now = Date.now()): number | undefined {
  if (value === undefined) return undefined;
  if (/^\d+$/.test(value)) return Math.min(Number(value), Number.MAX_SAFE_INTEGER);
  // A date begins with the name of a day; what Date.parse makes of `+60` is one that is long gone.
  const at = /^[A-Za-z]/.test(value) ? Date.parse(value) : Number.NaN;
  return Number.isNaN(at) ? undefined : Math.max(0, Math.ceil((at - now) / 1000));
}

function timeOf(date: string | string[] | undefined): number | undefined {
  const at = Date.parse(singleHeader(date) ?? '');
  return Number.isNaN(at) ? undefined : at;
}

type ErrorMembers = { error?: string; code?: string; reason?: string; reviewId?: string };

function parseErrorBody(body: Buffer): ErrorMembers {
  let parsed: unknown;
  try {
    parsed = JSON.parse(body.toString('utf8'));
  } catch {
    // A proxy's HTML page, or a response cut short: the status alone has to do.
    return {};
  }
  if (typeof parsed !== 'object' || parsed === null) return {};
  const members: ErrorMembers = {};
  for (const name of ['error', 'code', 'reason', 'reviewId'] as const) {
    const value = (parsed as Record<string, unknown>)[name];
    if (typeof value === 'string' && value !== '') members[name] = value.slice(0, 1000);
  }
  return members;
}

/** Code of a response whose own is absent or unknown: that of its status class (rule 5.3). */
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
