import { DomainError } from '../../../core/domain/errors.js';
import { STATUS_OF_CODE } from '../../contract/errors.js';

/** An error as it is sent. */
export interface ErrorResponse {
  readonly status: number;
  /** The JSON text. */
  readonly body: string;
  readonly retryAfterSeconds: number | undefined;
}

/** The `Retry-After`, in seconds, of a capacity error that has none of its own. */
const DEFAULT_RETRY_SECONDS = 1;

/** The error for a fault of the program. The caller gets no details. */
const INTERNAL = new DomainError('internal', 'The service failed to process this request.');

/** Returns the error that the caller may see in place of any thrown value. */
export function asDomainError(error: unknown): DomainError {
  return error instanceof DomainError ? error : INTERNAL;
}

/**
 * Returns true for an error that operators must see. A DomainError with a cause or a dependency hides a
 * failure outside this program.
 */
export function isFault(error: unknown): boolean {
  return !(error instanceof DomainError) || error.cause !== undefined || error.dependency !== undefined;
}

/** Returns the error response (rule 5.1). */
export function errorResponse(error: DomainError): ErrorResponse {
  const { code, reason, limit, reviewId } = error;
  return {
    status: STATUS_OF_CODE[code],
    // JSON.stringify omits undefined members.
    body: JSON.stringify({ error: error.message, code, reason, limit, reviewId }),
    retryAfterSeconds:
      // Rule 5.7: whole seconds, never 0.
      code === 'rate_limited' || code === 'unavailable'
        ? Math.max(1, Math.ceil(error.retryAfterSeconds ?? DEFAULT_RETRY_SECONDS))
        : undefined,
  };
}
