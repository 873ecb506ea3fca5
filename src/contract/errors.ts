import { z } from 'zod';
import type { ErrorCode, ErrorReason } from '../domain/errors.js';
import { meaningsOf } from '../domain/reference/entry.js';
import { ERROR_CODE_REFERENCE, ERROR_REASON_REFERENCE } from '../domain/reference/errors.js';
import { describedWords, identifierSchema } from './primitives.js';

/** The code of each status (rule 5.2). */
const CODES = {
  400: 'invalid_request',
  403: 'forbidden',
  404: 'not_found',
  405: 'method_not_allowed',
  408: 'timeout',
  409: 'conflict',
  411: 'length_required',
  412: 'precondition_failed',
  413: 'payload_too_large',
  415: 'unsupported_media_type',
  416: 'range_not_satisfiable',
  422: 'unprocessable',
  429: 'rate_limited',
  431: 'headers_too_large',
  500: 'internal',
  503: 'unavailable',
} as const satisfies Readonly<Record<number, ErrorCode>>;

/** Statuses of an error response; each has one code. */
export type ErrorStatus = keyof typeof CODES;

/** The code of each status, and its meaning. */
export const STATUS_OF_ERROR = Object.fromEntries(
  Object.entries(CODES).map(([status, code]) => [
    status,
    { code, description: ERROR_CODE_REFERENCE[code].meaning },
  ]),
) as Readonly<Record<ErrorStatus, { readonly code: ErrorCode; readonly description: string }>>;

/** The table from the code's side. */
export const STATUS_OF_CODE = Object.fromEntries(
  Object.entries(STATUS_OF_ERROR).map(([status, { code }]) => [code, Number(status)]),
) as Readonly<Record<ErrorCode, ErrorStatus>>;

/** The body of every error response (rule 5.1). */
export const errorSchema = z
  .object({
    error: z.string().min(1).meta({ description: 'A sentence for people; its wording may change.' }),
    code: describedWords(meaningsOf(ERROR_CODE_REFERENCE)).meta({
      description: 'Class of the error, one for each status.',
    }),
    reason: describedWords(meaningsOf(ERROR_REASON_REFERENCE))
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
      // A slow test key finds all its places taken.
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
