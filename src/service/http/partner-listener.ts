import { defined } from '../../core/domain/defined.js';
import { DomainError } from '../../core/domain/errors.js';
import { type OpenApiDocument, openApiDocument } from '../contract/openapi.js';
import { FORM_BYTES } from '../contract/routes/partner-routes.js';
import { CONTRACT_VERSION, ROUTES } from '../contract/routes/routes.js';
import { MAX_SIDECAR_BYTES, type UploadPurpose } from '../domain/upload.js';
import type { Caller } from '../operations/caller.js';
import type { PartnerOperations } from '../operations/operations.js';
import type { Observer } from '../ports/observer.js';
import { FormPermits } from './body/form-permits.js';
import { declaredLength } from './body/media-type.js';
import { receiveForm, type UploadPermits } from './body/upload-form.js';
import { DEFAULT_LIMITS, type Exchange } from './exchange.js';
import { assetResponse } from './response/asset-response.js';
import type { BuiltPage } from './response/built-page.js';
import { type Docs, readDocs } from './response/docs/docs.js';
import { jsonWithParts } from './response/encoded-parts.js';
import { constantJson, type JsonResponse, json } from './response/response.js';
import { ConcurrencyLimit } from './server/concurrency-limit.js';
import { type Endpoints, joinEndpoints } from './server/endpoint.js';
import { createListener, type Listener, type ListenerParts } from './server/listener.js';
import { PartnerLimit } from './server/partner-limit.js';
import { mainThreadLoad, RunningCalls } from './server/running-calls.js';
import type { TestAnswers } from './server/test-answers.js';

/** The `Retry-After` of a refused download, in seconds. */
const DOWNLOAD_RETRY_SECONDS = 2;

/** The facts about the build, for the response of `GET /v1/health`. */
export interface BuildFacts {
  readonly version: string;
  readonly commit: string;
  /** The time of the deployment in unix seconds. */
  readonly deployedAt: number;
  readonly environment: string;
}

export interface PartnerListenerParts extends ListenerParts {
  readonly operations: PartnerOperations;
  readonly build: BuildFacts;
  /** Returns true while the main thread is busy. By default its load is measured. */
  readonly isBusy?: () => boolean;
  /** What test keys change. Absent in an environment without test keys. */
  readonly testAnswers?: TestAnswers;
}

