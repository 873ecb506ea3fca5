import { TakemarkError, singleHeader } from './errors.js';
import { uploadForm } from './form.js';
import { isTransient, pauseBefore, pauseFor, retrying, type RetryPolicy } from './retry.js';
import { audioSource, release, sidecarBytes, type AudioInput, type AudioSource } from './source.js';
import { Transport, type Answer, type Progress } from './transport.js';
import type { Health, StoredUpload, UploadPurpose, UploadSlot, Verification, VerificationResult } from './types.js';

export interface ClientOptions {
  /** Address of the partner listener, with or without its `/v1`. */
  readonly baseUrl: string;
  /** A server-side secret: it never enters a browser, an app bundle or a log. Not needed for `health`. */
  readonly apiKey?: string;
  /** Milliseconds for a JSON call, from sending to its complete answer. Default 30,000. */
  readonly timeoutMs?: number;
  /** Milliseconds an upload may stand still, the wait for its answer included. Default 60,000. */
  readonly idleTimeoutMs?: number;
  /** Default: 4 attempts, 250 ms doubling, pauses of at most 30 s. */
  readonly retry?: Partial<RetryPolicy>;
}

export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
}

export interface UploadOptions extends CallOptions {
  /** Length of a stream in bytes. Without it a stream is sent in chunks of unknown total. */
  readonly bytes?: number;
  readonly onProgress?: ((progress: Progress) => void) | undefined;
}

export interface VerifyFileOptions extends UploadOptions {
  /** The `.sidecar` of a legacy pair: a path or its bytes. Omit for a credentialed WAV/BWF. */
  readonly sidecar?: string | Uint8Array | undefined;
}

/** Checked here, so that a key with a newline from a file fails with a word on the key and not on a header. */
const PRINTABLE = /^[\x21-\x7e]+$/;

/** @throws TypeError for an address or a key that cannot be one. */
export function createClient(options: ClientOptions): Client {
  return new Client(options);
}

/**
 * The partner API. Safe to share: calls run side by side over kept connections. Failures are TakemarkError, but an abort,
 * which rejects with the signal's reason.
 *
 * Retried, within the policy: GETs, POST /uploads and POST /verify, which the contract calls safe to repeat. The presigned post
 * is never repeated as such: `verifyFile` takes a fresh slot instead, where the audio can be read again.
 */
export class Client {
  // Private members do not show when a client is logged; the key and the slots must not.
  readonly #base: URL;
  readonly #apiKey: string | undefined;
  readonly #timeoutMs: number;
  readonly #idleTimeoutMs: number;
  readonly #retry: RetryPolicy;
  readonly #transport = new Transport();

  constructor({ baseUrl, apiKey, timeoutMs = 30_000, idleTimeoutMs = 60_000, retry }: ClientOptions) {
    this.#base = parseBase(baseUrl);
    if (apiKey !== undefined && !PRINTABLE.test(apiKey)) throw new TypeError('apiKey must be printable ASCII without spaces');
    this.#apiKey = apiKey;
    this.#timeoutMs = timeoutMs;
    this.#idleTimeoutMs = idleTimeoutMs;
    this.#retry = { maxAttempts: 4, baseDelayMs: 250, maxDelayMs: 30_000, ...retry };
  }

  /**
   * Uploads a file and verifies it: one credentialed WAV/BWF, or audio with its sidecar. Constant memory, whatever the length.
   * @param input a path, bytes, or a stream; a stream cannot be sent a second time when an upload fails, and is closed at the
   * end whatever the outcome
   */
  async verifyFile(input: AudioInput, options: VerifyFileOptions = {}): Promise<Verification> {
    try {
      const source = await audioSource(input, options.bytes);
      // Read before the upload: a sidecar that is not there should not cost one.
      const sidecar = options.sidecar === undefined ? undefined : await sidecarBytes(options.sidecar);
      const { uploadId } = await this.#uploadToFreshSlot(source, options);
      return await this.verify({ uploadId, sidecar }, options);
    } finally {
      if (typeof input !== 'string' && !(input instanceof Uint8Array)) release(input);
    }
  }

  /** Mints a slot. */
  async createUpload({ purpose = 'verify', contentLength, signal }: CallOptions & { readonly purpose?: UploadPurpose; readonly contentLength?: number | undefined } = {}): Promise<UploadSlot> {
    const answer = await this.#json('POST', 'uploads', signal, { purpose, ...(contentLength === undefined ? {} : { contentLength }) });
    const slot = answer.value as Partial<UploadSlot>;
    if (typeof slot.uploadId !== 'string' || typeof slot.url !== 'string' || typeof slot.fields !== 'object' || slot.fields === null) throw unexpected(answer, 'an upload slot');
    return slot as UploadSlot;
  }

  /** Posts audio to a slot, once. After a failure the slot may be spent or not: take a fresh one. */
  async upload(slot: UploadSlot, input: AudioInput, options: UploadOptions = {}): Promise<StoredUpload> {
    return this.#post(slot, await audioSource(input, options.bytes), options);
  }

