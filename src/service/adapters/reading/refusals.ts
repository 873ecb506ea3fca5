import { DomainError } from '../../../core/domain/errors.js';

const RETRY_AFTER_SECONDS = 2;

/** Returns the error of a reading when too much waits already, or when the reading has waited too long. */
export function readerFull(): DomainError {
  return new DomainError('unavailable', 'Too many credentials are waiting to be read.', {
    reason: 'reader_full',
    retryAfterSeconds: RETRY_AFTER_SECONDS,
  });
}

export function readerFailed(cause?: unknown): DomainError {
  return new DomainError('unavailable', 'The credential could not be read.', {
    reason: 'reader_failed',
    retryAfterSeconds: RETRY_AFTER_SECONDS,
    cause,
  });
}

export function readerStopping(): DomainError {
  return new DomainError('unavailable', 'The service is shutting down.', {
    reason: 'shutting_down',
    retryAfterSeconds: RETRY_AFTER_SECONDS,
  });
}