/** Creates the listener for the partner API and the presigned upload address. */
export function createPartnerListener(parts: PartnerListenerParts): Listener {
  const { operations, observer, build } = parts;
  const limits = { ...DEFAULT_LIMITS, ...parts.limits };
  const permits: UploadPermits = {
    unproven: new FormPermits({
      max: limits.forms,
      maxOfAddress: limits.formsOfAddress,
      state: 'have not sent their signed fields',
      displacedByAny: 'form_oldest',
      displacedByAddress: 'form_of_address',
      observer,
    }),
    // The engine limits their total number.
    stalled: new FormPermits({
      max: Infinity,
      maxOfAddress: limits.stalledOfAddress,
      state: 'have stalled',
      displacedByAny: 'upload_stalled',
      displacedByAddress: 'upload_of_address',
      observer,
    }),
  };
  const opening = new ConcurrencyLimit(limits.forms);
  const calls = new RunningCalls(limits.calls, observer, parts.isBusy ?? mainThreadLoad());
  const downloads = new PartnerLimit(limits.downloadsOfPartner, () => {
    observer.refused('downloads_of_partner');
    return new DomainError(
      'rate_limited',
      `A partner may download ${limits.downloadsOfPartner} files at a time.`,
      {
        reason: 'concurrency_exceeded',
        limit: 'concurrent_downloads',
        retryAfterSeconds: DOWNLOAD_RETRY_SECONDS,
      },
    );
  });
  /** Counts a download of the partner until its response has ended. */
  const download = ({ lease }: Exchange, { partnerId }: Caller): void =>
    lease.atEnd(downloads.take(partnerId));
  const health = constantJson(200, { ok: true, ...build, contract: CONTRACT_VERSION });
  /** The documents, which are built on the first request, so that the start does not wait for them. */
  let document: JsonResponse<200, OpenApiDocument> | undefined;
  let docs: Docs | undefined;
  let contract: OpenApiDocument | undefined;
  const openContract = () => (contract ??= openApiDocument(ROUTES, 'partner', build.environment));
  const openDocs = () => (docs ??= readDocs(openContract()));
  const page = (found: BuiltPage, { request }: Exchange) =>
    found.respond({
      'if-none-match': request.headers['if-none-match'],
      'accept-encoding': request.headers['accept-encoding'] as string | undefined,
    });
  const endpoints = {
    verify: async ({ caller, signal, body: { uploadId, sidecar } }) => {
      const request = defined({
        uploadId,
        sidecar: sidecar === undefined ? undefined : decodeSidecar(sidecar),
      });
      return jsonWithParts(200, await operations.until(signal).verifyUpload(caller, request));
    },

    verifyFile: async ({ exchange, caller, signal, headers, digest, inTime }) => {
      const idempotencyKey = headers['idempotency-key'];
      const admitted = await inTime(
        operations.until(signal).verifyFile(caller, { idempotencyKey }),
        // The place of a call that was given up meanwhile.
        ({ release }) => release(),
      );
      try {
        const rules = { stalled: permits.stalled, sidecarBytes: MAX_SIDECAR_BYTES, digest };
        const { result, replayed } = await observed(
          observer,
          exchange,
          receiveForm(exchange, rules, async (_fields, sidecar) => {
            const receiver = admitted.open(sidecar);
            return { ...receiver, finish: () => inTime(receiver.finish()) };
          }),
          ({ result: { audio } }) => audio.bytes,
        );
        // Rule 8.22.
        return jsonWithParts(200, result, replayed ? { 'idempotency-replayed': 'true' } : {});
      } finally {
        admitted.release();
      }
    },

    createUpload: async ({ caller, signal, query, body: { contentLength, purpose } }) => {
      const request = defined({ purpose: agreedPurpose(query.purpose, purpose), contentLength });
      return json(201, await operations.until(signal).createUpload(caller, request));
    },

    postUpload: async ({ exchange, signal, params: { uploadId } }) =>
      json(
        201,
        await observed(
          observer,
          exchange,
          receiveForm(exchange, permits, (fields) =>
            opening.admit(() =>
              operations
                .until(signal)
                .receiveUpload(uploadId, fields, declaredLength(exchange.request) - FORM_BYTES),
            ),
          ),
          ({ bytes }) => bytes,
        ),
      ),

    listProofs: async ({ caller, signal, query }) =>
      jsonWithParts(200, await operations.until(signal).listProofs(caller, query)),

    readProof: async ({ caller, signal, params }) =>
      jsonWithParts(200, await operations.until(signal).readProof(caller, params)),

    readRecord: async ({ caller, signal, params }) =>
      jsonWithParts(200, await operations.until(signal).readRecord(caller, params)),

    readProofAsset: async ({ exchange, caller, signal, params: { proofId }, query: { part }, headers }) => {
      const asset = await operations.until(signal).readAsset(caller, proofId, part);
      return assetResponse(asset, exchange.request.method!, headers, () => download(exchange, caller));
    },

    readSandboxFile: async ({ exchange, caller, signal, params, headers }) => {
      const asset = await operations.until(signal).sandboxFile(caller, params);
      return assetResponse(asset, exchange.request.method!, headers, () => download(exchange, caller));
    },

    rotateKey: async ({ exchange, caller, signal, headers }) => {
      const apiKey = exchange.request.headers['x-api-key'] as string;
      const { replayed, ...key } = await operations
        .until(signal)
        .rotateKey(caller, apiKey, headers['idempotency-key']);
      // Rule 4.9.
      return json(201, key, replayed ? { 'idempotency-replayed': 'true' } : {});
    },

    createReview: async ({ caller, signal, body, headers }) => {
      const request = defined({ ...body, idempotencyKey: headers['idempotency-key'] });
      const { replayed, ...review } = await operations.until(signal).createReview(caller, request);
      // Rule 12.18.
      return json(201, review, replayed ? { 'idempotency-replayed': 'true' } : {});
    },

    download: ({ query }) => ({
      kind: 'empty',
      status: 302,
      headers: { Location: operations.download(query), 'Content-Length': '0' },
    }),
    telemetry: ({ caller, body: { events } }) => json(202, operations.telemetry(caller, events)),
    health: () => health,
    readDocument: () => (document ??= constantJson(200, openContract())),
    readDocs: ({ exchange }) => page(openDocs().page(), exchange),
    readDocsText: ({ exchange }) => page(openDocs().text(), exchange),
    readDocsIndex: ({ exchange }) => page(openDocs().index(), exchange),
    readDocsFile: ({ exchange, params: { file } }) => {
      const script = openDocs().script(file);
      if (script === undefined) throw new DomainError('not_found', 'The page has no such script.');
      return page(script, exchange);
    },
    readRoot: () => ({ kind: 'empty', status: 302, headers: { Location: '/docs', 'Content-Length': '0' } }),
  } satisfies Partial<Endpoints<'partner'>>;
  return createListener(
    'partner',
    joinEndpoints(
      'partner',
      endpoints,
      operations,
      { keys: { partners: operations, calls, testAnswers: parts.testAnswers } },
      build.environment,
    ),
    limits,
    parts,
  );
}

/** Decodes a sidecar (rule 8.3). */
function decodeSidecar(sidecar: string): Uint8Array {
  const bytes = Buffer.from(sidecar, 'base64');
  if (bytes.toString('base64') !== sidecar)
    throw new DomainError('invalid_request', 'The sidecar must be base64 with padding.', {
      reason: 'sidecar_not_base64',
    });
  return bytes;
}

/** Returns the purpose of an upload slot (rule 7.1). */
function agreedPurpose(query: UploadPurpose | undefined, body: UploadPurpose | undefined): UploadPurpose {
  if (query !== undefined && body !== undefined && query !== body) {
    throw new DomainError('invalid_request', 'The query and the body give different purposes.', {
      reason: 'purpose_mismatch',
    });
  }
  return body ?? query ?? 'verify';
}

/** Counts the outcome of an upload. Only the listener sees callers that leave. */
async function observed<Result>(
  observer: Observer,
  exchange: Exchange,
  upload: Promise<Result>,
  bytesOf: (result: Result) => number,
): Promise<Result> {
  try {
    const result = await upload;
    observer.upload('stored', bytesOf(result));
    return result;
  } catch (error) {
    observer.upload(outcomeOf(error), exchange.log.bytesIn);
    throw error;
  }
}

function outcomeOf(error: unknown): 'refused' | 'aborted' | 'failed' {
  if (!(error instanceof DomainError) || error.code === 'internal' || error.code === 'unavailable')
    return 'failed';
  return error.reason === 'upload_aborted' || error.reason === 'client_too_slow' ? 'aborted' : 'refused';
}
