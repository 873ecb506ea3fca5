import { DomainError } from '../domain/errors.js';

/** Returns the error of an upload that cannot be continued, through no fault of its sender. */
export function engineFailed(cause: unknown): DomainError {
  return new DomainError('unavailable', 'The audio could not be measured. Send it again.', {
    reason: 'engine_failed',
    retryAfterSeconds: 1,
    cause,
  });
}

export function engineFull(): DomainError {
  return new DomainError('unavailable', 'Too many uploads are being processed.', {
    reason: 'engine_full',
    retryAfterSeconds: 2,
  });
}

/** Returns the error of an upload that lost its place to a newcomer. */
export function gaveWay(): DomainError {
  return new DomainError(
    'unavailable',
    'Too many uploads are being processed, and this upload was too slow. Send it again.',
    { reason: 'engine_full', retryAfterSeconds: 2 },
  );
}

/** Returns the error of an upload whose owner's uploads hold too many bytes of credentials. */
export function memoryFull(): DomainError {
  return new DomainError('unavailable', 'The service is receiving too much data at once.', {
    reason: 'ingress_full',
    retryAfterSeconds: 2,
  });
}

export function shuttingDown(): DomainError {
  return new DomainError('unavailable', 'The service is shutting down.', {
    reason: 'shutting_down',
    retryAfterSeconds: 5,
  });
}

export function uploadAborted(): DomainError {
  return new DomainError('invalid_request', 'The upload was aborted.', { reason: 'upload_aborted' });
}
