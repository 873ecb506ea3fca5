import http from 'node:http';
import https from 'node:https';
import type { LookupFunction } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { errorFromResponse, singleHeader, TakemarkError } from './errors.js';
import { type ClientHooks, callHook, deprecationOf } from './hooks.js';
import { type AudioSource, release, sourceError } from './source.js';
import { CLIENT_VERSION } from './version.js';

/** The largest response that is read into memory, in bytes. A larger one fails with `bad_response`. */
const MAX_RESPONSE_BYTES = 16 * 1024 * 1024;

/** The header of W3C Trace Context, version 00. */
const TRACEPARENT = /^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/;

export interface Progress {
  /** The number of bytes of the file given to the connection. */
  readonly sentBytes: number;
  /** The length of the file. Undefined for a stream of unknown length. */
  readonly totalBytes: number | undefined;
}

/** A body that is sent while it is read, with bytes before and after it. */
export interface StreamedBody {
  readonly source: AudioSource;
  readonly head?: Buffer;
  readonly tail?: Buffer;
  readonly onProgress?: ((progress: Progress) => void) | undefined;
}

export interface RequestSpec {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE' | 'PATCH';
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Buffer | StreamedBody;
  readonly signal?: AbortSignal | undefined;
  /** The milliseconds to the complete response. For a stream, the milliseconds without progress. */
  readonly timeoutMs: number;
  /** Consumes the body of a 2xx response while it arrives, instead of collecting it. */
  readonly receive?: (body: AsyncIterable<Uint8Array>) => Promise<void>;
  /** True if a 3xx response is expected and not an error. */
  readonly redirect?: boolean;
}

export interface ServiceResponse {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: Buffer;
}

/** A 2xx response whose body has not been read yet. */
export interface StreamedResponse {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  /**
   * The body. It can be read once. Read it to its end or call `close`, otherwise it ends with the timeout.
   */
  readonly body: AsyncIterable<Uint8Array>;
  close(): void;
}

export interface TransportOptions extends ClientHooks {
  /** The PEM certificates of the trusted authorities. Default: Node's. */
  readonly ca?: string | Uint8Array | undefined;
  /** An agent that replaces the client's own. The caller closes it. */
  readonly agent?: http.Agent | undefined;
  /** The product tokens to put before the client's own (RFC 9110, section 10.1.5). */
  readonly userAgent?: string | undefined;
  /** Returns the W3C trace context of the running operation, for the header `traceparent` of each request. */
  readonly traceparent?: (() => string | undefined) | undefined;
}

/**
 * Sends requests to one service over kept-alive connections. It never follows redirects: the caller decides
 * whether to follow the only redirect of the contract.
 */
export class Transport {
  readonly #plain = new http.Agent({ keepAlive: true });
  readonly #secure = new https.Agent({ keepAlive: true });
  readonly #agent: http.Agent | undefined;
  readonly #trust: { readonly ca?: string | Buffer };
  readonly #userAgent: string;
  readonly #hooks: ClientHooks;
  readonly #traceparent: (() => string | undefined) | undefined;

  constructor({ ca, agent, userAgent, traceparent, onExchange, onDeprecation }: TransportOptions = {}) {
    this.#agent = agent;
    this.#trust = ca === undefined ? {} : { ca: typeof ca === 'string' ? ca : Buffer.from(ca) };
    const own = `takemark-client/${CLIENT_VERSION} node/${process.versions.node}`;
    this.#userAgent = userAgent === undefined ? own : `${userAgent} ${own}`;
    this.#hooks = { onExchange, onDeprecation };
    this.#traceparent = traceparent;
  }

  /**
   * Returns a 2xx response.
   * @throws TakemarkError for any other response and for every failure except an abort
   */
  async send(spec: RequestSpec): Promise<ServiceResponse> {
    spec.signal?.throwIfAborted();
    const startedAt = performance.now();
    const call = this.#call(spec, startedAt);
    try {
      const response = await call.run();
      this.#reportDeprecation(spec, response.headers);
      const redirected = spec.redirect === true && response.status >= 300 && response.status <= 399;
      if (!redirected && (response.status < 200 || response.status > 299))
        throw errorFromResponse(response.status, response.headers, response.body);
      this.#reportExchange(spec, startedAt, response);
      return response;
    } catch (error) {
      this.#reportFailure(spec, startedAt, error);
      throw error;
    } finally {
      call.close();
    }
  }

