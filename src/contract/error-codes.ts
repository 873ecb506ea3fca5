import type { ErrorCode } from '../domain/errors.js';
import type { ErrorStatus } from './route.js';

/** "One `code` per status", and what a status means as the contract uses it. */
export const STATUS_OF_ERROR: Readonly<
  Record<ErrorStatus, { readonly code: ErrorCode; readonly description: string }>
> = {
  400: {
    code: 'invalid_request',
    description: 'The request could not be understood: malformed syntax or invalid input.',
  },
  403: { code: 'forbidden', description: 'The key is missing, or not valid for the action.' },
  404: { code: 'not_found', description: "There is no such resource; another partner's is answered alike." },
  405: { code: 'method_not_allowed', description: 'The path does not have that method.' },
  408: { code: 'timeout', description: 'The request did not arrive in time.' },
  409: { code: 'conflict', description: 'The request conflicts with the current state.' },
  411: { code: 'length_required', description: 'The call needs a body, and none was announced.' },
  412: { code: 'precondition_failed', description: 'If-Match does not hold the ETag of the file.' },
  413: { code: 'payload_too_large', description: 'The body is larger than the call allows.' },
  415: {
    code: 'unsupported_media_type',
    description: 'The body is of another media type than the call takes, or compressed.',
  },
  416: { code: 'range_not_satisfiable', description: 'The range lies outside the file.' },
  422: { code: 'unprocessable', description: 'The input is well-formed and cannot be processed.' },
  429: {
    code: 'rate_limited',
    description: 'A rate limit or the quota is exceeded; Retry-After gives the seconds to wait.',
  },
  431: { code: 'headers_too_large', description: 'The request line and headers are too large.' },
  500: { code: 'internal', description: 'Internal failure.' },
  503: {
    code: 'unavailable',
    description: 'The service cannot take the call at the moment; Retry-After gives the seconds to wait.',
  },
};
