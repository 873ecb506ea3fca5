import { randomUUID } from 'node:crypto';
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
  AskedDigest,
  DecisionEnvelope,
  DigestsIdentification,
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
  /** The length of a stream in bytes. Without it, the stream is sent with chunked encoding. */
  readonly bytes?: number;
  readonly onProgress?: ((progress: Progress) => void) | undefined;
}

export interface VerifyFileOptions extends UploadOptions {
  /** The `.sidecar` of a legacy pair: a path or its bytes. Omit for a credentialed WAV/BWF. */
  readonly sidecar?: string | Uint8Array | undefined;
}

export interface PageOptions extends CallOptions {
  /** The number of entries per page, 1 to 100. */
  readonly limit?: number | undefined;
  /** The `nextCursor` of the previous page. */
  readonly cursor?: string | undefined;
}

/** Limits a list to the cases of one proof or of one status. */
export interface ReviewFilter {
  readonly proofId?: string | undefined;
  readonly status?: 'open' | 'resolved' | undefined;
}

/** Limits a list of proofs. Times are in unix seconds. */
export interface ProofFilter {
  readonly issuedAfter?: number | undefined;
  readonly issuedBefore?: number | undefined;
  /** Adds the whole evidence report to each entry. Pages then have fewer entries. */
  readonly include?: 'evidenceReport' | undefined;
}

export interface AssetOptions extends CallOptions {
  /** The part of a pair to read. */
  readonly part?: 'audio' | 'sidecar' | undefined;
  /** The first and the last byte. Without an end, the range is the rest of the file. */
  readonly range?: { readonly start: number; readonly end?: number } | undefined;
  /** An earlier `etag`. If the file has changed since then, the whole file is sent instead of the range. */
  readonly ifRange?: string | undefined;
  /** Compares a whole file with the digest that the service sends. Default true. */
  readonly checkDigest?: boolean | undefined;
}

/** The page size of the iterators. It is the maximum, so that a long list needs the fewest calls. */
const PAGE_ENTRIES = 100;

/** The most digests of one call. */
const DIGESTS_OF_CALL = 1000;

/** The largest file of the purposes `verify` and `identify`, and of a call with a file: 65 MiB. A larger one is large. */
const MAX_ORDINARY_BYTES = 68_157_440;

/** Creates a client. @throws TypeError for an invalid address or key */
export function createClient(options: ClientOptions): Client {
  return new Client(options);
}

/**
 * A client for the partner API. It is safe to share: calls run in parallel over kept-alive connections. A
 * failed call throws a TakemarkError. An aborted call rejects with the signal's reason, and an invalid
 * identifier throws a TypeError.
 *
 * Within the retry policy, the client repeats the calls that the contract calls safe: GET, POST /uploads,
 * POST /verify, DELETE, and a rotation or POST /verifications with its Idempotency-Key. Any other call is repeated
 * only after a 429, which means that nothing was done. The presigned upload is never repeated to the same slot: a new
 * slot is taken if the audio can be read again.
 */
export class Client {
  // A private member, so that logging a client never shows the key or the slots.
  readonly #connection: Connection;
  /** False once the service has turned out to be older than `POST /v1/verifications`. */
  #hasOneCall = true;

  constructor(options: ClientOptions) {
    this.#connection = new Connection(options);
  }

  /**
   * Verifies a file: a credentialed WAV/BWF file, or audio with its sidecar. Memory use does not depend on the
   * length. A file of at most 65 MiB takes one call. Audio takes an upload slot if it can be read only once, if it is
   * larger, or if the client signs its calls. A file above 65 MiB costs one unit for each 65 MiB begun. The service has
   * a limit for it, which is 2 GiB by default.
   * @param input a path, bytes, or a stream. A stream cannot be sent again when an upload fails, and is
   * always closed at the end
   */
  async verifyFile(input: AudioInput, options: VerifyFileOptions = {}): Promise<Verification> {
    try {
      const source = await audioSource(input, options.bytes);
      // Read the sidecar first, so that a missing sidecar does not cost an upload.
      const sidecar = options.sidecar === undefined ? undefined : await sidecarBytes(options.sidecar);
      if (this.#fitsOneCall(source)) {
        try {
          return await this.#verifyInOneCall(source, sidecar, options);
        } catch (error) {
          if (!(error instanceof TakemarkError && error.status === 404)) throw error;
          this.#hasOneCall = false;
        }
      }
      const { uploadId } = await this.#uploadToFreshSlot(source, 'verify', options);
      return await this.verify({ uploadId, sidecar }, options);
    } finally {
      release(input);
    }
  }

