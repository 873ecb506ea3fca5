import { MAX_UPLOAD_BYTES } from '../domain/upload.js';
import { healthSchema, probeSchema } from './health-schema.js';
import {
  assetQuerySchema,
  createdKeySchema,
  createKeySchema,
  createPartnerSchema,
  idempotencyHeadersSchema,
  issuedProofSchema,
  issueQuerySchema,
  partnerParamsSchema,
  partnerSchema,
  proofParamsSchema,
} from './operator-schemas.js';
import type { Route } from './route.js';
import { createUploadQuerySchema, createUploadSchema, storedUploadSchema, uploadParamsSchema, uploadSlotSchema } from './upload-schemas.js';
import { MAX_SIDECAR_BASE64, verificationSchema, verifySchema } from './verify-schemas.js';

/** Version of the contract that this table describes. */
export const CONTRACT_VERSION = '3.0.0';

/** "JSON bodies up to 64 KiB (verify: what a 1 MiB sidecar needs in base64)." */
const JSON_BYTES = 65_536;
/** What boundaries, part headers and signed fields may add to the file. */
const FORM_BYTES = 65_536;

/**
 * The path table: the one source of routes, validation and, derived from it, the contract's document and types.
 * Order is the order of matching, so the busiest paths stand first.
 */
export const ROUTES = {
  verify: {
    listener: 'partner',
    method: 'POST',
    path: '/v1/verify',
    summary: 'Verify one credentialed file, or an audio file and its sidecar',
    auth: 'key',
    scope: 'verify',
    body: { kind: 'json', schema: verifySchema, required: true, maxBytes: MAX_SIDECAR_BASE64 + JSON_BYTES },
    answers: { 200: { description: 'The verdict', mediaType: 'application/json', schema: verificationSchema } },
    errors: [400, 403, 404, 408, 409, 411, 413, 415, 429, 500, 503],
    lane: 'standard',
    noStore: true,
  },
  createUpload: {
    listener: 'partner',
    method: 'POST',
    path: '/v1/uploads',
    summary: 'Mint a short-lived upload slot',
    auth: 'key',
    scope: 'verify',
    query: createUploadQuerySchema,
    body: { kind: 'json', schema: createUploadSchema, required: false, maxBytes: JSON_BYTES },
    answers: { 201: { description: 'The slot', mediaType: 'application/json', schema: uploadSlotSchema } },
    errors: [400, 403, 408, 413, 415, 429, 500, 503],
    lane: 'standard',
    noStore: true,
  },
  postUpload: {
    listener: 'partner',
    method: 'POST',
    path: '/uploads/{uploadId}',
    summary: 'Post the audio with the signed fields of its slot',
    auth: 'form',
    params: uploadParamsSchema,
    body: { kind: 'form', maxBytes: MAX_UPLOAD_BYTES + FORM_BYTES },
    answers: { 201: { description: 'The audio was measured', mediaType: 'application/json', schema: storedUploadSchema } },
    errors: [400, 403, 404, 408, 409, 411, 413, 415, 429, 500, 503],
    lane: 'none',
    noStore: true,
  },
  health: {
    listener: 'partner',
    method: 'GET',
    path: '/v1/health',
    summary: 'Whether the service is up, and which build it is',
    auth: 'public',
    answers: { 200: { description: 'Up', mediaType: 'application/json', schema: healthSchema } },
    errors: [500],
    lane: 'none',
    noStore: true,
  },
  createPartner: {
    listener: 'operator',
    method: 'POST',
    path: '/operator/v1/partners',
    summary: 'Create a partner',
    auth: 'bearer',
    body: { kind: 'json', schema: createPartnerSchema, required: true, maxBytes: JSON_BYTES },
    answers: { 201: { description: 'The partner', mediaType: 'application/json', schema: partnerSchema } },
    errors: [400, 403, 408, 411, 413, 415, 500, 503],
    lane: 'none',
    noStore: true,
  },
  createKey: {
    listener: 'operator',
    method: 'POST',
    path: '/operator/v1/partners/{partnerId}/keys',
    summary: 'Create a key; its secret is in this answer and nowhere else',
    auth: 'bearer',
    params: partnerParamsSchema,
    body: { kind: 'json', schema: createKeySchema, required: true, maxBytes: JSON_BYTES },
    answers: { 201: { description: 'The key', mediaType: 'application/json', schema: createdKeySchema } },
    errors: [400, 403, 404, 408, 411, 413, 415, 500, 503],
    lane: 'none',
    noStore: true,
  },
  issueProof: {
    listener: 'operator',
    method: 'POST',
    path: '/operator/v1/proofs',
    summary: 'Issue a credential for the audio in the body',
    auth: 'bearer',
    query: issueQuerySchema,
    headers: idempotencyHeadersSchema,
    body: { kind: 'audio', maxBytes: MAX_UPLOAD_BYTES },
    answers: { 201: { description: 'The proof', mediaType: 'application/json', schema: issuedProofSchema } },
    errors: [400, 403, 404, 408, 409, 411, 413, 415, 422, 500, 503],
    lane: 'none',
    noStore: true,
  },
  readAsset: {
    listener: 'operator',
    method: 'GET',
    path: '/operator/v1/proofs/{proofId}/asset',
    summary: 'Read what was issued: the credentialed file, or the audio or sidecar of a pair',
    auth: 'bearer',
    params: proofParamsSchema,
    query: assetQuerySchema,
    answers: { 200: { description: 'The file', mediaType: 'application/octet-stream' } },
    errors: [400, 403, 404, 500, 503],
    lane: 'none',
    noStore: true,
  },
  readAuthority: {
    listener: 'operator',
    method: 'GET',
    path: '/operator/v1/authority',
    summary: "The authority's certificates, the current one first",
    auth: 'bearer',
    answers: { 200: { description: 'PEM', mediaType: 'application/x-pem-file' } },
    errors: [403, 500],
    lane: 'none',
    noStore: false,
  },
  metrics: {
    listener: 'operator',
    method: 'GET',
    path: '/metrics',
    summary: 'Counters in the Prometheus text format',
    auth: 'public',
    answers: { 200: { description: 'Metrics', mediaType: 'text/plain' } },
    errors: [500],
    lane: 'none',
    noStore: true,
  },
  livez: {
    listener: 'operator',
    method: 'GET',
    path: '/livez',
    summary: 'The process answers',
    auth: 'public',
    answers: { 200: { description: 'Alive', mediaType: 'application/json', schema: probeSchema } },
    errors: [500],
    lane: 'none',
    noStore: true,
  },
  readyz: {
    listener: 'operator',
    method: 'GET',
    path: '/readyz',
    summary: 'The store answers and the service is not stopping',
    auth: 'public',
    answers: { 200: { description: 'Ready', mediaType: 'application/json', schema: probeSchema } },
    errors: [500, 503],
    lane: 'none',
    noStore: true,
  },
} as const satisfies Record<string, Route>;

export type RouteId = keyof typeof ROUTES;
/** The rows of one listener. */
export type RouteIdOf<Listener extends Route['listener']> = {
  [Id in RouteId]: (typeof ROUTES)[Id]['listener'] extends Listener ? Id : never;
}[RouteId];