  /** Judges an upload. Has no side effects and is billed once, however often it is repeated. */
  async verify({ uploadId, sidecar }: { readonly uploadId: string; readonly sidecar?: Uint8Array | undefined }, { signal }: CallOptions = {}): Promise<Verification> {
    const answer = await this.#json('POST', 'verify', signal, { uploadId, ...(sidecar === undefined ? {} : { sidecar: base64(sidecar) }) });
    const result = answer.value as Partial<VerificationResult>;
    if (typeof result.verdict !== 'string' || typeof result.good !== 'boolean') throw unexpected(answer, 'a verification result');
    const { requestId } = answer;
    // "A caller accepts only when `good` is true and `verdict` is `valid`"; last, so that no member of the answer can stand in for it.
    return { ...(result as VerificationResult), ...(requestId === undefined ? {} : { requestId }), accepted: result.good && result.verdict === 'valid' };
  }

  /** Public: needs no key, and sends none. */
  async health({ signal }: CallOptions = {}): Promise<Health> {
    const answer = await this.#json('GET', 'health', signal);
    if (typeof (answer.value as Partial<Health>).ok !== 'boolean') throw unexpected(answer, 'a health report');
    return answer.value as Health;
  }

  /** Ends idle connections, and with them the process's reason to stay alive; calls in flight fail. */
  close(): void {
    this.#transport.close();
  }

  async #uploadToFreshSlot(source: AudioSource, options: UploadOptions): Promise<StoredUpload> {
    for (let attempt = 1; ; attempt += 1) {
      // Its own failures are retried inside. The length is not announced: a file that is too long is then refused here, by the
      // slot's own limit and in words on the file, instead of as an invalid member.
      const slot = await this.createUpload({ signal: options.signal });
      try {
        return await this.#post(slot, source, options);
      } catch (error) {
        const pause = source.reopenable && isTransient(error) ? pauseBefore(error, attempt, this.#retry) : undefined;
        if (pause === undefined) throw error;
        await pauseFor(pause, options.signal);
      }
    }
  }

  async #post(slot: UploadSlot, source: AudioSource, { signal, onProgress }: UploadOptions): Promise<StoredUpload> {
    if (source.bytes !== undefined && source.bytes > slot.maxBytes) {
      throw new TakemarkError('payload_too_large', `the file has ${source.bytes} bytes, the slot takes ${slot.maxBytes}`);
    }
    const form = uploadForm(slot.fields);
    // The presigned fields are the authority here; the key stays away from an address that an answer named.
    const answer = parseAnswer(
      await this.#transport.exchange({
        method: 'POST',
        url: this.#slotAddress(slot),
        headers: { 'content-type': form.contentType, accept: 'application/json' },
        body: { source, head: form.head, tail: form.tail, onProgress },
        signal,
        timeoutMs: this.#idleTimeoutMs,
      }),
    );
    const stored = answer.value as Partial<StoredUpload>;
    if (stored.uploadId !== slot.uploadId) throw unexpected(answer, 'the stored upload');
    return stored as StoredUpload;
  }

  #slotAddress(slot: UploadSlot): URL {
    const url = URL.canParse(slot.url) ? new URL(slot.url) : undefined;
    const allowed = this.#base.protocol === 'https:' ? ['https:'] : ['https:', 'http:'];
    if (url === undefined || !allowed.includes(url.protocol)) throw new TakemarkError('bad_response', 'the upload slot has no address that audio may be sent to');
    return url;
  }

  async #json(method: 'GET' | 'POST', path: string, signal: AbortSignal | undefined, value?: unknown): Promise<ParsedAnswer> {
    const headers: Record<string, string> = { accept: 'application/json' };
    if (path !== 'health') {
      if (this.#apiKey === undefined) throw new TypeError('this call needs an apiKey');
      headers['x-api-key'] = this.#apiKey;
    }
    if (value !== undefined) headers['content-type'] = 'application/json';
    const url = new URL(`v1/${path}`, this.#base);
    return retrying(this.#retry, signal, async () =>
      parseAnswer(
        await this.#transport.exchange({ method, url, headers, ...(value === undefined ? {} : { body: Buffer.from(JSON.stringify(value)) }), signal, timeoutMs: this.#timeoutMs }),
      ),
    );
  }
}

interface ParsedAnswer {
  readonly status: number;
  readonly requestId: string | undefined;
  readonly value: object;
}

/** Reads the JSON object that every 2xx answer of the contract is. */
export function parseAnswer({ status, headers, body }: Answer): ParsedAnswer {
  const requestId = singleHeader(headers['x-request-id']);
  let value: unknown;
  try {
    value = JSON.parse(body.toString('utf8'));
  } catch {
    value = undefined;
  }
  if (typeof value !== 'object' || value === null) throw new TakemarkError('bad_response', 'the answer is not JSON', { status, requestId });
  return { status, requestId, value };
}

function unexpected({ status, requestId }: ParsedAnswer, what: string): TakemarkError {
  return new TakemarkError('bad_response', `the answer is not ${what}`, { status, requestId });
}

/** Padded, RFC 4648 section 4. */
function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64');
}

/** Ends in a slash, without `/v1`, so that paths can be resolved against it. */
export function parseBase(address: string): URL {
  const url = URL.canParse(address) ? new URL(address) : undefined;
  if (url === undefined || (url.protocol !== 'http:' && url.protocol !== 'https:')) throw new TypeError('the address of the service must begin with http:// or https://');
  url.search = '';
  url.hash = '';
  url.pathname = `${url.pathname.replace(/\/+$/, '').replace(/\/v1$/, '')}/`;
  return url;
}
