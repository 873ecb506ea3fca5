/**
 * The meanings of error codes and error reasons. The OpenAPI document and the page at `/docs` are built from
 * this registry (rules 5.2 and 5.4).
 */
import type { ErrorCode, ErrorReason } from '../../../core/domain/errors.js';
import type { ReferenceEntry } from '../../../core/domain/reference/entry.js';

export type ErrorEntry = Pick<ReferenceEntry, 'meaning' | 'caller'>;

const CORRECT = 'Correct the request. Sending it again unchanged fails again.';
const CORRECT_FORM = 'Build the form from the unchanged fields of the slot, with the file as the last part.';
const REPEAT = 'Repeat the request after the number of seconds in Retry-After.';
const NEW_SLOT = 'Create a new slot and post the file to it.';

export const ERROR_CODE_REFERENCE = {
  invalid_request: {
    meaning: 'The request has malformed syntax or invalid input.',
    caller: CORRECT,
  },
  forbidden: {
    meaning: 'The key is missing, invalid, or not allowed to do this.',
    caller: 'Check the key, its environment and its scopes.',
  },
  not_found: {
    meaning: 'The resource does not exist or belongs to another partner.',
    caller: 'Check the path and the id.',
  },
  method_not_allowed: {
    meaning: 'The path does not support this method.',
    caller: 'Use a method from the header Allow.',
  },
  timeout: {
    meaning: 'The request did not arrive in time.',
    caller: 'Send the request again, without pauses.',
  },
  conflict: {
    meaning: 'The request conflicts with the current state of the resource.',
    caller: 'Read the current state before you continue. The reason states the conflict.',
  },
  length_required: {
    meaning: 'The operation needs a body, but the request has no Content-Length and is not chunked.',
    caller: 'Send a body, with Content-Length or chunked.',
  },
  precondition_failed: {
    meaning: 'If-Match does not contain the current ETag of the file.',
    caller: 'Download the whole file again.',
  },
  payload_too_large: {
    meaning: 'The body is too large.',
    caller:
      'Send a body within the limit of the operation. A file above 65 MiB needs a slot of the purpose `verify_large` or `identify_large`, and an issuing with `--large`.',
  },
  unsupported_media_type: {
    meaning: 'The operation does not accept this media type, or the body is compressed.',
    caller: 'Send a media type that the operation accepts, without Content-Encoding.',
  },
  range_not_satisfiable: {
    meaning: 'The requested range is outside the file.',
    caller: 'Request a range within the length given in Content-Range.',
  },
  unprocessable: {
    meaning: 'The input is well-formed but cannot be processed.',
    caller: 'Send different input. The reason states what is wrong.',
  },
  rate_limited: {
    meaning: 'A rate limit or the quota is exceeded. Retry-After gives the seconds to wait.',
    caller: REPEAT,
  },
  headers_too_large: {
    meaning: 'The request line and headers are too large.',
    caller: 'Send fewer or shorter headers.',
  },
  internal: {
    meaning: 'The service failed internally.',
    caller:
      'Report the X-Request-Id to the operator. If the request is safe to repeat, repeat it a few times at most.',
  },
  unavailable: {
    meaning: 'The service cannot process the request at the moment. Retry-After gives the seconds to wait.',
    caller: REPEAT,
  },
} as const satisfies Readonly<Record<ErrorCode, ErrorEntry>>;