  /** Uploads a file and finds the issued recordings that match it. Input and cost are as for `verifyFile`. */
  async identifyFile(input: AudioInput, options: UploadOptions = {}): Promise<Responded<Identification>> {
    try {
      const { uploadId } = await this.#uploadToFreshSlot(
        await audioSource(input, options.bytes),
        'identify',
        options,
      );
      return await this.identify({ uploadId }, options);
    } finally {
      release(input);
    }
  }

  /** Creates an upload slot. */
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

  /** Posts audio to a slot without retries. After a failure the slot may be used up, so create a new slot. */
  async upload(
    slot: UploadSlot,
    input: AudioInput,
    options: UploadOptions = {},
  ): Promise<Responded<StoredUpload>> {
    return this.#post(slot, await audioSource(input, options.bytes), options);
  }

  /** Verifies an upload. Repeating the call is safe and billed only once. */
  async verify(
    { uploadId, sidecar }: { readonly uploadId: string; readonly sidecar?: Uint8Array | undefined },
    { signal }: CallOptions = {},
  ): Promise<Verification> {
    return this.#verification({
      method: 'POST',
      path: 'verify',
      json: { uploadId, ...(sidecar === undefined ? {} : { sidecar: base64(sidecar) }) },
      repeatable: true,
      signal,
    });
  }

  /**
   * Finds the issued recordings that match an upload with purpose `identify` or `identify_large`, or each of 1 to
   * 1,000 digests. Each call counts towards the quota, so the client does not retry it.
   */
  identify(request: { readonly uploadId: string }, options?: CallOptions): Promise<Responded<Identification>>;
  identify(
    request: { readonly digests: readonly AskedDigest[] },
    options?: CallOptions,
  ): Promise<Responded<DigestsIdentification>>;
  identify(
    request: { readonly uploadId: string } | { readonly digests: readonly AskedDigest[] },
    { signal }: CallOptions = {},
  ): Promise<Responded<Identification> | Responded<DigestsIdentification>> {
    const call = { method: 'POST', path: 'recordings/identify', signal } as const;
    if ('uploadId' in request)
      return this.#connection.json<Identification>(
        { ...call, json: { uploadId: request.uploadId } },
        'a list of matches',
        ({ matches }) => Array.isArray(matches),
      );
    const digests = request.digests.map(({ sha256, of }) => (of === undefined ? { sha256 } : { sha256, of }));
    return this.#connection.json<DigestsIdentification>(
      { ...call, json: { digests } },
      'a result for each digest',
      ({ results }) =>
        Array.isArray(results) &&
        results.length === digests.length &&
        results.every(({ matches }) => Array.isArray(matches)),
    );
  }

  /**
   * Yields the result of each digest, in the order of the digests. Sends 1,000 digests in a call, and no audio. Each
   * 100 digests begun cost one unit.
   */
  async *identifyDigests(
    digests: Iterable<AskedDigest> | AsyncIterable<AskedDigest>,
    options: CallOptions = {},
  ): AsyncGenerator<DigestsIdentification['results'][number], void, undefined> {
    let page: AskedDigest[] = [];
    for await (const digest of digests) {
      page.push(digest);
      if (page.length < DIGESTS_OF_CALL) continue;
      yield* (await this.identify({ digests: page }, options)).results;
      page = [];
    }
    if (page.length > 0) yield* (await this.identify({ digests: page }, options)).results;
  }

  /** Yields all proofs of the partner, newest first. */
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

  /** Reads the registered record of a proof. A record does not show that a file matches. */
  async readRecord(proofId: string, { signal }: CallOptions = {}): Promise<Responded<ProofRecord>> {
    return this.#connection.json<ProofRecord>(
      { method: 'GET', path: `records/${pathPart(proofId)}`, signal },
      'a proof record',
      (record) => record.proofId === proofId,
    );
  }

  /** Opens an asset of the partner, or a part of it, as a stream. Read `body` to its end or call `close`. */
  async readAsset(proofId: string, { part, ...options }: AssetOptions = {}): Promise<Asset> {
    return this.#openFile(`proofs/${pathPart(proofId)}/asset`, options, { part });
  }

  /**
   * Lists sandbox files for every verdict, each with the expected verify response. Available in beta only.
   */
  sandboxFixtures({ signal }: CallOptions = {}): Promise<Responded<Fixtures>> {
    return this.#connection.json<Fixtures>(
      { method: 'GET', path: 'sandbox/fixtures', signal },
      'a list of fixtures',
      ({ fixtures }) => Array.isArray(fixtures),
    );
  }

  /**
   * Opens a file of a fixture as a stream. Read `body` to its end or call `close`.
   * @param options.part the part as named in the list. Default: the audio
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
      // No compression, because digest and range refer to the bytes of the file.
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
   * Erases a proof permanently. A repeated call returns `already_erased`, including a retry by the client
   * after a lost response.
   */
  async eraseProof(proofId: string, { signal }: CallOptions = {}): Promise<Responded<ErasedProof>> {
    return this.#connection.json<ErasedProof>(
      { method: 'DELETE', path: `proofs/${pathPart(proofId)}`, repeatable: true, signal },
      'the outcome of an erasure',
      ({ outcome }) => typeof outcome === 'string',
    );
  }

  /** Yields the metadata of every key of the partner, without secrets. */
  listKeys({
    limit = PAGE_ENTRIES,
    signal,
  }: Omit<PageOptions, 'cursor'> = {}): AsyncGenerator<KeyEntry, void, undefined> {
    return entriesOf(async (cursor) => {
      const { keys: entries, nextCursor } = await this.listKeysPage({ limit, cursor, signal });
      return { entries, nextCursor };
    });
  }

  /** Reads a page of the keys. Without `limit` and `cursor` it returns all keys. */
  listKeysPage({ limit, cursor, signal }: PageOptions = {}): Promise<Responded<KeyPage>> {
    return this.#connection.json<KeyPage>(
      { method: 'GET', path: 'partner/keys', query: { limit, cursor }, signal },
      'a page of keys',
      ({ keys }) => Array.isArray(keys),
    );
  }

  /**
   * Rotates the key of this client. The Idempotency-Key is saved in `store` before the call, and the new
   * secret before the method returns. After a crash, call it again with the same key and store: it always
   * ends with the same single new key. This client keeps using its old key, which works until
   * `previousKeyExpiresAt`. Create a new client for the new key.
   * @throws TakemarkError `rotation_unfinished` if the store holds a secret or a rotation of another key
   */
  rotateKey(options: RotateOptions): Promise<Rotation> {
    return rotate(this.#connection, options);
  }

  /**
   * Revokes a key of the partner immediately and permanently. Repeating the call changes nothing. A rotated
   * key can only revoke itself.
   * @param successors true to revoke every key that replaced the key as well
   * @throws TakemarkError 403 `key_expiring`. 409 `last_active_key` if no active key would be left
   */
  async revokeKey(
    keyId: string,
    { successors, signal }: CallOptions & { readonly successors?: boolean | undefined } = {},
  ): Promise<Responded<KeyEntry>> {
    return this.#connection.json<KeyEntry>(
      {
        method: 'DELETE',
        path: `partner/keys/${pathPart(keyId)}`,
        query: { successors: successors === true ? 'true' : undefined },
        repeatable: true,
        signal,
      },
      'a key',
      (key) => key.keyId === keyId && typeof key.status === 'string',
    );
  }

  /** Reads limits and usage. @param days 1 to 92. The default of the service is 30 */
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
   * @param options `idempotencyKey`: 16 to 128 visible ASCII characters. With it, the call is safe to repeat
   * for 24 hours, and the client retries it after a lost response
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

  /** Yields all review cases of the partner, newest first. */
  listReviews({
    limit = PAGE_ENTRIES,
    ...query
  }: ReviewFilter & Omit<PageOptions, 'cursor'> = {}): AsyncGenerator<PartnerReviewCase, void, undefined> {
    return entriesOf(async (cursor) => {
      const { reviews: entries, nextCursor } = await this.listReviewsPage({ ...query, limit, cursor });
      return { entries, nextCursor };
    });
  }

  /** Reads a page of the review cases. An empty page may still have a `nextCursor`. */
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

  /** Opens an evidence request. A review accepts each kind only once (rule 12.8). */
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
   * Accepts or declines an evidence request. The answer cannot be changed later.
   * @param request `responseReference` is an opaque reference into the partner's own system
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

  /** Records the partner's outcome of a case that has no open evidence request. */
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

  /**
   * Returns the download address of a product. The client does not follow it. Never send the API key there.
   */
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

  /** Reports counters. Their names are from a closed list of the service. */
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

  /** Reads the health of the service. The call needs no key and sends none. */
  health({ signal }: CallOptions = {}): Promise<Responded<Health>> {
    return this.#connection.json<Health>(
      { method: 'GET', path: 'health', public: true, signal },
      'a health report',
      ({ ok }) => typeof ok === 'boolean',
    );
  }

  /** Closes all connections, so that they do not keep the process alive. Calls in flight fail. */
  close(): void {
    this.#connection.transport.close();
  }

  async #verification(call: Parameters<Connection['json']>[0]): Promise<Verification> {
    const result = await this.#connection.json<VerificationResult>(
      call,
      'a verification result',
      isVerification,
    );
    // Rule 8.7. Assigned last, so that a member of the response cannot override it.
    return Object.assign(result, { accepted: result.good && result.verdict === 'valid' });
  }

  #fitsOneCall({ bytes, reopenable }: AudioSource): boolean {
    return (
      this.#hasOneCall &&
      !this.#connection.signs &&
      reopenable &&
      bytes !== undefined &&
      bytes <= MAX_ORDINARY_BYTES
    );
  }

  #verifyInOneCall(
    source: AudioSource,
    sidecar: Uint8Array | undefined,
    { signal, onProgress }: UploadOptions,
  ): Promise<Verification> {
    return this.#verification({
      method: 'POST',
      path: 'verifications',
      form: { ...uploadForm({}, sidecar), source, onProgress },
      // A repeated attempt is then not charged again.
      headers: { 'idempotency-key': randomUUID() },
      repeatable: true,
      signal,
    });
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
    use: 'verify' | 'identify',
    options: UploadOptions,
  ): Promise<StoredUpload> {
    const isLarge = source.bytes !== undefined && source.bytes > MAX_ORDINARY_BYTES;
    const purpose: UploadPurpose = isLarge ? `${use}_large` : use;
    for (let attempt = 1; ; attempt += 1) {
      // `createUpload` retries its own failures.
      const slot = await this.createUpload({
        purpose,
        contentLength: isLarge ? source.bytes : undefined,
        signal: options.signal,
      });
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
        `the file has ${sizeText(source.bytes)}, but the limit is ${sizeText(slot.maxBytes)}`,
      );
    }
    const form = uploadForm(slot.fields);
    // The presigned fields authorise the upload. The key must not go to an address from a response.
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
        'the address of the upload slot is less protected than the service, so no audio was sent',
      );
    return url;
  }
}

/**
 * Returns true if the members that callers rely on are well-formed. `decision` and `proofId` are optional.
 */
function isVerification({ verdict, good, proofId = '', decision }: Partial<VerificationResult>): boolean {
  return (
    typeof verdict === 'string' &&
    typeof good === 'boolean' &&
    typeof proofId === 'string' &&
    (decision === undefined || Array.isArray((decision as Partial<DecisionEnvelope> | null)?.reasons))
  );
}

/** Encodes bytes as padded base64 (RFC 4648, section 4). */
function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64');
}

function sizeText(bytes: number): string {
  return `${Number((bytes / 1_048_576).toFixed(2))} MiB (${bytes} bytes)`;
}