  /** Does the same as `send`, for a body that the caller reads at its own pace. */
  async open(spec: RequestSpec): Promise<StreamedResponse> {
    spec.signal?.throwIfAborted();
    const startedAt = performance.now();
    const call = this.#call(spec, startedAt);
    try {
      const response = await call.open((headers) => this.#reportDeprecation(spec, headers));
      this.#reportExchange(spec, startedAt, response);
      return response;
    } catch (error) {
      call.close();
      this.#reportFailure(spec, startedAt, error);
      throw error;
    }
  }

  /** Closes all connections, including those in use. */
  close(): void {
    this.#plain.destroy();
    this.#secure.destroy();
  }

  #request({ method, url, headers, body }: RequestSpec): http.ClientRequest {
    const secure = url.protocol === 'https:';
    const { protocol } = (this.#agent ?? {}) as { readonly protocol?: string };
    if (protocol !== undefined && protocol !== url.protocol)
      throw new TakemarkError(
        'connection_failed',
        `the agent is for ${protocol} but the address is ${url.protocol}`,
      );
    // The server may have closed a kept-alive connection. A source that can be read only once would be lost,
    // so it gets a new connection if the agent is ours.
    const once = body !== undefined && !Buffer.isBuffer(body) && !body.source.reopenable;
    const options = {
      method,
      headers: { 'user-agent': this.#userAgent, ...this.#trace(), ...headers, ...lengthHeader(body) },
      agent: this.#agent ?? (once ? false : secure ? this.#secure : this.#plain),
    } as const;
    if (secure) return https.request(url, { ...options, ...this.#trust });
    return http.request(
      url,
      url.hostname === 'localhost' ? { ...options, lookup: lookupLocalhost } : options,
    );
  }

  /** Returns the header of the trace context. A value of another form would only be ignored. */
  #trace(): Record<string, string> {
    const traceparent = this.#traceparent?.();
    return traceparent !== undefined && TRACEPARENT.test(traceparent) ? { traceparent } : {};
  }

  #call(spec: RequestSpec, startedAt: number): Call {
    try {
      return new Call(spec, this.#request(spec));
    } catch (error) {
      this.#reportFailure(spec, startedAt, error);
      throw error;
    }
  }

  #reportDeprecation({ method, url }: RequestSpec, headers: http.IncomingHttpHeaders): void {
    const notice = deprecationOf(headers);
    if (notice !== undefined) callHook(this.#hooks.onDeprecation, { method, path: url.pathname, ...notice });
  }

  #reportExchange(
    { method, url }: RequestSpec,
    startedAt: number,
    { status, headers }: Pick<ServiceResponse, 'status' | 'headers'>,
  ): void {
    const requestId = singleHeader(headers['x-request-id']);
    callHook(this.#hooks.onExchange, {
      method,
      path: url.pathname,
      status,
      ...(requestId === undefined ? {} : { requestId }),
      durationMs: performance.now() - startedAt,
    });
  }

  #reportFailure({ method, url }: RequestSpec, startedAt: number, error: unknown): void {
    const { status, requestId, code } = error instanceof TakemarkError ? error : { code: 'aborted' };
    callHook(this.#hooks.onExchange, {
      method,
      path: url.pathname,
      ...(status === undefined ? {} : { status }),
      code,
      ...(requestId === undefined ? {} : { requestId }),
      durationMs: performance.now() - startedAt,
    });
  }
}

/**
 * Resolves `localhost` to 127.0.0.1. Most systems try `::1` first, where the service does not listen by default. Another
 * user of the machine could listen there, receive the key, and relay the calls. Over https the certificate prevents it.
 */
const lookupLocalhost: LookupFunction = (_hostname, { all }, callback) => {
  if (all === true) callback(null, [{ address: '127.0.0.1', family: 4 }]);
  else callback(null, '127.0.0.1', 4);
};

