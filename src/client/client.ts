import { type Asset, assetOf } from './asset.js';
import {
  type CallOptions,
  type ClientOptions,
  Connection,
  parseResponse,
  pathPart,
  type Query,
  unexpected,
  withFacts,
} from './connection.js';
import { singleHeader, TakemarkError } from './errors.js';
import { uploadForm } from './form.js';
import { entriesOf } from './pages.js';
import { isTransient, pauseBefore, pauseFor } from './retry.js';
import { type RotateOptions, type Rotation, rotate } from './rotation.js';
import { type AudioInput, type AudioSource, audioSource, release, sidecarBytes } from './source.js';
import type { Progress } from './transport.js';
import type {
  DecisionEnvelope,
  ErasedProof,
  EvidenceKind,
  FixturePart,
  Fixtures,
  Health,
  Identification,
  KeyEntry,
  KeyPage,
  PartnerReviewCase,
  ProofDetail,
  ProofEntry,
  ProofPage,
  ProofRecord,
  Responded,
  ReviewBindings,
  ReviewOutcome,
  ReviewPage,
  StoredUpload,
  TelemetryEvent,
  UploadPurpose,
  UploadSlot,
  UsageReport,
  Verification,
  VerificationResult,
} from './types.js';

export interface UploadOptions extends CallOptions {
  /** Length of a stream in bytes. Without it a stream is sent in chunks of unknown total. */
  readonly bytes?: number;
  readonly onProgress?: ((progress: Progress) => void) | undefined;
}

export interface VerifyFileOptions extends UploadOptions {
  /** The `.sidecar` of a legacy pair: a path or its bytes. Omit for a credentialed WAV/BWF. */
  readonly sidecar?: string | Uint8Array | undefined;
}

export interface PageOptions extends CallOptions {
  /** Entries a page, 1 to 100. */
  readonly limit?: number | undefined;
  /** The `nextCursor` of the page before. */
  readonly cursor?: string | undefined;
}

/** Cases of one proof, or of one status, alone. */
export interface ReviewFilter {
  readonly proofId?: string | undefined;
  readonly status?: 'open' | 'resolved' | undefined;
}

/** Unix seconds. */
export interface ProofFilter {
  readonly issuedAfter?: number | undefined;
  readonly issuedBefore?: number | undefined;
  /** Adds the whole report to each entry; pages are shorter then. */
  readonly include?: 'evidenceReport' | undefined;
}

export interface AssetOptions extends CallOptions {
  /** `sidecar` is the other half of a pair. */
  readonly part?: 'audio' | 'sidecar' | undefined;
  /** First and last byte; without an end, the rest of the file. */
  readonly range?: { readonly start: number; readonly end?: number } | undefined;
  /** An `etag` seen before: if the file is another one by now, all of it is sent instead of the range. */
  readonly ifRange?: string | undefined;
  /** Compares a whole file with the digest that the service announces. Default true. */
  readonly checkDigest?: boolean | undefined;
}

/** Page size of the iterators: the largest there is, so that a long list costs the fewest calls. */
const PAGE_ENTRIES = 100;

/** @throws TypeError for an address or a key that cannot be one. */
export function createClient(options: ClientOptions): Client {
  return new Client(options);
}

/**
 * The partner API. Safe to share: calls run side by side over kept connections. Failures are TakemarkError,
 * but an abort, which rejects with the signal's reason, and an identifier that cannot be one, which is a
 * TypeError.
 *
 * Repeated, within the policy: GETs, POST /uploads, POST /verify, DELETE and a rotation under its
 * Idempotency-Key, which the contract calls safe. Every other call is sent again after a 429 alone, which
 * says that nothing was done. The presigned post is never repeated as such: `verifyFile` takes a fresh slot
 * instead, where the audio can be read again.
 */
export class Client {
  // Private members do not show when a client is logged; the key and the slots must not.
  readonly #connection: Connection;

  constructor(options: ClientOptions) {
    this.#connection = new Connection(options);
  }

  /**
   * Uploads a file and verifies it: one credentialed WAV/BWF, or audio with its sidecar. Constant memory,
   * whatever the length.
   * @param input a path, bytes, or a stream; a stream cannot be sent a second time when an upload fails, and
   * is closed at the end whatever the outcome
   */
  async verifyFile(input: AudioInput, options: VerifyFileOptions = {}): Promise<Verification> {
    try {
      const source = await audioSource(input, options.bytes);
      // Read before the upload: a sidecar that is not there should not cost one.
      const sidecar = options.sidecar === undefined ? undefined : await sidecarBytes(options.sidecar);
      const { uploadId } = await this.#uploadToFreshSlot(source, 'verify', options);
      return await this.verify({ uploadId, sidecar }, options);
    } finally {
      if (typeof input !== 'string' && !(input instanceof Uint8Array)) release(input);
    }
  }

