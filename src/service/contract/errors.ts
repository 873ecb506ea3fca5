import { z } from 'zod';
import type { ErrorCode, ErrorReason } from '../../core/domain/errors.js';
import { meaningsOf } from '../../core/domain/reference/entry.js';
import { ERROR_CODE_REFERENCE, ERROR_REASON_REFERENCE } from '../domain/reference/errors.js';
import { LIMIT_MEANINGS } from '../domain/reference/values.js';
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

/** A status of an error response. Each status has one code. */
export type ErrorStatus = keyof typeof CODES;

/** The code of each status, and its meaning. */
export const STATUS_OF_ERROR = Object.fromEntries(
  Object.entries(CODES).map(([status, code]) => [
    status,
    { code, description: ERROR_CODE_REFERENCE[code].meaning },
  ]),
) as Readonly<Record<ErrorStatus, { readonly code: ErrorCode; readonly description: string }>>;

/** The status of each code. */
export const STATUS_OF_CODE = Object.fromEntries(
  Object.entries(STATUS_OF_ERROR).map(([status, { code }]) => [code, Number(status)]),
) as Readonly<Record<ErrorCode, ErrorStatus>>;

/** The body of every error response (rule 5.1). */
export const errorSchema = z
  .object({
    error: z.string().min(1).meta({ description: 'Message for people. Its wording may change.' }),
    code: describedWords(meaningsOf(ERROR_CODE_REFERENCE)).meta({
      description: 'Class of the error. Each status has one code.',
    }),
    reason: describedWords(meaningsOf(ERROR_REASON_REFERENCE))
      .meta({ description: 'Stable slug of the exact cause.' })
      .exactOptional(),
    limit: describedWords(LIMIT_MEANINGS)
      .meta({ description: 'Name of the exceeded limit. Present with `rate_limited`.' })
      .exactOptional(),
    reviewId: identifierSchema
      .meta({ description: 'Id of the existing unresolved review. Present with `review_exists`.' })
      .exactOptional(),
  })
  .meta({
    id: 'Error',
    examples: [
      { error: 'The key lacks the scope of the call.', code: 'forbidden', reason: 'scope_missing' },
      { error: 'No file has been uploaded to this slot yet.', code: 'conflict', reason: 'upload_incomplete' },
    ],
  });

/** The error statuses of a route, and the reasons of each. An error may always have no reason. */
export type RouteErrors = Readonly<Partial<Record<ErrorStatus, readonly ErrorReason[]>>>;

/** The errors of any request. */
const ANY: RouteErrors = {
  400: ['malformed_http'],
  408: ['client_too_slow'],
  431: ['malformed_http'],
  500: [],
};
/** The errors of a route that uses a store. Many routes add an event, which needs capacity in the outbox. */
const STORED: RouteErrors = {
  500: ['record_damaged'],
  503: [
    'store_unavailable',
    'outbox_full',
    'shutting_down',
    'restoring',
    'registry_moved',
    'content_keys_lost',
  ],
};
/** The errors of parameters in path, query and headers. */
const CHECKED: RouteErrors = { 400: ['invalid_member', 'duplicate_parameter'] };
/** The errors of a route that calls the event bus directly. */
export const BUS: RouteErrors = { 503: ['bus_unavailable'] };
/** The errors of a request body. */
const BODY: RouteErrors = {
  400: ['upload_aborted', 'chunks_too_small'],
  411: [],
  413: ['body_too_large'],
  415: [],
  503: ['ingress_full'],
};

/** Returns the errors of a route without authentication. */
export function publicErrors(...own: readonly RouteErrors[]): RouteErrors {
  return union(ANY, ...own);
}

/** Returns the errors of a route that needs a partner's key. */
export function keyErrors(...own: readonly RouteErrors[]): RouteErrors {
  return union(
    ANY,
    STORED,
    CHECKED,
    {
      403: ['scope_missing', 'key_missing', 'signature_missing', 'signature_invalid'],
      429: ['rate_exceeded'],
      // The process is busy, and the partner has its share of the running calls.
      503: ['concurrency_exceeded'],
    },
    ...own,
  );
}

/** Returns the errors of a route that needs the operator's token. */
export function bearerErrors(...own: readonly RouteErrors[]): RouteErrors {
  return union(ANY, STORED, CHECKED, { 403: [] }, ...own);
}

export const JSON_BODY: RouteErrors = union(BODY, { 400: ['malformed_json'] });
export const STREAMED_BODY: RouteErrors = union(BODY, {
  503: ['concurrency_exceeded', 'engine_full', 'engine_failed'],
});
/** The errors of a form that ends with a file. */
export const FORM_WITH_FILE: RouteErrors = {
  400: [
    'form_malformed',
    'form_field_unknown',
    'form_field_duplicated',
    'form_field_too_large',
    'file_missing',
    'file_not_last',
    'file_name_missing',
  ],
};
/** The errors of a route whose read may wait for the partner's turn (rule 6.17). */
export const HEAVY_READ: RouteErrors = { 429: ['concurrency_exceeded'] };
/** The errors of a route that reads a credential of unknown origin. */
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
