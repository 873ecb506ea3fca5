import { MAX_SIDECAR_BYTES, MAX_UPLOAD_BYTES } from '../../domain/upload.js';
import {
  FORM_WITH_FILE,
  HEAVY_READ,
  JSON_BODY,
  keyErrors,
  publicErrors,
  READING,
  type RouteErrors,
  STREAMED_BODY,
} from '../errors.js';
import type { Route, RouteResponse } from '../route.js';
import {
  idempotencyHeadersSchema,
  keyEntrySchema,
  keyPageSchema,
  keyParamsSchema,
  listKeysQuerySchema,
  requiredIdempotencySchema,
  revokeKeyQuerySchema,
  rotatedKeySchema,
  usageQuerySchema,
  usageSchema,
} from '../schemas/key-schemas.js';
import {
  assetHeadersSchema,
  assetQuerySchema,
  erasureSchema,
  listProofsQuerySchema,
  proofDocumentSchema,
  proofPageSchema,
  proofParamsSchema,
  proofRecordSchema,
} from '../schemas/proof-schemas.js';
import {
  closeEvidenceSchema,
  createReviewSchema,
  evidenceParamsSchema,
  listReviewsQuerySchema,
  openEvidenceSchema,
  resolveReviewSchema,
  reviewCaseSchema,
  reviewPageSchema,
  reviewParamsSchema,
} from '../schemas/review-schemas.js';
import { fixtureParamsSchema, fixturesSchema } from '../schemas/sandbox-schemas.js';
import {
  docsFileParamsSchema,
  documentSchema,
  downloadQuerySchema,
  healthSchema,
  pageHeadersSchema,
  telemetryAcceptedSchema,
  telemetrySchema,
} from '../schemas/system-schemas.js';
import {
  createUploadQuerySchema,
  createUploadSchema,
  storedUploadSchema,
  uploadParamsSchema,
  uploadSlotSchema,
} from '../schemas/upload-schemas.js';
import {
  identificationSchema,
  identifySchema,
  verificationSchema,
  verifySchema,
} from '../schemas/verify-schemas.js';

/** The largest JSON body, in bytes (rule 2.10). */
export const JSON_BYTES = 65_536;
/** The largest JSON body of an identify, in bytes: 1,000 digests with their white space. */
const DIGESTS_BYTES = 131_072;
/** The most bytes that boundaries, part headers, signed fields and text around the parts may add to the file. */
export const FORM_BYTES = 65_536;

const JSON_TYPE = ['application/json'] as const;
const reviewCase = (description: string) => ({
  description,
  mediaTypes: JSON_TYPE,
  schema: reviewCaseSchema,
});

/**
 * The headers of a file response, the only response to a key that a client may store. It must be revalidated
 * each time.
 */
const FILE_HEADERS = {
  'Cache-Control': 'always',
  ETag: 'always',
  'Accept-Ranges': 'always',
  'Repr-Digest': 'always',
  'Content-Disposition': 'always',
  'Upload-Purpose': 'sometimes',
} as const;

/**
 * The errors of the sandbox routes. They exist only in beta, and the first call issues the sandbox's proofs.
 */
const SANDBOX: RouteErrors = {
  404: ['unknown_route'],
  503: [
    'signer_revoked',
    'signer_expired',
    'signer_not_begun',
    'signer_unavailable',
    'engine_full',
    'engine_failed',
    'reader_full',
    'reader_failed',
  ],
};

/** The errors of a response with a file, which holds memory until the caller has read it. */
const DOWNLOAD: RouteErrors = { 429: ['concurrency_exceeded'], 503: ['ingress_full'] };

/** The responses with a file, a range of a file, or no change (RFC 9110). */
const FILE_RESPONSES = {
  200: {
    description: 'The whole file',
    mediaTypes: ['audio/*', 'application/octet-stream'],
    headers: FILE_HEADERS,
  },
  206: {
    description: 'A range of the file',
    mediaTypes: ['audio/*', 'application/octet-stream'],
    headers: { ...FILE_HEADERS, 'Content-Range': 'always' },
  },
  304: {
    description: "The file has not changed since the caller's copy",
    headers: { ETag: 'always', 'Cache-Control': 'always' },
  },
} as const;

