import { STATUS_OF_CODE } from '../../contract/errors.js';
import { DomainError } from '../../domain/errors.js';

/** An error as it goes out. */
export interface ErrorResponse {
  readonly status: number;
  /** The JSON text. */
  readonly body: string;
  readonly retryAfterSeconds: number | undefined;
}

/** Seconds to wait where the error of an exhausted capacity names none. */
const DEFAULT_RETRY_SECONDS = 1;

/** A fault of the program: the caller learns only that it happened. */
const INTERNAL = new DomainError('internal', 'The service failed to answer this request.');

/** The error that the caller may see in place of any thrown value. */
export function asDomainError(error: unknown): DomainError {
  return error instanceof DomainError ? error : INTERNAL;
}

/** True for an error that an operator should hear of: an error with a cause hides a failure of the world. */
export function isFault(error: unknown): boolean {
  return !(error instanceof DomainError) || error.cause !== undefined;
}

/** The error response (rule 5.1). */
export function errorResponse(error: DomainError): ErrorResponse {
  const { code, reason, reviewId } = error;
  return {
    status: STATUS_OF_CODE[code],
    // What is undefined is left out.
    body: JSON.stringify({ error: error.message, code, reason, reviewId }),
    retryAfterSeconds:
      // Rule 5.7: whole seconds, never 0.
      code === 'rate_limited' || code === 'unavailable'
        ? Math.max(1, Math.ceil(error.retryAfterSeconds ?? DEFAULT_RETRY_SECONDS))
        : undefined,
  };
}
