/**
 * Meaning of the codes and reasons of errors: the one registry, from which the OpenAPI document and the page at `/docs`
 * are made (rules 5.2 and 5.4).
 */
import type { ErrorCode, ErrorReason } from '../errors.js';
import type { ReferenceEntry } from './entry.js';

export type ErrorEntry = Pick<ReferenceEntry, 'meaning' | 'caller'>;

const CORRECT = 'Correct the request; the same one fails again.';
const CORRECT_FORM =
  'Build the form from the fields of the slot, in their form, and the file as the last part.';
const REPEAT = 'Send it again after Retry-After.';
const NEW_SLOT = 'Ask for a new slot, and post to that one.';

export const ERROR_CODE_REFERENCE = {
  invalid_request: {
    meaning: 'The request could not be understood: malformed syntax or invalid input.',
    caller: CORRECT,
  },
  forbidden: {
    meaning: 'The key is missing, or not valid for the action.',
    caller: 'Check the key, its environment and its scopes.',
  },
  not_found: {
    meaning: "There is no such resource; another partner's is answered alike.",
    caller: 'Check the path and the id.',
  },
  method_not_allowed: {
    meaning: 'The path does not have that method.',
    caller: 'Use one of the methods in the header Allow.',
  },
  timeout: { meaning: 'The request did not arrive in time.', caller: 'Send it again, without pauses.' },
  conflict: {
    meaning: 'The request conflicts with the current state.',
    caller: 'Read the state again, and decide on it; the reason says what stands in the way.',
  },
  length_required: {
    meaning: 'The call needs a body, and none was announced.',
    caller: 'Send the body, with Content-Length or in chunks.',
  },
  precondition_failed: {
    meaning: 'If-Match does not hold the ETag of the file.',
    caller: 'Download the file anew, from its beginning.',
  },
  payload_too_large: {
    meaning: 'The body is larger than the call allows.',
    caller: 'Send less; the operation has its limit.',
  },
  unsupported_media_type: {
    meaning: 'The body is of another media type than the call takes, or compressed.',
    caller: 'Send the media type of the operation, without Content-Encoding.',
  },
  range_not_satisfiable: {
    meaning: 'The range lies outside the file.',
    caller: 'Ask for a range within the length that Content-Range gives.',
  },
  unprocessable: {
    meaning: 'The input is well-formed and cannot be processed.',
    caller: 'Send other input; the reason says what is wrong with it.',
  },
  rate_limited: {
    meaning: 'A rate limit or the quota is exceeded; Retry-After gives the seconds to wait.',
    caller: REPEAT,
  },
  headers_too_large: {
    meaning: 'The request line and headers are too large.',
    caller: 'Send fewer or shorter headers.',
  },
  internal: {
    meaning: 'Internal failure.',
    caller: 'Report it with the X-Request-Id; repeat what may be repeated, a few times at most.',
  },
  unavailable: {
    meaning: 'The service cannot take the call at the moment; Retry-After gives the seconds to wait.',
    caller: REPEAT,
  },
} as const satisfies Readonly<Record<ErrorCode, ErrorEntry>>;