function lengthHeader(body: RequestSpec['body']): Record<string, string> {
  if (body === undefined) return {};
  if (Buffer.isBuffer(body)) return { 'content-length': String(body.length) };
  const { source, head, tail } = body;
  return source.bytes === undefined
    ? {}
    : { 'content-length': String((head?.length ?? 0) + source.bytes + (tail?.length ?? 0)) };
}

/**
 * A request and its response. The response may arrive while the request is still being sent, and then ends
 * the sending.
 */
class Call {
  readonly #spec: RequestSpec;
  readonly #message: http.ClientRequest;
  readonly #timer: NodeJS.Timeout;
  readonly #onAbort = (): void => this.#fail(this.#spec.signal?.reason);
  readonly #response: Promise<http.IncomingMessage>;
  /** True if sending is pointless: a response has arrived, or the connection is gone. */
  #ended = false;
  /**
   * True if the response was read completely and everything was sent, so that the connection can be kept
   * alive.
   */
  #complete = false;
  /**
   * True if a timeout or an abort ended the connection. A body without a length then just ends, and the
   * received part must not pass for the whole.
   */
  #givenUp = false;
  /** The first failure. Later failures are its consequences. */
  #failure: { readonly error: unknown } | undefined;

  constructor(spec: RequestSpec, message: http.ClientRequest) {
    this.#spec = spec;
    this.#message = message;
    this.#timer = setTimeout(
      () => this.#fail(new TakemarkError('timed_out', 'the service did not respond in time')),
      spec.timeoutMs,
    );
    spec.signal?.addEventListener('abort', this.#onAbort, { once: true });
    this.#response = new Promise((resolve, reject) => {
      message.once('response', (response) => {
        this.#ended = true;
        resolve(response);
      });
      // Kept for the lifetime of the message: a connection may fail after its response was read.
      message.on('error', (error) => {
        this.#failure ??= { error: connectionError(error) };
        reject(this.#failure.error);
      });
      // Destroying a message is not always reported as an error.
      message.once('close', () => {
        this.#ended = true;
        clearTimeout(this.#timer);
        reject(
          this.#failure?.error ??
            new TakemarkError('connection_failed', 'the connection closed before a response'),
        );
      });
    });
    this.#response.catch(() => undefined);
  }

  async run(): Promise<ServiceResponse> {
    const { body } = this.#spec;
    if (body === undefined || Buffer.isBuffer(body)) {
      this.#message.end(body);
      return this.#read(await this.#response);
    }
    // Opened here, so that a failure to open rejects this call instead of being unhandled.
    const chunks = body.source.open();
    const sent = this.#send(body, chunks);
    try {
      // After a failure of the source, neither the service nor this client must wait for the rest.
      return await this.#read(await Promise.race([this.#response, sent.then(() => this.#response)]));
    } finally {
      this.#ended = true;
      release(chunks);
      sent.catch(() => undefined);
    }
  }

