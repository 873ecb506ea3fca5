import { STATUS_OF_CODE } from '../../contract/errors.js';
import { DomainError } from '../../domain/errors.js';

/** A refusal as it goes out. */
export interface ErrorResponse {
  readonly status: number;
  /** The JSON text. */
  readonly body: string;
  readonly retryAfterSeconds: number | undefined;
}

/** Seconds to wait where whoever refused for want of capacity named none. */
const DEFAULT_RETRY_SECONDS = 1;

/** A fault of the program: the caller learns nothing of it but that it happened. */
const INTERNAL = new DomainError('internal', 'The service failed to answer this request.');

/** What the caller may see of whatever was thrown. */
export function asDomainError(error: unknown): DomainError {
  return error instanceof DomainError ? error : INTERNAL;
}

/** Whether an operator should hear of it: a refusal with a cause hides a failure of the world. */
export function isFault(error: unknown): boolean {
  return !(error instanceof DomainError) || error.cause !== undefined;
}

/**
 * "Every error response [...] has the JSON shape" `error`, `code`; an additive `reason` carries the precise
 * slug.
 */
export function errorResponse(error: DomainError): ErrorResponse {
  const { code, reason } = error;
  return {
    status: STATUS_OF_CODE[code],
    body: JSON.stringify(
      reason === undefined ? { error: error.message, code } : { error: error.message, code, reason },
    ),
    retryAfterSeconds:
      // "429 adds `Retry-After`"; "503 `unavailable` (with `Retry-After`)". Whole seconds, never 0.
      code === 'rate_limited' || code === 'unavailable'
        ? Math.max(1, Math.ceil(error.retryAfterSeconds ?? DEFAULT_RETRY_SECONDS))
        : undefined,
  };
}