export const ERROR_REASON_REFERENCE = {
  malformed_http: { meaning: 'The request is no HTTP that the service takes.', caller: CORRECT },
  malformed_json: {
    meaning: 'The body is no JSON in UTF-8, names a member twice, or is nested or divided beyond the limits.',
    caller: CORRECT,
  },
  unknown_route: {
    meaning: 'The service has no such path.',
    caller: 'Check the base address and the path, its version included.',
  },
  invalid_member: {
    meaning:
      'A member or parameter is unknown, missing, or not of the form it should have; the message names it.',
    caller: CORRECT,
  },
  duplicate_parameter: { meaning: 'A query parameter is given more than once.', caller: CORRECT },
  body_too_large: {
    meaning: 'The body is larger than the operation allows.',
    caller: 'Send less; the operation has its limit.',
  },
  client_too_slow: {
    meaning: 'Headers or body came too slowly, and the service stopped waiting.',
    caller: 'Send it again over a better line, without pauses.',
  },
  chunks_too_small: {
    meaning: 'The body came in too many pieces that are too small.',
    caller: 'Send larger pieces: buffer before you write.',
  },
  form_malformed: { meaning: 'The body is no multipart form that can be read.', caller: CORRECT_FORM },
  form_field_missing: { meaning: 'A field of the form is missing.', caller: CORRECT_FORM },
  form_field_unknown: { meaning: 'The form has a field that it should not have.', caller: CORRECT_FORM },
  form_field_duplicated: { meaning: 'The form has a field twice.', caller: CORRECT_FORM },
  form_field_too_large: { meaning: 'A field of the form is larger than any can be.', caller: CORRECT_FORM },
  form_policy_invalid: {
    meaning: 'The fields of the form are not those of this slot.',
    caller: 'Send the fields unaltered, to the URL that came with them.',
  },
  form_policy_expired: { meaning: 'The slot has expired.', caller: NEW_SLOT },
  file_missing: { meaning: 'The form has no file.', caller: CORRECT_FORM },
  file_not_last: {
    meaning: 'Something follows the audio, which must be the last part.',
    caller: CORRECT_FORM,
  },
  field_after_file: { meaning: 'A field follows a file.', caller: CORRECT_FORM },
  file_name_missing: {
    meaning: 'The part of a file has no file name.',
    caller: 'Give the part a file name; any will do.',
  },
  upload_incomplete: {
    meaning: 'No file has been uploaded to this slot yet.',
    caller: 'Post the file first, and wait for the answer to it.',
  },
  upload_already_used: { meaning: 'A file was uploaded to this slot before.', caller: NEW_SLOT },
  upload_in_progress: {
    meaning: 'Another request is posting to this slot.',
    caller: 'Wait for the other request, or ask for a new slot.',
  },
  upload_aborted: {
    meaning: 'The connection ended before the body was complete.',
    caller: 'Send it again; the slot is still open.',
  },
  purpose_mismatch: {
    meaning: 'The slot was made for another purpose, or the purpose in query and body differ.',
    caller: 'Ask for a slot of the purpose that the operation needs.',
  },
  content_length_mismatch: {
    meaning: 'The file does not have the length that the slot was asked for.',
    caller: 'Post the whole file, or ask for a slot of its true length.',
  },
  sidecar_not_base64: {
    meaning: 'The sidecar is no padded base64.',
    caller: 'Encode the bytes of the sidecar by RFC 4648, section 4.',
  },
  plan_unknown: { meaning: 'There is no plan of that name.', caller: 'Use a plan that the message names.' },
  plan_exists: {
    meaning: 'There is a plan of that name with other limits.',
    caller: 'Change its limits, or give the new plan another name.',
  },
  plans_full: {
    meaning: 'The installation has as many plans as it may have.',
    caller: 'Change a plan that no partner has any more.',
  },
  audio_malformed: {
    meaning: 'The structure of the WAV file is broken; the message names the findings.',
    caller: 'Export the file anew.',
  },
  audio_already_credentialed: {
    meaning: 'The file holds a credential already.',
    caller: 'Issue for the file without its credential.',
  },
  audio_empty: { meaning: 'The file is empty, or holds no audio.', caller: 'Send a file with audio.' },
  container_needs_sidecar: {
    meaning: 'Only WAV and BWF files can hold their credential.',
    caller: 'Ask for a sidecar.',
  },
  result_too_large: {
    meaning: 'With its credential the file would be larger than a file may be.',
    caller: 'Ask for a sidecar, or send a smaller file.',
  },
  idempotency_key_reused: {
    meaning: 'The Idempotency-Key was used with another request.',
    caller: 'Take a new key for each request, and the same one for its repetitions alone.',
  },
  idempotency_in_progress: {
    meaning: 'A request with this Idempotency-Key is under way.',
    caller: 'Wait for it, and repeat the request with the same key.',
  },
  legacy_differs: {
    meaning: 'Under this id the registry knows something else, or knew it.',
    caller: 'Check the source of the import; the proof that is there stays.',
  },
  asset_not_kept: {
    meaning: 'The proof was imported from an earlier registry without its files.',
    caller: 'Use your own copy of the files; the service never had them.',
  },
  already_rotated: {
    meaning: 'The key has been rotated and is in its grace window.',
    caller: 'Use the successor; where it was lost, ask the operator for a key.',
  },
  rotation_in_progress: {
    meaning: 'Another request is rotating the key.',
    caller: 'Wait for the other request, whose answer has the new key.',
  },
  key_expiring: {
    meaning: 'A key that was rotated may revoke itself alone.',
    caller: 'Do it with the successor.',
  },
  last_active_key: {
    meaning: 'This is the last active key.',
    caller: 'Rotate it first, and revoke it with its successor.',
  },
  scope_missing: {
    meaning: 'The key does not have the scope that the operation needs.',
    caller: 'Use a key with the scope of the operation, or ask the operator for one.',
  },
  signature_missing: {
    meaning: 'The key asks for signed calls, and this one is not signed.',
    caller: 'Sign the call (RFC 9421).',
  },
  signature_invalid: {
    meaning: 'The signature of the call does not hold: key, time, nonce, or what it covers.',
    caller: 'Check the clock and the parts covered, and sign each attempt anew.',
  },
  evidence_kind_already_open: {
    meaning: 'A request for this kind of evidence is open in the case.',
    caller: 'Wait for the answer to the open request, or close it.',
  },
  evidence_request_final: {
    meaning: 'The request for evidence was accepted or declined.',
    caller: 'Make a new request for evidence where more is needed.',
  },
  evidence_requests_open: {
    meaning: 'Requests for evidence are open in the case.',
    caller: 'Close each of them, then resolve the case.',
  },
  review_exists: {
    meaning: 'There is an unresolved review of the same partner and bindings.',
    caller: 'Go on with the review that `reviewId` names.',
  },
  review_resolved: {
    meaning: 'The case has been resolved.',
    caller: 'Create a new review where one is needed.',
  },
  trace_malformed: { meaning: 'The trace cannot be read.', caller: 'Send the trace as its agent wrote it.' },
  trace_too_large: {
    meaning: 'The trace is larger than the operation allows.',
    caller: 'Issue without the trace, or with one of a shorter session.',
  },
  trace_version_unknown: {
    meaning: 'The trace has a version that this service does not read.',
    caller: 'Use an agent of a version that the service knows.',
  },
  trace_missing: {
    meaning: 'A summary or detections came without a trace.',
    caller: 'Send the trace with them, or leave them out.',
  },
  trace_simulated: {
    meaning: 'A generator made the trace, and this environment takes none of those.',
    caller: 'Use it in a test environment.',
  },
  submission_id_reused: {
    meaning: 'The submission id was used with other answers.',
    caller: 'Take a new id for new answers.',
  },
  declarations_full: {
    meaning: 'The proof has as many declarations as it can have.',
    caller: 'Add no further ones; those that are there stay.',
  },
  device_revoked: {
    meaning: 'The device was revoked.',
    caller: 'Enrol the device with a new key.',
  },
  devices_full: {
    meaning: 'The installation has as many devices as it can have.',
    caller: 'Ask for more room before you enrol another.',
  },
  overlay_full: {
    meaning: 'The consent to source detail was changed as often as it can be.',
    caller: 'Leave it as it is.',
  },
  source_detail_absent: {
    meaning: 'The proof has no source detail.',
    caller: 'Nothing is there that could be released.',
  },
  signer_revoked: {
    meaning: 'The certificate that signs here was revoked: nothing is issued until another one is there.',
    caller: REPEAT,
  },
  signer_unavailable: { meaning: 'The key that signs cannot be reached at the moment.', caller: REPEAT },
  quota_exceeded: {
    meaning: 'The quota of the month is used up; refused calls cost nothing.',
    caller: 'Wait until the time in the message, or ask the operator for another plan.',
  },
  rate_exceeded: {
    meaning: 'More requests came than the rate allows.',
    caller: 'Send it again after Retry-After, and fewer requests a second.',
  },
  concurrency_exceeded: {
    meaning: 'Too many requests of this kind run at once.',
    caller: 'Send it again after Retry-After, and fewer at once.',
  },
  review_limit: {
    meaning: 'There are as many reviews as a partner may have on a proof, or in all.',
    caller: 'Resolve cases that are done with, and try again at the time in the message.',
  },
  ingress_full: { meaning: 'The service is receiving too much at once.', caller: REPEAT },
  engine_full: { meaning: 'Too many uploads are in flight.', caller: REPEAT },
  engine_failed: { meaning: 'The audio could not be measured.', caller: REPEAT },
  reader_full: { meaning: 'Too many credentials wait to be read.', caller: REPEAT },
  reader_failed: { meaning: 'The credential could not be read at this attempt.', caller: REPEAT },
  replay_full: { meaning: 'Too many traces are being replayed.', caller: REPEAT },
  store_unavailable: { meaning: 'The store cannot be reached, or does not answer in time.', caller: REPEAT },
  record_damaged: {
    meaning: 'A record of the registry is damaged, and nothing is decided on it.',
    caller: 'Report it with the X-Request-Id; asking again does not help.',
  },
  outbox_full: { meaning: 'Too much waits to be passed on to other systems.', caller: REPEAT },
  bus_unavailable: { meaning: 'The bus for events cannot be reached.', caller: REPEAT },
  clock_wrong: { meaning: 'The clock of the process that answered is wrong.', caller: REPEAT },
  shutting_down: { meaning: 'The process that answered is stopping.', caller: REPEAT },
  restoring: { meaning: 'The registry is being restored.', caller: REPEAT },
} as const satisfies Readonly<Record<ErrorReason, ErrorEntry>>;
