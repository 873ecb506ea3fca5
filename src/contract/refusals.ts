import type { ErrorReason } from '../domain/errors.js';
import type { ErrorStatus } from './route.js';

/** Statuses a row may refuse with, and the reasons of each; a refusal without a reason is always possible. */
export type Refusals = Readonly<Partial<Record<ErrorStatus, readonly ErrorReason[]>>>;

/** What any request can come to, whatever it asks for. */
const ANY: Refusals = { 400: ['malformed_http'], 408: ['client_too_slow'], 431: ['malformed_http'], 500: [] };
/** Whatever looks at a store; many of them add an event, which takes room in the outbox. */
const STORED: Refusals = {
  500: ['record_damaged'],
  503: ['store_unavailable', 'outbox_full', 'shutting_down'],
};
/** Parameters in path, query and headers. */
const CHECKED: Refusals = { 400: ['invalid_member', 'duplicate_parameter'] };
/** Whatever asks the bus itself. */
export const BUS: Refusals = { 503: ['bus_unavailable'] };
/** A body that is announced, limited and read. */
const BODY: Refusals = {
  400: ['upload_aborted', 'chunks_too_small'],
  411: [],
  413: ['body_too_large'],
  415: [],
  503: ['ingress_full'],
};

/** The refusals of a row without authentication. */
export function publicRefusals(...own: readonly Refusals[]): Refusals {
  return union(ANY, ...own);
}

/** The refusals of a row that a partner's key opens. */
export function keyRefusals(...own: readonly Refusals[]): Refusals {
  return union(
    ANY,
    STORED,
    CHECKED,
    { 403: ['signature_missing', 'signature_invalid'], 429: ['rate_exceeded'] },
    ...own,
  );
}

/** The refusals of a row that the operator's token opens. */
export function bearerRefusals(...own: readonly Refusals[]): Refusals {
  return union(ANY, STORED, CHECKED, { 403: [] }, ...own);
}

export const JSON_BODY: Refusals = union(BODY, { 400: ['malformed_json'] });
export const STREAMED_BODY: Refusals = union(BODY, {
  503: ['concurrency_exceeded', 'engine_full', 'engine_failed'],
});
/** Whatever has a credential of anybody read. */
export const READING: Refusals = { 503: ['reader_full', 'reader_failed'] };

function union(...all: readonly Refusals[]): Refusals {
  const statuses = new Map<string, Set<ErrorReason>>();
  for (const [status, reasons] of all.flatMap((refusals) => Object.entries(refusals))) {
    const known = statuses.get(status) ?? new Set();
    statuses.set(status, known);
    for (const reason of reasons) known.add(reason);
  }
  return Object.fromEntries([...statuses].map(([status, reasons]) => [status, [...reasons]]));
}
