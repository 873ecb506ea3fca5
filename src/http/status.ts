import type { ErrorStatus } from '../contract/route.js';
import type { ErrorCode } from '../domain/errors.js';

/** "One `code` per status": the one table that turns codes into statuses. */
export const STATUS_OF_CODE: Readonly<Record<ErrorCode, ErrorStatus>> = {
  invalid_request: 400,
  forbidden: 403,
  not_found: 404,
  method_not_allowed: 405,
  timeout: 408,
  conflict: 409,
  length_required: 411,
  payload_too_large: 413,
  unsupported_media_type: 415,
  unprocessable: 422,
  rate_limited: 429,
  headers_too_large: 431,
  internal: 500,
  unavailable: 503,
};
