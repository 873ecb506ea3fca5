import { z } from 'zod';
import { ERROR_CODES, ERROR_REASONS, type ErrorCode, type ErrorReason } from '../domain/errors.js';
import { identifierSchema, knownWords } from './primitives.js';

/** Statuses of an error response; each has one code (rule 5.2). */
export type ErrorStatus =
  | 400
  | 403
  | 404
  | 405
  | 408
  | 409
  | 411
  | 412
  | 413
  | 415
  | 416
  | 422
  | 429
  | 431
  | 500
  | 503;

/** The code of each status, and the meaning of the status in the contract. */
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

/** The table from the code's side. */
export const STATUS_OF_CODE = Object.fromEntries(
  Object.entries(STATUS_OF_ERROR).map(([status, { code }]) => [code, Number(status)]),
) as Readonly<Record<ErrorCode, ErrorStatus>>;

/** The body of every error response (rule 5.1). */
export const errorSchema = z
  .object({
    error: z.string().min(1).meta({ description: 'A sentence for people; its wording may change.' }),
    code: knownWords(ERROR_CODES).meta({ description: 'Class of the error, one for each status.' }),
    reason: knownWords(ERROR_REASONS)
      .meta({ description: 'Slug of what happened, precisely.' })
      .exactOptional(),
    reviewId: identifierSchema
      .meta({ description: 'With `review_exists`: the unresolved review that is there.' })
      .exactOptional(),
  })
  .meta({
    id: 'Error',
    examples: [
      { error: 'The key is missing or not valid for this action.', code: 'forbidden' },
      { error: 'No file has been uploaded to this slot yet.', code: 'conflict', reason: 'upload_incomplete' },
    ],
  });

/** Error statuses of a route, and the reasons of each; an error without a reason is always possible. */
export type RouteErrors = Readonly<Partial<Record<ErrorStatus, readonly ErrorReason[]>>>;

/** Errors of any request, whatever it asks for. */
const ANY: RouteErrors = {
  400: ['malformed_http'],
  408: ['client_too_slow'],
  431: ['malformed_http'],
  500: [],
};
/** Errors of whatever looks at a store; many routes add an event, which takes capacity of the outbox. */
const STORED: RouteErrors = {
  500: ['record_damaged'],
  503: ['store_unavailable', 'outbox_full', 'shutting_down', 'restoring'],
};
/** Errors of parameters in path, query and headers. */
const CHECKED: RouteErrors = { 400: ['invalid_member', 'duplicate_parameter'] };
/** Errors of whatever asks the bus itself. */
export const BUS: RouteErrors = { 503: ['bus_unavailable'] };
/** Errors of a body that is announced, limited and read. */
const BODY: RouteErrors = {
  400: ['upload_aborted', 'chunks_too_small'],
  411: [],
  413: ['body_too_large'],
  415: [],
  503: ['ingress_full'],
};

/** Errors of a route without authentication. */
export function publicErrors(...own: readonly RouteErrors[]): RouteErrors {
  return union(ANY, ...own);
}

/** Errors of a route that a partner's key opens. */
export function keyErrors(...own: readonly RouteErrors[]): RouteErrors {
  return union(
    ANY,
    STORED,
    CHECKED,
    {
      403: ['scope_missing', 'signature_missing', 'signature_invalid'],
      429: ['rate_exceeded'],
      // Of a slow test key.
      503: ['concurrency_exceeded'],
    },
    ...own,
  );
}

/** Errors of a route that the operator's token opens. */
export function bearerErrors(...own: readonly RouteErrors[]): RouteErrors {
  return union(ANY, STORED, CHECKED, { 403: [] }, ...own);
}

export const JSON_BODY: RouteErrors = union(BODY, { 400: ['malformed_json'] });
export const STREAMED_BODY: RouteErrors = union(BODY, {
  503: ['concurrency_exceeded', 'engine_full', 'engine_failed'],
});
/** Errors of whatever has a stranger's credential read. */
export const READING: RouteErrors = { 503: ['reader_full', 'reader_failed'] };

function union(...all: readonly RouteErrors[]): RouteErrors {
  const statuses = new Map<string, Set<ErrorReason>>();
  for (const [status, reasons] of all.flatMap((errors) => Object.entries(errors))) {
    const known = statuses.get(status) ?? new Set();
    statuses.set(status, known);
    for (const reason of reasons) known.add(reason);
  }
  return Object.fromEntries([...statuses].map(([status, reasons]) => [status, [...reasons]]));
}
