import { openApiDocument } from '../contract/openapi.js';
import { CONTRACT_VERSION } from '../contract/routes/routes.js';
import { DomainError } from '../domain/errors.js';
import type { UploadPurpose } from '../domain/upload.js';
import type { PartnerOperations } from '../operations/operations.js';
import type { StoredUpload } from '../operations/uploads/receive-upload.js';
import type { Observer } from '../ports/observer.js';
import { FormPermits } from './body/form-permits.js';
import { receiveForm, type UploadPermits } from './body/upload-form.js';
import { DEFAULT_LIMITS, type Exchange } from './exchange.js';
import { assetResponse } from './response/asset-response.js';
import { docsResponse } from './response/docs-page.js';
import { constantJson, json } from './response/response.js';
import { ConcurrencyLimit } from './server/concurrency-limit.js';
import { type Endpoints, joinEndpoints } from './server/endpoint.js';
import { createListener, type Listener, type ListenerParts } from './server/listener.js';

/** What `GET /health` says of the build. */
export interface BuildFacts {
  readonly version: string;
  readonly commit: string;
  /** Unix seconds. */
  readonly deployedAt: number;
  readonly environment: string;
}

export interface PartnerListenerParts extends ListenerParts {
  readonly operations: PartnerOperations;
  readonly build: BuildFacts;
}

/** The partner API and the presigned upload address. */
export function createPartnerListener(parts: PartnerListenerParts): Listener {
  const { operations, observer, build } = parts;
  const limits = { ...DEFAULT_LIMITS, ...parts.limits };
  const permits: UploadPermits = {
    unproven: new FormPermits({
      max: limits.forms,
      maxOfAddress: limits.formsOfAddress,
      state: 'are without their signed fields',
      displacedByAny: 'form_oldest',
      displacedByAddress: 'form_of_address',
      observer,
    }),
    // The engine bounds them all.
    stalled: new FormPermits({
      max: Infinity,
      maxOfAddress: limits.stalledOfAddress,
      state: 'stand still',
      displacedByAny: 'upload_stalled',
      displacedByAddress: 'upload_of_address',
      observer,
    }),
  };
  const opening = new ConcurrencyLimit(limits.forms);
  const health = constantJson(200, { ok: true, ...build, contract: CONTRACT_VERSION });
  const document = openApiDocument();
  const openApi = constantJson(200, document);
  const docs = docsResponse(document);
  const endpoints: Endpoints<'partner'> = {
    verify: async ({ caller, body: { uploadId, sidecar } }) =>
      json(
        200,
        await operations.verifyUpload(
          caller,
          sidecar === undefined ? { uploadId } : { uploadId, sidecar: decodeSidecar(sidecar) },
        ),
      ),

    createUpload: async ({ caller, query, body }) => {
      const { contentLength } = body;
      const purpose = agreedPurpose(query.purpose, body.purpose);
      return json(
        201,
        await operations.createUpload(
          caller,
          contentLength === undefined ? { purpose } : { purpose, contentLength },
        ),
      );
    },

    postUpload: async ({ exchange, params: { uploadId } }) =>
      json(
        201,
        await observed(
          observer,
          exchange,
          receiveForm(exchange, permits, (fields) =>
            opening.admit(() => operations.receiveUpload(uploadId, fields)),
          ),
        ),
      ),

    identify: async ({ caller, body }) => json(200, await operations.identify(caller, body)),

    readRecord: async ({ params: { proofId } }) => json(200, await operations.readRecord(proofId)),
    listProofs: async ({ caller, query }) => json(200, await operations.listProofs(caller, query)),
    readProof: async ({ caller, params: { proofId } }) =>
      json(200, await operations.readProof(caller, proofId)),
    eraseProof: async ({ caller, params: { proofId } }) =>
      json(200, await operations.eraseProof(caller, proofId)),
    readProofAsset: async ({ exchange, caller, params: { proofId }, query: { part }, headers }) =>
      assetResponse(await operations.readAsset(caller, proofId, part), exchange.request.method!, headers),

    listKeys: async ({ caller, query }) => json(200, await operations.listKeys(caller, query)),
    rotateKey: async ({ exchange, caller, headers }) => {
      const apiKey = exchange.request.headers['x-api-key'] as string;
      const { replayed, ...key } = await operations.rotateKey(caller, apiKey, headers['idempotency-key']);
      // "Replays the original response [...] and sets response header `idempotency-replayed` to `true`."
      return json(201, key, replayed ? { 'idempotency-replayed': 'true' } : {});
    },
    revokeOwnKey: async ({ caller, params: { keyId } }) =>
      json(200, await operations.revokeOwnKey(caller, keyId)),
    readUsage: async ({ caller, query }) => json(200, await operations.readUsage(caller, query)),

    createReview: async ({ caller, body }) => json(201, await operations.createReview(caller, body)),
    readReview: async ({ caller, params: { reviewId } }) =>
      json(200, await operations.readReview(caller, reviewId)),
    openEvidence: async ({ caller, params: { reviewId }, body }) =>
      json(201, await operations.openEvidence(caller, reviewId, body)),
    closeEvidence: async ({ caller, params: { reviewId, requestId }, body }) =>
      json(200, await operations.closeEvidence(caller, reviewId, requestId, body)),
    resolveReview: async ({ caller, params: { reviewId }, body }) =>
      json(200, await operations.resolveReview(caller, reviewId, body)),

    download: ({ query }) => ({
      kind: 'empty',
      status: 302,
      headers: { Location: operations.download(query), 'Content-Length': '0' },
    }),
    telemetry: ({ body: { events } }) => json(202, operations.telemetry(events)),
    health: () => health,
    readDocument: () => openApi,
    readDocs: () => docs,
  };
  return createListener(
    'partner',
    joinEndpoints('partner', endpoints, { partners: operations }),
    limits,
    parts,
  );
}

/**
 * "`sidecar` is padded RFC 4648 section 4, checked by encoding again; `""` is a sidecar that holds nothing."
 */
function decodeSidecar(sidecar: string): Uint8Array {
  const bytes = Buffer.from(sidecar, 'base64');
  if (bytes.toString('base64') !== sidecar)
    throw new DomainError('invalid_request', 'The sidecar is not padded base64.', {
      reason: 'sidecar_not_base64',
    });
  return bytes;
}

/** "No `purpose` means `verify`; body and query that disagree are 400." */
function agreedPurpose(query: UploadPurpose | undefined, body: UploadPurpose | undefined): UploadPurpose {
  if (query !== undefined && body !== undefined && query !== body) {
    throw new DomainError('invalid_request', 'The purpose in the query is not the one in the body.', {
      reason: 'purpose_mismatch',
    });
  }
  return body ?? query ?? 'verify';
}

/** Counts how an upload ended; only this side sees the callers that leave. */
async function observed(
  observer: Observer,
  exchange: Exchange,
  upload: Promise<StoredUpload>,
): Promise<StoredUpload> {
  try {
    const stored = await upload;
    observer.upload('stored', stored.bytes);
    return stored;
  } catch (error) {
    observer.upload(outcomeOf(error), exchange.bytesIn);
    throw error;
  }
}

function outcomeOf(error: unknown): 'refused' | 'aborted' | 'failed' {
  if (!(error instanceof DomainError) || error.code === 'internal' || error.code === 'unavailable')
    return 'failed';
  return error.reason === 'upload_aborted' || error.reason === 'client_too_slow' ? 'aborted' : 'refused';
}