export const ERROR_REASON_REFERENCE = {
  malformed_http: {
    meaning: 'The request is not valid HTTP, or uses HTTP that the service does not accept.',
    caller: CORRECT,
  },
  malformed_json: {
    meaning:
      'The body is not JSON in UTF-8, has a duplicate member, or has too many members or levels of nesting.',
    caller: CORRECT,
  },
  unknown_route: {
    meaning: 'The path does not exist.',
    caller: 'Check the base URL and the path, including its version.',
  },
  invalid_member: {
    meaning:
      'A member or parameter is unknown, missing, or has a wrong format. The message states which one.',
    caller: CORRECT,
  },
  duplicate_parameter: { meaning: 'A query parameter is given more than once.', caller: CORRECT },
  body_too_large: {
    meaning: 'The body is larger than the operation allows.',
    caller: 'Send a body within the limit of the operation.',
  },
  client_too_slow: {
    meaning: 'The headers or the body arrived too slowly, so the service stopped waiting.',
    caller: 'Send the request again over a faster connection, without pauses.',
  },
  chunks_too_small: {
    meaning: 'The body arrived in too many small pieces.',
    caller: 'Buffer the body and send larger pieces.',
  },
  form_malformed: {
    meaning: 'The body is not a readable multipart form. The message states what is wrong.',
    caller: CORRECT_FORM,
  },
  form_field_missing: {
    meaning: 'A field of the form is missing before the file. The message names it.',
    caller: CORRECT_FORM,
  },
  form_field_unknown: {
    meaning: 'The form has an unexpected field. The message names it.',
    caller: CORRECT_FORM,
  },
  form_field_duplicated: { meaning: 'The form has the same field twice.', caller: CORRECT_FORM },
  form_field_too_large: { meaning: 'A field of the form is too large.', caller: CORRECT_FORM },
  form_policy_invalid: {
    meaning: 'The policy or signature does not match this upload slot.',
    caller: 'Send the fields of the slot unchanged to the URL of the same slot.',
  },
  form_policy_expired: { meaning: 'The slot has expired.', caller: NEW_SLOT },
  file_missing: { meaning: 'The form has no file.', caller: CORRECT_FORM },
  file_not_last: {
    meaning: 'Another part follows the audio. The audio must be the last part.',
    caller: CORRECT_FORM,
  },
  field_after_file: {
    meaning: 'A field follows a file. Fields must be sent before files.',
    caller: CORRECT_FORM,
  },
  file_name_missing: {
    meaning: 'The file part of the form has no file name.',
    caller: 'Give the part any file name.',
  },
  upload_incomplete: {
    meaning: 'No file has been uploaded to this slot yet.',
    caller: 'Post the file first and wait for the response.',
  },
  upload_already_used: { meaning: 'A file was already uploaded to this slot.', caller: NEW_SLOT },
  upload_in_progress: {
    meaning: 'Another request is posting to this slot.',
    caller: 'Wait for the other request, or create a new slot.',
  },
  upload_aborted: {
    meaning: 'The connection ended before the body was complete.',
    caller: 'Send the request again. An upload slot is still open.',
  },
  upload_expired: {
    meaning:
      'The service has no such upload, and an upload of this age has expired. A slot accepts a file for 15 minutes, and a received file can be verified for one hour.',
    caller: NEW_SLOT,
  },
  purpose_mismatch: {
    meaning: 'The slot has a different purpose, or the purposes in query and body differ.',
    caller: 'Create a slot with the purpose that the operation needs.',
  },
  content_length_mismatch: {
    meaning: 'The length of the file differs from the `contentLength` of the slot.',
    caller: 'Post the whole file, or create a slot with the actual length.',
  },
  sidecar_not_base64: {
    meaning: 'The sidecar is not padded base64.',
    caller: 'Encode the bytes of the sidecar as in RFC 4648, section 4.',
  },
  plan_unknown: {
    meaning: 'No plan has this name.',
    caller: 'Use one of the plans listed in the message.',
  },
  plan_exists: {
    meaning: 'A plan with this name and different limits already exists.',
    caller: 'Change the limits of the existing plan, or choose another name.',
  },
  plans_full: {
    meaning: 'The installation has the maximum number of plans.',
    caller: 'Instead of creating a plan, change one that no partner uses any more.',
  },
  audio_malformed: {
    meaning:
      'The structure of the WAV file is broken. For each finding the message has the offset, what is there, and what should be there.',
    caller: 'If the message names `--mend`, issue the file with it. Otherwise export the file again.',
  },
  audio_already_credentialed: {
    meaning: 'The file already contains a credential.',
    caller: 'Send the file without its credential.',
  },
  audio_empty: { meaning: 'The file is empty or contains no audio.', caller: 'Send a file with audio.' },
  audio_unfinished: {
    meaning:
      'The recording was never closed: a size in the WAV file is a placeholder, as programs write it to a pipe.',
    caller: 'Open the recording in an audio program and save it again, or record to a file.',
  },
  audio_unknown: {
    meaning: 'The service does not know the container format of the file, so the file may not be audio.',
    caller:
      'Send a file in a known audio format. If the file is audio in another format, the operator can allow it with --allow-unknown-container.',
  },
  container_needs_sidecar: {
    meaning: 'Only WAV and BWF files with PCM or float audio can contain their credential.',
    caller: 'Request a sidecar.',
  },
  result_too_large: {
    meaning: 'With its credential, the file would exceed the maximum file size.',
    caller: 'Issue the file with --large, request a sidecar, or send a smaller file.',
  },
  idempotency_key_reused: {
    meaning: 'The Idempotency-Key was already used for a different request.',
    caller:
      'Use a new Idempotency-Key for each new request. Use the same one only to repeat a request unchanged.',
  },
  idempotency_in_progress: {
    meaning: 'Another request with this Idempotency-Key is in progress.',
    caller: 'Wait for the other request. Then repeat your request with the same Idempotency-Key.',
  },
  legacy_differs: {
    meaning: 'This id already belongs, or belonged, to a different proof.',
    caller: 'Check the source of the import. The existing proof is unchanged.',
  },
  asset_not_kept: {
    meaning: 'The proof was imported from an earlier registry without its files.',
    caller: 'Use your own copy of the files. The service never stored them.',
  },
  already_rotated: {
    meaning: 'The key was already rotated and expires soon.',
    caller: 'Use the new key that replaced it. If you lost the new key, ask the operator for another one.',
  },
  rotation_in_progress: {
    meaning: 'Another request is rotating the key.',
    caller: 'Wait for the other request. Its response contains the new key.',
  },
  key_expiring: {
    meaning: 'A rotated key may revoke only itself.',
    caller: 'Make the call with the new key that replaced this one.',
  },
  last_active_key: {
    meaning: 'This is the last active key of the partner.',
    caller: 'Rotate the key first. Then revoke the old key with the new one.',
  },
  key_missing: {
    meaning: 'The request has no API key.',
    caller: 'Send the key in the header `x-api-key`.',
  },
  scope_missing: {
    meaning: 'The key does not have the scope that the operation needs.',
    caller: 'Use a key with this scope, or ask the operator for one.',
  },
  signature_missing: {
    meaning: 'The key requires signed calls, and this call is not signed.',
    caller: 'Sign the call (RFC 9421).',
  },
  signature_invalid: {
    meaning:
      'The signature of the call is invalid: the key, the time, the nonce or the covered parts are wrong.',
    caller: 'Check the clock and the covered parts, and sign each attempt separately.',
  },
  evidence_kind_already_open: {
    meaning: 'The case already has a request for this kind of evidence.',
    caller: 'Use the existing request. Each kind can be requested once per case.',
  },
  evidence_request_final: {
    meaning: 'The evidence request was already accepted or declined.',
    caller: 'If you need more evidence, request another kind.',
  },
  evidence_requests_open: {
    meaning: 'The case has open evidence requests.',
    caller: 'Accept or decline each request, then resolve the case.',
  },
  review_exists: {
    meaning: 'You already have an unresolved review of this proof with the same bindings.',
    caller: 'Continue with the review given in `reviewId`.',
  },
  review_resolved: {
    meaning: 'The case is already resolved.',
    caller: 'Create a new review if you need one.',
  },
  trace_malformed: {
    meaning: 'The trace cannot be read.',
    caller: 'Send the trace unchanged, as the agent wrote it.',
  },
  trace_too_large: {
    meaning: 'The trace is larger than the operation allows, or takes too much work to replay.',
    caller: 'Issue without the trace, or with the trace of a shorter session.',
  },
  trace_version_unknown: {
    meaning: 'This service does not support the version of the trace.',
    caller: 'Use an agent version that the service supports.',
  },
  trace_missing: {
    meaning: 'The form has a summary or detections but no trace.',
    caller: 'Add the trace, or omit the summary and the detections.',
  },
  trace_simulated: {
    meaning: 'The trace is a generated test trace, which this environment does not accept.',
    caller: 'Use the trace in a test environment.',
  },
  submission_id_reused: {
    meaning: 'The submission id was already used with different answers.',
    caller: 'Use a new id for new answers.',
  },
  declarations_full: {
    meaning: 'The proof has the maximum number of declarations.',
    caller: 'Do not add more declarations. The existing declarations are kept.',
  },
  device_revoked: {
    meaning: 'The device was revoked.',
    caller: 'Enrol the device with a new key.',
  },
  devices_full: {
    meaning: 'The installation has the maximum number of devices.',
    caller: 'Do not enrol more devices. The limit cannot be raised by a setting.',
  },
  overlay_full: {
    meaning: 'The declarations and consents of the proof were changed the maximum number of times.',
    caller: 'Leave the consent as it is. It can still be revoked.',
  },
  source_detail_absent: {
    meaning: 'The proof has no source detail.',
    caller: 'Do not record a consent. There is nothing to deliver.',
  },
  signer_revoked: {
    meaning: 'The signing certificate was revoked. Nothing can be issued until a new certificate is in use.',
    caller: REPEAT,
  },
  signer_expired: {
    meaning:
      'The signing certificate, or the certificate of its authority, has expired. Nothing can be issued until a new certificate is in use. Verifying continues.',
    caller: REPEAT,
  },
  signer_not_begun: {
    meaning:
      'The validity of the signing certificate, or of the certificate of its authority, has not begun. Nothing can be issued before. Verifying continues.',
    caller: REPEAT,
  },
  signer_unavailable: { meaning: 'The signing key cannot be reached at the moment.', caller: REPEAT },
  quota_exceeded: {
    meaning: 'The month has fewer units left than the call needs. Refused calls are free.',
    caller: 'Wait until the time in the message, or ask the operator for another plan.',
  },
  rate_exceeded: {
    meaning: 'The requests exceed the request rate.',
    caller:
      'Repeat the request after the number of seconds in Retry-After. Then send fewer requests per second.',
  },
  concurrency_exceeded: {
    meaning: 'Too many requests of this kind are running at the same time.',
    caller:
      'Repeat the request after the number of seconds in Retry-After. Then send fewer requests at the same time.',
  },
  review_limit: {
    meaning: 'The partner has the maximum number of reviews, on this proof or in total.',
    caller: 'Try again at the time in the message, when the oldest review ends.',
  },
  ingress_full: { meaning: 'The service is receiving too much data at the same time.', caller: REPEAT },
  engine_full: { meaning: 'Too many uploads are being processed.', caller: REPEAT },
  engine_failed: { meaning: 'The audio could not be measured.', caller: REPEAT },
  reader_full: { meaning: 'Too many credentials are waiting to be read.', caller: REPEAT },
  reader_failed: { meaning: 'Reading the credential failed this time.', caller: REPEAT },
  replay_full: {
    meaning: 'Too many traces are being replayed, or replaying this one took too long.',
    caller: REPEAT,
  },
  store_unavailable: { meaning: 'The store cannot be reached or does not respond in time.', caller: REPEAT },
  record_damaged: {
    meaning: 'A record of the registry is damaged, so the service makes no decision from it.',
    caller: 'Report the X-Request-Id to the operator. Repeating the request does not help.',
  },
  outbox_full: { meaning: 'Too many events are waiting to be published to other systems.', caller: REPEAT },
  bus_unavailable: { meaning: 'The event bus cannot be reached.', caller: REPEAT },
  clock_wrong: { meaning: 'The clock of the process that responded is wrong.', caller: REPEAT },
  shutting_down: { meaning: 'The process that responded is shutting down.', caller: REPEAT },
  restoring: { meaning: 'The registry is being restored.', caller: REPEAT },
  registry_moved: {
    meaning: 'The registry is being moved to other servers, and this one answers no more calls.',
    caller: REPEAT,
  },
  content_keys_lost: {
    meaning: 'The keys that decrypt the registry are not in their place.',
    caller: REPEAT,
  },
  snapshot_running: {
    meaning: 'Another call is reading a snapshot of the store.',
    caller: 'Wait until the other backup has ended, and repeat the request.',
  },
  snapshot_unsupported: {
    meaning:
      'The store of this service is shared by several processes, so a snapshot cannot be read from one.',
    caller: 'Back up the servers of the store instead.',
  },
} as const satisfies Readonly<Record<ErrorReason, ErrorEntry>>;
