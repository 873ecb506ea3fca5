/**
 * Domain errors: a closed list of codes, one for each HTTP status, and a closed list of reasons that state
 * the exact cause. A finding about a file is data and never a domain error.
 */

/** The code of an error, a stable slug for clients. `src/service/contract/errors.ts` has the HTTP status of each code. */
export const ERROR_CODES = [
  'invalid_request',
  'forbidden',
  'not_found',
  'method_not_allowed',
  'timeout',
  'conflict',
  'length_required',
  'precondition_failed',
  'payload_too_large',
  'unsupported_media_type',
  'range_not_satisfiable',
  'unprocessable',
  'rate_limited',
  'headers_too_large',
  'internal',
  'unavailable',
] as const;
export type ErrorCode = (typeof ERROR_CODES)[number];

/** The reasons of errors: the additive member `reason` of the error body. */
export const ERROR_REASONS = [
  // requests
  'malformed_http',
  'malformed_json',
  'unknown_route',
  'invalid_member',
  'duplicate_parameter',
  'body_too_large',
  'client_too_slow',
  'chunks_too_small',
  // upload form
  'form_malformed',
  'form_field_missing',
  'form_field_unknown',
  'form_field_duplicated',
  'form_field_too_large',
  'form_policy_invalid',
  'form_policy_expired',
  'file_missing',
  'file_not_last',
  'field_after_file',
  'file_name_missing',
  'upload_incomplete',
  'upload_already_used',
  'upload_in_progress',
  'upload_aborted',
  'upload_expired',
  'purpose_mismatch',
  'content_length_mismatch',
  // verify and issuing
  'sidecar_not_base64',
  'plan_unknown',
  'plan_exists',
  'plans_full',
  'audio_malformed',
  'audio_already_credentialed',
  'audio_empty',
  'audio_unfinished',
  'audio_unknown',
  'container_needs_sidecar',
  'result_too_large',
  'idempotency_key_reused',
  'idempotency_in_progress',
  'legacy_differs',
  'asset_not_kept',
  // keys, reviews
  'already_rotated',
  'rotation_in_progress',
  'key_expiring',
  'last_active_key',
  'key_missing',
  'scope_missing',
  'signature_missing',
  'signature_invalid',
  'evidence_kind_already_open',
  'evidence_request_final',
  'evidence_requests_open',
  'review_exists',
  'review_resolved',
  // capture traces
  'trace_malformed',
  'trace_too_large',
  'trace_version_unknown',
  'trace_missing',
  'trace_simulated',
  // declarations
  'submission_id_reused',
  'declarations_full',
  // devices, source detail
  'device_revoked',
  'devices_full',
  'overlay_full',
  'source_detail_absent',
  // signing
  'signer_revoked',
  'signer_expired',
  'signer_not_begun',
  'signer_unavailable',
  // limits
  'quota_exceeded',
  'rate_exceeded',
  'concurrency_exceeded',
  'review_limit',
  // capacity
  'ingress_full',
  'engine_full',
  'engine_failed',
  'reader_full',
  'reader_failed',
  'replay_full',
  'store_unavailable',
  'record_damaged',
  'outbox_full',
  'bus_unavailable',
  'clock_wrong',
  'shutting_down',
  'restoring',
  'registry_moved',
  'content_keys_lost',
  // backup
  'snapshot_running',
  'snapshot_unsupported',
] as const;
export type ErrorReason = (typeof ERROR_REASONS)[number];

/** The limits that can be exceeded: the additive member `limit` of a 429, and the names in `RateLimit`. */
export const LIMIT_NAMES = [
  'monthly_quota',
  'request_rate',
  'rotation_rate',
  'concurrent_uploads',
  'uploads_of_address',
  'large_reads',
  'concurrent_downloads',
  'wrong_signatures',
  'product_events',
  'reviews',
] as const;
export type LimitName = (typeof LIMIT_NAMES)[number];

/** The servers, disks and devices outside the program that a call or a job can need. */
export const DEPENDENCIES = ['cassandra', 'kafka', 'bucket', 'disk', 'token'] as const;
export type Dependency = (typeof DEPENDENCIES)[number];

export interface DomainErrorOptions {
  readonly reason?: ErrorReason;
  /** The exceeded limit. It is sent as `limit`. */
  readonly limit?: LimitName;
  /** The existing review that prevents the call. It is sent as `reviewId`. */
  readonly reviewId?: string;
  /** The seconds after which the call may succeed. They are sent as `Retry-After`. */
  readonly retryAfterSeconds?: number;
  /** The dependency that failed. It is logged and counted, and never sent. */
  readonly dependency?: Dependency;
  readonly cause?: unknown;
}

/**
 * An error that the caller may see. The service sends `message` to partners, so it must not contain a path,
 * library name or secret (rule 5.9).
 */
export class DomainError extends Error {
  readonly code: ErrorCode;
  readonly reason: ErrorReason | undefined;
  readonly limit: LimitName | undefined;
  readonly reviewId: string | undefined;
  readonly retryAfterSeconds: number | undefined;
  readonly dependency: Dependency | undefined;

  constructor(code: ErrorCode, message: string, options: DomainErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'DomainError';
    this.code = code;
    this.reason = options.reason;
    this.limit = options.limit;
    this.reviewId = options.reviewId;
    this.retryAfterSeconds = options.retryAfterSeconds;
    this.dependency = options.dependency;
  }
}

/** The longest pause in seconds for which a message has no date. */
const DATED_SECONDS = 3600;

/**
 * Returns the error of a limit. Its message has the date in UTC if the pause is longer than one hour (rule
 * 5.11).
 * @param now in unix seconds, a fraction included
 */
export function limited(
  message: string,
  {
    reason,
    limit,
    now,
    retryAfterSeconds,
  }: {
    readonly reason: ErrorReason;
    readonly limit: LimitName;
    readonly now: number;
    readonly retryAfterSeconds: number;
  },
): DomainError {
  const date = new Date(Math.ceil(now + retryAfterSeconds) * 1000).toISOString().slice(0, 19);
  return new DomainError(
    'rate_limited',
    retryAfterSeconds > DATED_SECONDS ? `${message} Try again after ${date}Z.` : message,
    { reason, limit, retryAfterSeconds },
  );
}

/**
 * Returns the error for a registry record that this installation did not write in this form (rule 5.10).
 * Repeating the call does not help, and the service makes no decision from the record.
 */
export function recordDamaged(cause: unknown): DomainError {
  return new DomainError('internal', 'A record of the registry is damaged.', {
    reason: 'record_damaged',
    cause,
  });
}

export function isRecordDamaged(error: unknown): boolean {
  return error instanceof DomainError && error.reason === 'record_damaged';
}

/**
 * The error of a server that the service needs, or of the connection to it, with a message for the operator.
 * The message contains nothing from a caller, so it may be logged.
 */
export class ServerError extends Error {
  override readonly name: string = 'ServerError';
}

/** The most nested causes that are searched for a dependency. */
const CAUSES = 5;

/** Returns the dependency that an error or one of its causes names. */
export function dependencyOf(error: unknown): Dependency | undefined {
  for (let each = error, depth = 0; each instanceof Error && depth <= CAUSES; each = each.cause, depth += 1)
    if ('dependency' in each && each.dependency !== undefined) return each.dependency as Dependency;
  return undefined;
}