/** The headers of a page that caches store. They store each content coding separately. */
const PAGE_HEADERS = { ETag: 'always', 'Cache-Control': 'always', Vary: 'always' } as const;

/** The calls after a verdict. */
const AFTER_VERDICT = {
  readRecord: { parameters: { proofId: '$response.body#/proofId' } },
  readProof: { parameters: { proofId: '$response.body#/proofId' } },
  createReview: { body: { proofId: '$response.body#/proofId' } },
} as const;

/** Returns the responses with a page, or without a change of it. */
function pageResponses<MediaType extends string, Own extends RouteResponse['headers'] = object>(
  description: string,
  mediaType: MediaType,
  own?: Own,
) {
  return {
    200: {
      description,
      mediaTypes: [mediaType] as readonly [MediaType],
      headers: { ...PAGE_HEADERS, 'Content-Encoding': 'sometimes', ...own },
    },
    304: { description: "The page has not changed since the caller's copy", headers: PAGE_HEADERS },
  } as const;
}

/** The routes of the partner listener. They are matched in this order, so the busiest paths are first. */
export const PARTNER_ROUTES = {
  verify: {
    listener: 'partner',
    group: 'Verification',
    method: 'POST',
    path: '/v1/verify',
    summary: 'Verify one credentialed file, or an audio file and its sidecar',
    description:
      'Has no side effects and is safe to retry. Repeated calls for the same upload and sidecar are billed once, with one unit for each 65 MiB begun. The status is 200 for every verdict. Accept the file only if `good` is true and `verdict` is `valid`.',
    auth: 'key',
    scope: 'verify',
    body: { kind: 'json', schema: verifySchema, required: true, maxBytes: JSON_BYTES },
    responses: {
      200: {
        description: 'The verdict',
        mediaTypes: JSON_TYPE,
        schema: verificationSchema,
        next: AFTER_VERDICT,
      },
    },
    errors: keyErrors(
      JSON_BODY,
      {
        400: ['sidecar_not_base64'],
        404: ['upload_expired'],
        409: ['upload_incomplete', 'purpose_mismatch'],
        429: ['quota_exceeded'],
      },
      READING,
      HEAVY_READ,
    ),
    rateClass: 'standard',
    billed: true,
    noStore: true,
  },
  createUpload: {
    listener: 'partner',
    group: 'Verification',
    method: 'POST',
    path: '/v1/uploads',
    summary: 'Create a short-lived upload slot',
    description:
      'Next, post the audio to `url` as multipart/form-data: first every entry of `fields`, then the file in a field named `file`. Unused slots expire after 15 minutes. A file above 65 MiB needs the purpose `verify_large` or `identify_large`, and costs one unit for each 65 MiB begun. Safe to retry.',
    auth: 'key',
    scope: 'verify',
    query: createUploadQuerySchema,
    body: { kind: 'json', schema: createUploadSchema, required: false, maxBytes: JSON_BYTES },
    responses: {
      201: {
        description: 'The slot',
        mediaTypes: JSON_TYPE,
        schema: uploadSlotSchema,
        next: { postUpload: { parameters: { uploadId: '$response.body#/uploadId' } } },
      },
    },
    errors: keyErrors(JSON_BODY, { 400: ['purpose_mismatch'], 429: ['quota_exceeded'] }),
    rateClass: 'standard',
    noStore: true,
  },
  postUpload: {
    listener: 'partner',
    group: 'Verification',
    method: 'POST',
    path: '/uploads/{uploadId}',
    summary: 'Upload the audio to a slot, with the signed fields of the slot',
    description:
      'Needs no key: the signed fields authorise the call. Use the `url` of the slot unchanged. A slot accepts one file. After a failed or interrupted post it stays open until it expires. The post of a large file begins within the life of the slot, and may last as long as it keeps the minimum rate.',
    auth: 'form',
    params: uploadParamsSchema,
    body: { kind: 'slot' },
    responses: {
      201: {
        description: 'The audio was received and measured',
        mediaTypes: JSON_TYPE,
        schema: storedUploadSchema,
        next: {
          verify: { body: { uploadId: '$response.body#/uploadId' } },
          identify: { body: { uploadId: '$response.body#/uploadId' } },
        },
      },
    },
    errors: publicErrors(STREAMED_BODY, READING, FORM_WITH_FILE, {
      400: ['invalid_member', 'form_field_missing', 'content_length_mismatch'],
      403: ['form_policy_invalid', 'form_policy_expired'],
      404: [],
      409: ['upload_already_used', 'upload_in_progress'],
      429: ['concurrency_exceeded'],
      500: ['record_damaged'],
      503: ['store_unavailable', 'shutting_down', 'restoring', 'registry_moved', 'content_keys_lost'],
    }),
    noStore: true,
  },
  verifyFile: {
    listener: 'partner',
    group: 'Verification',
    method: 'POST',
    path: '/v1/verifications',
    summary: 'Send a file and get its verdict, in one call',
    description:
      'Does the same as an upload slot, a post to it and `verify`. Send multipart/form-data: the file in a field named `file`, as the last part. The optional `sidecar` is a file part before it. The key, the rate and the quota are checked before the body is read. A call costs one unit when its verdict is known, so a refused or interrupted call costs nothing. The Idempotency-Key is optional. For 24 hours, a repeated call with the same Idempotency-Key and the same bytes is judged again without a charge, with `idempotency-replayed: true`. With other bytes it is 409. With a key that requires signed calls, the signature covers `content-digest`, the digest of the whole form. The service compares it at the end of the body.',
    auth: 'key',
    scope: 'verify',
    headers: idempotencyHeadersSchema,
    body: {
      kind: 'form',
      maxBytes: MAX_UPLOAD_BYTES + FORM_BYTES,
      fileBytes: MAX_UPLOAD_BYTES,
      sidecarBytes: MAX_SIDECAR_BYTES,
    },
    responses: {
      200: {
        description: 'The verdict',
        mediaTypes: JSON_TYPE,
        schema: verificationSchema,
        next: AFTER_VERDICT,
        headers: { 'Idempotency-Replayed': 'sometimes' },
      },
    },
    errors: keyErrors(STREAMED_BODY, READING, FORM_WITH_FILE, HEAVY_READ, {
      409: ['idempotency_key_reused'],
      429: ['quota_exceeded'],
    }),
    rateClass: 'standard',
    billed: true,
    noStore: true,
  },
  readRecord: {
    listener: 'partner',
    group: 'Proofs',
    method: 'GET',
    path: '/v1/records/{proofId}',
    summary: 'Read the registered record of a proof',
    description:
      'Works for any proof of the environment. The record is not a verification result and does not state that any file matches. If the proof was erased, was never issued or is still pending, the response is the same 404.',
    auth: 'key',
    scope: 'proofs',
    params: proofParamsSchema,
    responses: { 200: { description: 'The record', mediaTypes: JSON_TYPE, schema: proofRecordSchema } },
    errors: keyErrors({ 404: [] }, HEAVY_READ),
    rateClass: 'standard',
    noStore: true,
  },
  listProofs: {
    listener: 'partner',
    group: 'Proofs',
    method: 'GET',
    path: '/v1/proofs',
    summary: 'List your own issued proofs, newest first',
    auth: 'key',
    scope: 'proofs',
    query: listProofsQuerySchema,
    responses: {
      200: {
        description: 'One page',
        mediaTypes: JSON_TYPE,
        schema: proofPageSchema,
        next: { listProofs: { parameters: { cursor: '$response.body#/nextCursor' } } },
      },
    },
    errors: keyErrors(HEAVY_READ),
    rateClass: 'standard',
    noStore: true,
  },
  readProof: {
    listener: 'partner',
    group: 'Proofs',
    method: 'GET',
    path: '/v1/proofs/{proofId}',
    summary: 'Read one of your own proofs',
    auth: 'key',
    scope: 'proofs',
    params: proofParamsSchema,
    responses: { 200: { description: 'The proof', mediaTypes: JSON_TYPE, schema: proofDocumentSchema } },
    errors: keyErrors({ 404: [] }, HEAVY_READ),
    rateClass: 'standard',
    noStore: true,
  },
  eraseProof: {
    listener: 'partner',
    group: 'Proofs',
    method: 'DELETE',
    path: '/v1/proofs/{proofId}',
    summary: 'Erase one of your own proofs',
    description:
      'Idempotent: a repeated call returns `already_erased` with the time of the first erasure. Removes the record, the reports, the delivered file and every review case of the proof. From then on the credential verifies as `unregistered`.',
    auth: 'key',
    scope: 'erase',
    params: proofParamsSchema,
    responses: {
      200: { description: 'The outcome of the erasure', mediaTypes: JSON_TYPE, schema: erasureSchema },
    },
    errors: keyErrors({ 404: [] }),
    rateClass: 'standard',
    noStore: true,
  },
  readProofAsset: {
    listener: 'partner',
    group: 'Proofs',
    method: 'GET',
    path: '/v1/proofs/{proofId}/asset',
    summary: 'Download the delivered file of one of your own proofs',
    description:
      'Returns the audio file. If its credential is in a sidecar, `?part=sidecar` returns the sidecar. Single byte ranges, `If-Range`, `If-Match` and `If-None-Match` work as in RFC 9110.',
    auth: 'key',
    scope: 'proofs',
    params: proofParamsSchema,
    query: assetQuerySchema,
    headers: assetHeadersSchema,
    responses: FILE_RESPONSES,
    errors: keyErrors(DOWNLOAD, { 404: ['asset_not_kept'], 412: [], 416: [] }),
    rateClass: 'standard',
    noStore: false,
  },
  listKeys: {
    listener: 'partner',
    group: 'Keys and usage',
    method: 'GET',
    path: '/v1/partner/keys',
    summary: 'List your keys',
    description:
      'Without `limit` and `cursor`, returns the complete list. With either of them, returns pages. Never returns a secret.',
    auth: 'key',
    scope: 'keys',
    query: listKeysQuerySchema,
    responses: { 200: { description: 'The keys', mediaTypes: JSON_TYPE, schema: keyPageSchema } },
    errors: keyErrors(),
    rateClass: 'standard',
    noStore: true,
  },
  rotateKey: {
    listener: 'partner',
    group: 'Keys and usage',
    method: 'POST',
    path: '/v1/partner/keys/rotate',
    summary: 'Replace the calling key',
    description:
      'The new key has the same plan, name and scopes. The calling key stays valid for 72 hours. Store the Idempotency-Key before you call. If you repeat the call with the same Idempotency-Key within 24 hours, you get the same response and secret, with `idempotency-replayed: true`. If you repeat the call with a different Idempotency-Key, the response is 409.',
    auth: 'key',
    scope: 'keys',
    headers: requiredIdempotencySchema,
    body: { kind: 'none' },
    responses: {
      201: {
        description: 'The new key',
        mediaTypes: JSON_TYPE,
        schema: rotatedKeySchema,
        headers: { 'Idempotency-Replayed': 'sometimes' },
      },
    },
    errors: keyErrors({ 400: ['upload_aborted'], 409: ['already_rotated', 'rotation_in_progress'] }),
    rateClass: 'rotation',
    noStore: true,
  },
  revokeOwnKey: {
    listener: 'partner',
    group: 'Keys and usage',
    method: 'DELETE',
    path: '/v1/partner/keys/{keyId}',
    summary: 'Revoke one of your own keys',
    description:
      'Takes effect at once and cannot be undone. Repeating the call returns the same response, unless the key revoked itself: its calls are 403. An active key may revoke any key of its partner. A call that would leave no active key is 409 `last_active_key`, also if calls are simultaneous: rotate the key first, then revoke it with its successor. A rotated key may revoke only itself, so that a leaked key cannot revoke its successor. Any other key is 403 `key_expiring`. With `successors=true` the call also revokes every key that replaced the key. If a leaked key may have been rotated by another person, revoke it with its successors, using another active key.',
    auth: 'key',
    scope: 'keys',
    params: keyParamsSchema,
    query: revokeKeyQuerySchema,
    responses: {
      200: { description: 'The key, revoked', mediaTypes: JSON_TYPE, schema: keyEntrySchema },
    },
    errors: keyErrors({ 403: ['key_expiring'], 404: [], 409: ['last_active_key'] }),
    rateClass: 'standard',
    noStore: true,
  },
  readUsage: {
    listener: 'partner',
    group: 'Keys and usage',
    method: 'GET',
    path: '/v1/partner/usage',
    summary: 'Read the limits of the plan and the usage per day',
    description:
      'Only `verify` and `identify` use units of the quota, and the usage per day has their units. All other calls are free, and the usage per day has their number. Repeating the verify or the identify of an upload is free, and is not included.',
    auth: 'key',
    scope: 'usage',
    query: usageQuerySchema,
    responses: { 200: { description: 'The usage', mediaTypes: JSON_TYPE, schema: usageSchema } },
    errors: keyErrors(),
    rateClass: 'standard',
    noStore: true,
  },
  createReview: {
    listener: 'partner',
    group: 'Reviews',
    method: 'POST',
    path: '/v1/partner/reviews',
    summary: 'Open a review case for a registered proof',
    description:
      'A case contains opaque identifiers only, never names, files or notes. The case ends after 180 days, or when its proof is erased. A partner can have 1,000 cases on one proof and 100,000 in total. Beyond these limits the call is 429 `review_limit`, and Retry-After is the time until the oldest case ends. The Idempotency-Key is optional. For 24 hours, a call with the same Idempotency-Key and the same data returns the same response, with `idempotency-replayed: true`, or 404 if the proof was erased meanwhile. A call with the same Idempotency-Key and different data is 409.',
    auth: 'key',
    scope: 'reviews',
    headers: idempotencyHeadersSchema,
    body: { kind: 'json', schema: createReviewSchema, required: true, maxBytes: JSON_BYTES },
    responses: {
      201: {
        ...reviewCase('The case'),
        headers: { 'Idempotency-Replayed': 'sometimes' },
        next: {
          readReview: { parameters: { reviewId: '$response.body#/reviewId' } },
          openEvidence: { parameters: { reviewId: '$response.body#/reviewId' } },
          resolveReview: { parameters: { reviewId: '$response.body#/reviewId' } },
        },
      },
    },
    errors: keyErrors(JSON_BODY, {
      404: [],
      409: ['review_exists', 'idempotency_key_reused'],
      429: ['review_limit'],
    }),
    rateClass: 'standard',
    noStore: true,
  },
  listReviews: {
    listener: 'partner',
    group: 'Reviews',
    method: 'GET',
    path: '/v1/partner/reviews',
    summary: 'List your own review cases, newest first',
    description:
      'Omits cases that have ended and cases whose proof was erased. A short or empty page may not be the last: continue while there is a `nextCursor`.',
    auth: 'key',
    scope: 'reviews',
    query: listReviewsQuerySchema,
    responses: {
      200: {
        description: 'One page',
        mediaTypes: JSON_TYPE,
        schema: reviewPageSchema,
        next: { listReviews: { parameters: { cursor: '$response.body#/nextCursor' } } },
      },
    },
    errors: keyErrors(),
    rateClass: 'standard',
    noStore: true,
  },
  readReview: {
    listener: 'partner',
    group: 'Reviews',
    method: 'GET',
    path: '/v1/partner/reviews/{reviewId}',
    summary: 'Read a review case',
    auth: 'key',
    scope: 'reviews',
    params: reviewParamsSchema,
    responses: { 200: reviewCase('The case') },
    errors: keyErrors({ 404: [] }),
    rateClass: 'standard',
    noStore: true,
  },
  openEvidence: {
    listener: 'partner',
    group: 'Reviews',
    method: 'POST',
    path: '/v1/partner/reviews/{reviewId}/evidence-requests',
    summary: 'Request supporting evidence',
    description: 'Each kind can be requested once per case, while the case is open or held.',
    auth: 'key',
    scope: 'reviews',
    params: reviewParamsSchema,
    body: { kind: 'json', schema: openEvidenceSchema, required: true, maxBytes: JSON_BYTES },
    responses: { 201: reviewCase('The case, with the request') },
    errors: keyErrors(JSON_BODY, { 404: [], 409: ['evidence_kind_already_open', 'review_resolved'] }),
    rateClass: 'standard',
    noStore: true,
  },
  closeEvidence: {
    listener: 'partner',
    group: 'Reviews',
    method: 'PATCH',
    path: '/v1/partner/reviews/{reviewId}/evidence-requests/{requestId}',
    summary: 'Accept or decline requested evidence',
    description: 'Accepting and declining are both final. A later change is 409 `evidence_request_final`.',
    auth: 'key',
    scope: 'reviews',
    params: evidenceParamsSchema,
    body: { kind: 'json', schema: closeEvidenceSchema, required: true, maxBytes: JSON_BYTES },
    responses: { 200: reviewCase('The full case') },
    errors: keyErrors(JSON_BODY, { 404: [], 409: ['evidence_request_final'] }),
    rateClass: 'standard',
    noStore: true,
  },
  resolveReview: {
    listener: 'partner',
    group: 'Reviews',
    method: 'POST',
    path: '/v1/partner/reviews/{reviewId}/resolve',
    summary: 'Record your own outcome of a review case',
    description:
      'While an evidence request is open, the response is 409 `evidence_requests_open`. Recording the same outcome again is 200 and changes nothing. `held` may later become `accepted` or `rejected`. `accepted` and `rejected` are final.',
    auth: 'key',
    scope: 'reviews',
    params: reviewParamsSchema,
    body: { kind: 'json', schema: resolveReviewSchema, required: true, maxBytes: JSON_BYTES },
    responses: { 200: reviewCase('The case') },
    errors: keyErrors(JSON_BODY, { 404: [], 409: ['evidence_requests_open', 'review_resolved'] }),
    rateClass: 'standard',
    noStore: true,
  },
  identify: {
    listener: 'partner',
    group: 'Verification',
    method: 'POST',
    path: '/v1/recordings/identify',
    summary: 'Find the issued proofs that match an upload, or digests of files',
    description:
      'Send `uploadId`, or 1 to 1,000 `digests`. The purpose of the upload must be `identify` or `identify_large`. An upload costs one unit for each 65 MiB begun, and a list of digests costs one unit for each 100 begun. The digest of a file that was issued, or from which a proof was issued, finds what an upload of the file finds. A match is not a verification.',
    auth: 'key',
    scope: 'verify',
    body: { kind: 'json', schema: identifySchema, required: true, maxBytes: DIGESTS_BYTES },
    responses: {
      200: {
        description: 'The matches of the upload, or of each digest',
        mediaTypes: JSON_TYPE,
        schema: identificationSchema,
      },
    },
    errors: keyErrors(JSON_BODY, HEAVY_READ, {
      404: ['upload_expired'],
      409: ['upload_incomplete', 'purpose_mismatch'],
      422: [],
      429: ['quota_exceeded'],
    }),
    rateClass: 'standard',
    billed: true,
    noStore: true,
  },
  sandboxFixtures: {
    listener: 'partner',
    group: 'Sandbox',
    method: 'GET',
    path: '/v1/sandbox/fixtures',
    summary: 'List the test files for every verdict, and what `verify` returns for each file',
    description:
      'Exists only in beta. In production, the response is 404. The call uses no units of the quota.',
    environments: ['beta'],
    auth: 'key',
    scope: 'any',
    responses: { 200: { description: 'The fixtures', mediaTypes: JSON_TYPE, schema: fixturesSchema } },
    errors: keyErrors(SANDBOX),
    rateClass: 'standard',
    noStore: true,
  },
  readSandboxFile: {
    listener: 'partner',
    group: 'Sandbox',
    method: 'GET',
    path: '/v1/sandbox/fixtures/{name}/{part}',
    summary: 'Download a file of a fixture',
    description:
      'Exists only in beta. In production, the response is 404. Ranges and conditional requests work as for the asset of a proof. The call uses no units of the quota.',
    environments: ['beta'],
    auth: 'key',
    scope: 'any',
    params: fixtureParamsSchema,
    headers: assetHeadersSchema,
    responses: FILE_RESPONSES,
    errors: keyErrors(DOWNLOAD, SANDBOX, { 412: [], 416: [] }),
    rateClass: 'standard',
    noStore: false,
  },
  download: {
    listener: 'partner',
    group: 'System',
    method: 'GET',
    path: '/v1/download',
    summary: 'Redirect to a product download',
    auth: 'key',
    scope: 'any',
    query: downloadQuerySchema,
    responses: { 302: { description: 'Redirect to the download', headers: { Location: 'always' } } },
    errors: keyErrors({ 404: [] }),
    rateClass: 'standard',
    noStore: true,
  },
  telemetry: {
    listener: 'partner',
    group: 'System',
    method: 'POST',
    path: '/v1/telemetry',
    summary: 'Report how often product events happened',
    description:
      'Event names are from a closed list, and free text is not accepted. A report therefore cannot contain user content.',
    auth: 'key',
    scope: 'any',
    body: { kind: 'json', schema: telemetrySchema, required: true, maxBytes: JSON_BYTES },
    responses: {
      202: {
        description: 'The number of accepted entries',
        mediaTypes: JSON_TYPE,
        schema: telemetryAcceptedSchema,
      },
    },
    errors: keyErrors(JSON_BODY),
    rateClass: 'standard',
    noStore: true,
  },
  health: {
    listener: 'partner',
    group: 'System',
    method: 'GET',
    path: '/v1/health',
    summary: 'Report that the service is up, and which build it runs',
    auth: 'public',
    responses: { 200: { description: 'The service is up', mediaTypes: JSON_TYPE, schema: healthSchema } },
    errors: publicErrors(),
    noStore: true,
  },
  readDocument: {
    listener: 'partner',
    group: 'System',
    method: 'GET',
    path: '/v1/openapi.json',
    summary: 'Read this document',
    auth: 'public',
    responses: {
      200: { description: 'The document, in OpenAPI 3.1', mediaTypes: JSON_TYPE, schema: documentSchema },
    },
    errors: publicErrors(),
    noStore: false,
  },
  readDocs: {
    listener: 'partner',
    group: 'System',
    method: 'GET',
    path: '/docs',
    summary: 'Read this document as an HTML page',
    auth: 'public',
    headers: pageHeadersSchema,
    responses: pageResponses('The page. It loads two scripts of this service and nothing else', 'text/html', {
      'Content-Security-Policy': 'always',
    }),
    errors: publicErrors(),
    noStore: false,
  },
  readDocsFile: {
    listener: 'partner',
    group: 'System',
    method: 'GET',
    path: '/docs/{file}',
    summary: 'Read a script of the page `/docs`',
    description:
      'The name of a script contains a digest of its content, so caches may keep the script for a year.',
    auth: 'public',
    params: docsFileParamsSchema,
    headers: pageHeadersSchema,
    responses: pageResponses('The script', 'text/javascript'),
    errors: publicErrors({ 400: ['invalid_member'], 404: [] }),
    noStore: false,
  },
  readDocsText: {
    listener: 'partner',
    group: 'System',
    method: 'GET',
    path: '/docs.md',
    summary: 'Read this document as Markdown',
    auth: 'public',
    headers: pageHeadersSchema,
    responses: pageResponses('The same text as `/docs`', 'text/markdown'),
    errors: publicErrors(),
    noStore: false,
  },
  readDocsIndex: {
    listener: 'partner',
    group: 'System',
    method: 'GET',
    path: '/llms.txt',
    summary: 'Read an index of this document for language models',
    auth: 'public',
    headers: pageHeadersSchema,
    responses: pageResponses('The index', 'text/plain'),
    errors: publicErrors(),
    noStore: false,
  },
  readRoot: {
    listener: 'partner',
    group: 'System',
    method: 'GET',
    path: '/',
    summary: 'Redirect to the page `/docs`',
    auth: 'public',
    responses: { 302: { description: 'Redirect to the page', headers: { Location: 'always' } } },
    errors: publicErrors(),
    noStore: false,
  },
} as const satisfies Record<string, Route>;