  /** Uploads a file and asks which issued recordings it is. Input as for `verifyFile`. */
  async identifyFile(input: AudioInput, options: UploadOptions = {}): Promise<Responded<Identification>> {
    try {
      const { uploadId } = await this.#uploadToFreshSlot(
        await audioSource(input, options.bytes),
        'identify',
        options,
      );
      return await this.identify({ uploadId }, options);
    } finally {
      if (typeof input !== 'string' && !(input instanceof Uint8Array)) release(input);
    }
  }

  /** Mints a slot. */
  createUpload({
    purpose = 'verify',
    contentLength,
    signal,
  }: CallOptions & {
    readonly purpose?: UploadPurpose;
    readonly contentLength?: number | undefined;
  } = {}): Promise<Responded<UploadSlot>> {
    return this.#connection.json<UploadSlot>(
      {
        method: 'POST',
        path: 'uploads',
        json: { purpose, ...(contentLength === undefined ? {} : { contentLength }) },
        repeatable: true,
        signal,
      },
      'an upload slot',
      ({ uploadId, url, fields }) =>
        typeof uploadId === 'string' &&
        typeof url === 'string' &&
        typeof fields === 'object' &&
        fields !== null,
    );
  }

  /** Posts audio to a slot, once. After a failure the slot may be spent or not: take a fresh one. */
  async upload(
    slot: UploadSlot,
    input: AudioInput,
    options: UploadOptions = {},
  ): Promise<Responded<StoredUpload>> {
    return this.#post(slot, await audioSource(input, options.bytes), options);
  }

  /** Judges an upload. Has no side effects and is billed once, however often it is repeated. */
  async verify(
    { uploadId, sidecar }: { readonly uploadId: string; readonly sidecar?: Uint8Array | undefined },
    { signal }: CallOptions = {},
  ): Promise<Verification> {
    const result = await this.#connection.json<VerificationResult>(
      {
        method: 'POST',
        path: 'verify',
        json: { uploadId, ...(sidecar === undefined ? {} : { sidecar: base64(sidecar) }) },
        repeatable: true,
        signal,
      },
      'a verification result',
      isVerification,
    );
    // Rule 8.7. Assigned last, so that no member of the response can stand in for it.
    return Object.assign(result, { accepted: result.good && result.verdict === 'valid' });
  }

  /**
   * Asks which issued recordings an upload with purpose `identify` is. Counts towards the quota each time, so
   * it is not repeated by itself.
   */
  identify(
    { uploadId }: { readonly uploadId: string },
    { signal }: CallOptions = {},
  ): Promise<Responded<Identification>> {
    return this.#connection.json<Identification>(
      { method: 'POST', path: 'recordings/identify', json: { uploadId }, signal },
      'a list of matches',
      ({ matches }) => Array.isArray(matches),
    );
  }

  /** Every proof of the partner's own, newest first. */
  listProofs({
    limit = PAGE_ENTRIES,
    ...query
  }: ProofFilter & Omit<PageOptions, 'cursor'> = {}): AsyncGenerator<ProofEntry, void, undefined> {
    return entriesOf(async (cursor) => {
      const { proofs: entries, nextCursor } = await this.listProofsPage({ ...query, limit, cursor });
      return { entries, nextCursor };
    });
  }

  listProofsPage({
    limit,
    cursor,
    issuedAfter,
    issuedBefore,
    include,
    signal,
  }: ProofFilter & PageOptions = {}): Promise<Responded<ProofPage>> {
    return this.#connection.json<ProofPage>(
      { method: 'GET', path: 'proofs', query: { limit, cursor, issuedAfter, issuedBefore, include }, signal },
      'a page of proofs',
      ({ proofs }) => Array.isArray(proofs),
    );
  }

  async readProof(proofId: string, { signal }: CallOptions = {}): Promise<Responded<ProofDetail>> {
    return this.#connection.json<ProofDetail>(
      { method: 'GET', path: `proofs/${pathPart(proofId)}`, signal },
      'a proof',
      (proof) => proof.proofId === proofId,
    );
  }

  /** The registered record of a proof, without presenting audio: it does not say that any file matches. */
  async readRecord(proofId: string, { signal }: CallOptions = {}): Promise<Responded<ProofRecord>> {
    return this.#connection.json<ProofRecord>(
      { method: 'GET', path: `records/${pathPart(proofId)}`, signal },
      'a proof record',
      (record) => record.proofId === proofId,
    );
  }

  /** An owned asset, or a part of it, as it comes. Read `body` to its end or `close` it. */
  async readAsset(proofId: string, { part, ...options }: AssetOptions = {}): Promise<Asset> {
    return this.#openFile(`proofs/${pathPart(proofId)}/asset`, options, { part });
  }

  /** Files of every verdict with the answer that verify gives for each; in beta alone. */
  sandboxFixtures({ signal }: CallOptions = {}): Promise<Responded<Fixtures>> {
    return this.#connection.json<Fixtures>(
      { method: 'GET', path: 'sandbox/fixtures', signal },
      'a list of fixtures',
      ({ fixtures }) => Array.isArray(fixtures),
    );
  }

  /**
   * A file of a fixture, as it comes. Read `body` to its end or `close` it.
   * @param options.part as the list names it; the audio by default
   */
  async readSandboxFile(
    name: string,
    {
      part = 'audio',
      ...options
    }: Omit<AssetOptions, 'part'> & { readonly part?: FixturePart | undefined } = {},
  ): Promise<Asset> {
    return this.#openFile(`sandbox/fixtures/${pathPart(name)}/${pathPart(part)}`, options);
  }

  async #openFile(
    path: string,
    { range, ifRange, checkDigest = true, signal }: Omit<AssetOptions, 'part'>,
    query?: Query,
  ): Promise<Asset> {
    const headers = {
      // Bytes as they are: a digest and a range are of the file and not of a compressed form.
      accept: '*/*',
      'accept-encoding': 'identity',
      ...(range === undefined ? {} : { range: `bytes=${range.start}-${range.end ?? ''}` }),
      ...(ifRange === undefined ? {} : { 'if-range': ifRange }),
    };
    return assetOf(
      await this.#connection.open({
        method: 'GET',
        path,
        query,
        headers,
        signal,
      }),
      checkDigest,
      range,
    );
  }

  /**
   * Erases a proof for good. Idempotent: a repeat, the client's own after a lost response included, reports
   * `already_erased`.
   */
  async eraseProof(proofId: string, { signal }: CallOptions = {}): Promise<Responded<ErasedProof>> {
    return this.#connection.json<ErasedProof>(
      { method: 'DELETE', path: `proofs/${pathPart(proofId)}`, repeatable: true, signal },
      'the outcome of an erasure',
      ({ outcome }) => typeof outcome === 'string',
    );
  }

  /** Metadata of every key of the partner; never a secret. */
  listKeys({
    limit = PAGE_ENTRIES,
    signal,
  }: Omit<PageOptions, 'cursor'> = {}): AsyncGenerator<KeyEntry, void, undefined> {
    return entriesOf(async (cursor) => {
      const { keys: entries, nextCursor } = await this.listKeysPage({ limit, cursor, signal });
      return { entries, nextCursor };
    });
  }

  /** A page of the keys; all of them with neither `limit` nor `cursor`. */
  listKeysPage({ limit, cursor, signal }: PageOptions = {}): Promise<Responded<KeyPage>> {
    return this.#connection.json<KeyPage>(
      { method: 'GET', path: 'partner/keys', query: { limit, cursor }, signal },
      'a page of keys',
      ({ keys }) => Array.isArray(keys),
    );
  }

  /**
   * Rotates the key of this client. Its Idempotency-Key is saved in `store` before the call and the new
   * secret before the result: whenever the process dies, calling this again with the same key and store ends
   * in the same one new key. The client goes on using its own key, which works until `previousKeyExpiresAt`;
   * make a new client for the new one.
   * @throws TakemarkError `rotation_unfinished` where the store holds a secret or a rotation of another key
   */
  rotateKey(options: RotateOptions): Promise<Rotation> {
    return rotate(this.#connection, options);
  }

  /**
   * Revokes a key of the partner's own, at once and for good; repeating it changes nothing. A rotated key may
   * revoke itself alone.
   * @throws TakemarkError 403 `key_expiring`; 409 `last_active_key` where this client's key is the last
   * active one
   */
  async revokeKey(keyId: string, { signal }: CallOptions = {}): Promise<Responded<KeyEntry>> {
    return this.#connection.json<KeyEntry>(
      { method: 'DELETE', path: `partner/keys/${pathPart(keyId)}`, repeatable: true, signal },
      'a key',
      (key) => key.keyId === keyId && typeof key.status === 'string',
    );
  }

  /** Limits and consumption. @param days 1 to 92; the service's default is 30 */
  readUsage({
    days,
    signal,
  }: CallOptions & { readonly days?: number | undefined } = {}): Promise<Responded<UsageReport>> {
    return this.#connection.json<UsageReport>(
      { method: 'GET', path: 'partner/usage', query: { days }, signal },
      'a usage report',
      (report) => Array.isArray(report.days),
    );
  }

  /**
   * Opens a review case.
   * @param options `idempotencyKey`: 16 to 128 visible ASCII characters; with it the call is safe to repeat for 24
   * hours, and is repeated after a lost answer
   */
  createReview(
    request: { readonly proofId: string; readonly bindings: ReviewBindings },
    { idempotencyKey, signal }: CallOptions & { readonly idempotencyKey?: string | undefined } = {},
  ): Promise<Responded<PartnerReviewCase>> {
    const { proofId, bindings } = request;
    return this.#review({
      method: 'POST',
      path: 'partner/reviews',
      json: { proofId, bindings },
      signal,
      ...(idempotencyKey === undefined
        ? {}
        : { headers: { 'idempotency-key': idempotencyKey }, repeatable: true }),
    });
  }

  /** Every review case of the partner's own, newest first. */
  listReviews({
    limit = PAGE_ENTRIES,
    ...query
  }: ReviewFilter & Omit<PageOptions, 'cursor'> = {}): AsyncGenerator<PartnerReviewCase, void, undefined> {
    return entriesOf(async (cursor) => {
      const { reviews: entries, nextCursor } = await this.listReviewsPage({ ...query, limit, cursor });
      return { entries, nextCursor };
    });
  }

  /** A page of the review cases. It may be empty and have a `nextCursor`. */
  listReviewsPage({
    limit,
    cursor,
    proofId,
    status,
    signal,
  }: ReviewFilter & PageOptions = {}): Promise<Responded<ReviewPage>> {
    return this.#connection.json<ReviewPage>(
      { method: 'GET', path: 'partner/reviews', query: { limit, cursor, proofId, status }, signal },
      'a page of reviews',
      ({ reviews }) => Array.isArray(reviews),
    );
  }

  async readReview(reviewId: string, { signal }: CallOptions = {}): Promise<Responded<PartnerReviewCase>> {
    return this.#review({ method: 'GET', path: `partner/reviews/${pathPart(reviewId)}`, signal });
  }

  /** Opens an evidence request; a review takes each kind once (rule 12.8). */
  async openEvidence(
    reviewId: string,
    { kind }: { readonly kind: EvidenceKind },
    { signal }: CallOptions = {},
  ): Promise<Responded<PartnerReviewCase>> {
    return this.#review({
      method: 'POST',
      path: `partner/reviews/${pathPart(reviewId)}/evidence-requests`,
      json: { kind },
      signal,
    });
  }

  /**
   * Accepts or declines a request, for good. @param request `responseReference` is an opaque reference into
   * the partner's own system
   */
  async closeEvidence(
    reviewId: string,
    requestId: string,
    request: { readonly status: 'accepted' | 'declined'; readonly responseReference?: string },
    { signal }: CallOptions = {},
  ): Promise<Responded<PartnerReviewCase>> {
    const { status, responseReference } = request;
    const json = { status, ...(responseReference === undefined ? {} : { responseReference }) };
    return this.#review({
      method: 'PATCH',
      path: `partner/reviews/${pathPart(reviewId)}/evidence-requests/${pathPart(requestId)}`,
      json,
      signal,
    });
  }

  /** Records the partner's own outcome, once no evidence request is open. */
  async resolveReview(
    reviewId: string,
    { outcome }: { readonly outcome: ReviewOutcome },
    { signal }: CallOptions = {},
  ): Promise<Responded<PartnerReviewCase>> {
    return this.#review({
      method: 'POST',
      path: `partner/reviews/${pathPart(reviewId)}/resolve`,
      json: { outcome },
      signal,
    });
  }

  /** The address a product is downloaded from. It is not followed, and the key is not for it. */
  async download(
    { product, platform }: { readonly product: string; readonly platform: string },
    { signal }: CallOptions = {},
  ): Promise<Responded<{ readonly location: string }>> {
    const { status, headers } = await this.#connection.raw({
      method: 'GET',
      path: 'download',
      query: { product, platform },
      signal,
    });
    const requestId = singleHeader(headers['x-request-id']);
    const { location } = headers;
    const url = location !== undefined && URL.canParse(location) ? new URL(location) : undefined;
    const allowed = this.#connection.base.protocol === 'https:' ? ['https:'] : ['https:', 'http:'];
    if (location === undefined || url === undefined || !allowed.includes(url.protocol))
      throw unexpected({ status, requestId }, 'an address to download from');
    return withFacts({ requestId, headers }, { location });
  }

  /** Reports counters; names are those of the service's closed list. */
  sendTelemetry(
    events: readonly TelemetryEvent[],
    { signal }: CallOptions = {},
  ): Promise<Responded<{ readonly accepted: number }>> {
    return this.#connection.json<{ readonly accepted: number }>(
      { method: 'POST', path: 'telemetry', json: { events }, signal },
      'a count of events',
      ({ accepted }) => typeof accepted === 'number',
    );
  }

  /** Public: needs no key, and sends none. */
  health({ signal }: CallOptions = {}): Promise<Responded<Health>> {
    return this.#connection.json<Health>(
      { method: 'GET', path: 'health', public: true, signal },
      'a health report',
      ({ ok }) => typeof ok === 'boolean',
    );
  }

  /** Ends idle connections, and with them the process's reason to stay alive; calls in flight fail. */
  close(): void {
    this.#connection.transport.close();
  }

  #review(call: Parameters<Connection['json']>[0]): Promise<Responded<PartnerReviewCase>> {
    return this.#connection.json<PartnerReviewCase>(
      call,
      'a review case',
      ({ reviewId, evidenceRequests }) => typeof reviewId === 'string' && Array.isArray(evidenceRequests),
    );
  }

  async #uploadToFreshSlot(
    source: AudioSource,
    purpose: UploadPurpose,
    options: UploadOptions,
  ): Promise<StoredUpload> {
    for (let attempt = 1; ; attempt += 1) {
      // Its own failures are retried inside. The length is not announced: a file that is too long is then
      // refused here, by the slot's own limit and in words on the file, instead of as an invalid member.
      const slot = await this.createUpload({ purpose, signal: options.signal });
      try {
        return await this.#post(slot, source, options);
      } catch (error) {
        const pause =
          source.reopenable && isTransient(error)
            ? pauseBefore(error, attempt, this.#connection.retry)
            : undefined;
        if (pause === undefined) throw error;
        await pauseFor(pause, options.signal);
      }
    }
  }

  async #post(
    slot: UploadSlot,
    source: AudioSource,
    { signal, onProgress }: UploadOptions,
  ): Promise<Responded<StoredUpload>> {
    if (source.bytes !== undefined && source.bytes > slot.maxBytes) {
      throw new TakemarkError(
        'payload_too_large',
        `the file has ${sizeText(source.bytes)}, the slot takes ${sizeText(slot.maxBytes)}`,
      );
    }
    const form = uploadForm(slot.fields);
    // The presigned fields are the authority here; the key stays away from an address that a response named.
    const response = parseResponse(
      await this.#connection.transport.send({
        method: 'POST',
        url: this.#slotAddress(slot),
        headers: { 'content-type': form.contentType, accept: 'application/json' },
        body: { source, head: form.head, tail: form.tail, onProgress },
        signal,
        timeoutMs: this.#connection.idleTimeoutMs,
      }),
    );
    const stored = response.value as StoredUpload;
    if (stored.uploadId !== slot.uploadId) throw unexpected(response, 'the stored upload');
    return withFacts(response, stored);
  }

  #slotAddress(slot: UploadSlot): URL {
    const url = URL.canParse(slot.url) ? new URL(slot.url) : undefined;
    if (url === undefined || !this.#connection.mayFollow(url))
      throw new TakemarkError(
        'bad_response',
        'the upload slot names an address that is less protected than the service, to which no audio is sent',
      );
    return url;
  }
}

/** True where the members are what readers go by; `decision` and `proofId` may be absent. */
function isVerification({ verdict, good, proofId = '', decision }: Partial<VerificationResult>): boolean {
  return (
    typeof verdict === 'string' &&
    typeof good === 'boolean' &&
    typeof proofId === 'string' &&
    (decision === undefined || Array.isArray((decision as Partial<DecisionEnvelope> | null)?.reasons))
  );
}

/** Padded, RFC 4648 section 4. */
function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64');
}

function sizeText(bytes: number): string {
  return `${Number((bytes / 1_048_576).toFixed(2))} MiB (${bytes} bytes)`;
}