  /** @param begun called with the headers of the response, for any status */
  async open(begun: (headers: http.IncomingHttpHeaders) => void): Promise<StreamedResponse> {
    this.#message.end();
    const response = await this.#response;
    const status = response.statusCode ?? 0;
    const { headers } = response;
    begun(headers);
    if (status < 200 || status > 299)
      throw errorFromResponse(status, headers, (await this.#read(response)).body);
    return { status, headers, body: this.#streamed(response), close: () => this.close() };
  }

  async *#streamed(response: http.IncomingMessage): AsyncGenerator<Uint8Array> {
    try {
      yield* this.#watched(response);
      this.#complete = response.complete;
    } finally {
      this.close();
    }
  }

  /** Ends the request and its response. */
  close(): void {
    clearTimeout(this.#timer);
    this.#spec.signal?.removeEventListener('abort', this.#onAbort);
    if (!this.#complete) this.#message.destroy();
  }

  /**
   * Resolves when everything is sent, or when sending is pointless. It throws only for failures of the
   * source.
   */
  async #send(
    { source, head, tail, onProgress }: StreamedBody,
    chunks: AsyncIterable<Uint8Array>,
  ): Promise<void> {
    const totalBytes = source.bytes;
    let sentBytes = 0;
    try {
      if (head !== undefined) await this.#write(head);
      for await (const chunk of chunks) {
        if (this.#ended) return;
        sentBytes += chunk.byteLength;
        if (totalBytes !== undefined && sentBytes > totalBytes)
          throw new TakemarkError('source_failed', 'the source is longer than its announced length');
        await this.#write(chunk);
        onProgress?.({ sentBytes, totalBytes });
      }
      if (this.#ended) return;
      if (totalBytes !== undefined && sentBytes < totalBytes)
        throw new TakemarkError('source_failed', 'the source is shorter than its announced length');
    } catch (error) {
      throw error instanceof TakemarkError ? error : sourceError(error);
    }
    this.#message.end(tail);
  }

  /** Resolves when more may be written, so that a slow connection does not fill the memory. */
  async #write(bytes: Uint8Array): Promise<void> {
    if (this.#message.write(bytes)) {
      // Small writes must not starve the reading side, so that an early rejection is read before a reset.
      await nextTurn();
    } else if (!this.#ended) {
      await new Promise<void>((resolve) => {
        const done = (): void => {
          for (const event of ['drain', 'response', 'close']) this.#message.off(event, done);
          resolve();
        };
        for (const event of ['drain', 'response', 'close']) this.#message.on(event, done);
      });
    }
    this.#timer.refresh();
  }

  async #read(response: http.IncomingMessage): Promise<ServiceResponse> {
    const status = response.statusCode ?? 0;
    const { headers } = response;
    const { receive } = this.#spec;
    if (receive !== undefined && status >= 200 && status <= 299) {
      await receive(this.#watched(response));
      this.#complete = response.complete;
      return { status, headers, body: Buffer.alloc(0) };
    }
    const parts: Buffer[] = [];
    let bytes = 0;
    try {
      for await (const part of response as AsyncIterable<Buffer>) {
        bytes += part.length;
        if (bytes > MAX_RESPONSE_BYTES)
          throw new TakemarkError('bad_response', 'the response is too large', {
            status,
            requestId: singleHeader(headers['x-request-id']),
          });
        parts.push(part);
      }
      if (this.#givenUp) throw new Error('call ended');
    } catch (error) {
      // A service may close the connection on a sender who does not stop. The status of a rejection with a
      // truncated body is still usable.
      const aborted = this.#failure !== undefined && !(this.#failure.error instanceof TakemarkError);
      if (error instanceof TakemarkError || aborted || status < 400) throw this.#cause(error);
    }
    this.#complete = response.complete && this.#message.writableFinished;
    return { status, headers, body: Buffer.concat(parts) };
  }

  async *#watched(response: http.IncomingMessage): AsyncGenerator<Uint8Array> {
    const source = (response as AsyncIterable<Uint8Array>)[Symbol.asyncIterator]();
    for (;;) {
      const next = await source.next().catch((error: unknown) => {
        throw this.#cause(error);
      });
      if (next.done === true) {
        if (this.#givenUp) throw this.#failure?.error;
        return;
      }
      this.#timer.refresh();
      yield next.value;
    }
  }

  #cause(error: unknown): unknown {
    return this.#failure?.error ?? (error instanceof TakemarkError ? error : connectionError(error));
  }

  #fail(error: unknown): void {
    this.#failure ??= { error };
    this.#givenUp = true;
    this.#ended = true;
    this.#message.destroy(new Error('call ended'));
  }
}

/**
 * The Node error codes for a rejected certificate (including OpenSSL's X509_V_ERR_* codes) and for a failed
 * handshake.
 */
const TLS_CODES =
  /^(ERR_TLS_|ERR_SSL_|EPROTO$|CERT_|CRL_|ERROR_IN_CERT_|ERROR_IN_CRL_|UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_|INVALID_CA$|INVALID_PURPOSE$|PATH_LENGTH_|HOSTNAME_MISMATCH$)/;

function connectionError(cause: unknown): TakemarkError {
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : undefined;
  if (code !== undefined && TLS_CODES.test(code))
    return new TakemarkError('tls_failed', `the TLS connection failed (${code})`, { cause });
  return new TakemarkError(
    'connection_failed',
    `the connection failed${code === undefined ? '' : ` (${code})`}`,
    { cause },
  );
}
