import http from 'node:http';
import https from 'node:https';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { errorFromResponse, singleHeader, TakemarkError } from './errors.js';
import { type ClientHooks, deprecationOf, tell } from './hooks.js';
import { type AudioSource, release, sourceError } from './source.js';
import { CLIENT_VERSION } from './version.js';

/** Largest response that is read into memory. */
const MAX_RESPONSE_BYTES = 16 * 1024 * 1024;

export interface Progress {
  /** Bytes of the file handed to the connection. */
  readonly sentBytes: number;
  /** Undefined for a stream of unknown length. */
  readonly totalBytes: number | undefined;
}

/** A body that is sent as it is read, with what stands before and after it. */
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
  /** Milliseconds to the complete response; where something streams, milliseconds without progress. */
  readonly timeoutMs: number;
  /** Takes the body of a 2xx response as it comes, instead of having it collected. */
  readonly receive?: (body: AsyncIterable<Uint8Array>) => Promise<void>;
  /** A response of 3xx is what is asked for, and not an error. */
  readonly redirect?: boolean;
}

export interface ServiceResponse {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: Buffer;
}

/** A response of 2xx whose body is still to come. */
export interface StreamedResponse {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  /** Read it to its end or `close`; left alone, it ends with the time-out. Can be read once. */
  readonly body: AsyncIterable<Uint8Array>;
  close(): void;
}

export interface TransportOptions extends ClientHooks {
  /** PEM of the authorities that may vouch for the service; Node's own by default. */
  readonly ca?: string | Uint8Array | undefined;
  /** In the place of the own ones; its owner ends it. */
  readonly agent?: http.Agent | undefined;
  /** Product tokens that stand before the own ones (RFC 9110, section 10.1.5). */
  readonly userAgent?: string | undefined;
}

/**
 * Connections to one service, kept alive between calls. Follows no redirects: the one of the contract is the
 * caller's to follow.
 */
export class Transport {
  readonly #plain = new http.Agent({ keepAlive: true });
  readonly #secure = new https.Agent({ keepAlive: true });
  readonly #agent: http.Agent | undefined;
  readonly #trust: { readonly ca?: string | Buffer };
  readonly #userAgent: string;
  readonly #hooks: ClientHooks;

  constructor({ ca, agent, userAgent, onExchange, onDeprecation }: TransportOptions = {}) {
    this.#agent = agent;
    this.#trust = ca === undefined ? {} : { ca: typeof ca === 'string' ? ca : Buffer.from(ca) };
    const own = `takemark-client/${CLIENT_VERSION} node/${process.versions.node}`;
    this.#userAgent = userAgent === undefined ? own : `${userAgent} ${own}`;
    this.#hooks = { onExchange, onDeprecation };
  }

  /** @returns a response of 2xx; any other is thrown as TakemarkError, as are all failures but an abort. */
  async send(spec: RequestSpec): Promise<ServiceResponse> {
    spec.signal?.throwIfAborted();
    const startedAt = performance.now();
    const call = this.#call(spec, startedAt);
    try {
      const response = await call.run();
      this.#tellDeprecation(spec, response.headers);
      const redirected = spec.redirect === true && response.status >= 300 && response.status <= 399;
      if (!redirected && (response.status < 200 || response.status > 299))
        throw errorFromResponse(response.status, response.headers, response.body);
      this.#tellExchange(spec, startedAt, response);
      return response;
    } catch (error) {
      this.#tellFailure(spec, startedAt, error);
      throw error;
    } finally {
      call.close();
    }
  }

  /** Like `send`, for a body that the caller reads at its own pace. */
  async open(spec: RequestSpec): Promise<StreamedResponse> {
    spec.signal?.throwIfAborted();
    const startedAt = performance.now();
    const call = this.#call(spec, startedAt);
    try {
      const response = await call.open((headers) => this.#tellDeprecation(spec, headers));
      this.#tellExchange(spec, startedAt, response);
      return response;
    } catch (error) {
      call.close();
      this.#tellFailure(spec, startedAt, error);
      throw error;
    }
  }

  /** Drops idle connections and ends those in use. */
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
        `the agent is for ${protocol} and the address is ${url.protocol}`,
      );
    // A kept connection may turn out closed by the other side as soon as it is written to. A source that can
    // be read only once would be lost with it, so it gets a connection of its own, where the agent is ours.
    const once = body !== undefined && !Buffer.isBuffer(body) && !body.source.reopenable;
    const options = {
      method,
      headers: { 'user-agent': this.#userAgent, ...headers, ...lengthHeader(body) },
      agent: this.#agent ?? (once ? false : secure ? this.#secure : this.#plain),
    } as const;
    return secure ? https.request(url, { ...options, ...this.#trust }) : http.request(url, options);
  }

  #call(spec: RequestSpec, startedAt: number): Call {
    try {
      return new Call(spec, this.#request(spec));
    } catch (error) {
      this.#tellFailure(spec, startedAt, error);
      throw error;
    }
  }

  #tellDeprecation({ method, url }: RequestSpec, headers: http.IncomingHttpHeaders): void {
    const notice = deprecationOf(headers);
    if (notice !== undefined) tell(this.#hooks.onDeprecation, { method, path: url.pathname, ...notice });
  }

  #tellExchange(
    { method, url }: RequestSpec,
    startedAt: number,
    { status, headers }: Pick<ServiceResponse, 'status' | 'headers'>,
  ): void {
    const requestId = singleHeader(headers['x-request-id']);
    tell(this.#hooks.onExchange, {
      method,
      path: url.pathname,
      status,
      ...(requestId === undefined ? {} : { requestId }),
      durationMs: performance.now() - startedAt,
    });
  }

  #tellFailure({ method, url }: RequestSpec, startedAt: number, error: unknown): void {
    const { status, requestId, code } = error instanceof TakemarkError ? error : { code: 'aborted' };
    tell(this.#hooks.onExchange, {
      method,
      path: url.pathname,
      ...(status === undefined ? {} : { status }),
      code,
      ...(requestId === undefined ? {} : { requestId }),
      durationMs: performance.now() - startedAt,
    });
  }
}

function lengthHeader(body: RequestSpec['body']): Record<string, string> {
  if (body === undefined) return {};
  if (Buffer.isBuffer(body)) return { 'content-length': String(body.length) };
  const { source, head, tail } = body;
  return source.bytes === undefined
    ? {}
    : { 'content-length': String((head?.length ?? 0) + source.bytes + (tail?.length ?? 0)) };
}

/** A request with its response. The response may come at any moment of the sending, and ends it. */
class Call {
  readonly #spec: RequestSpec;
  readonly #message: http.ClientRequest;
  readonly #timer: NodeJS.Timeout;
  readonly #onAbort = (): void => this.#fail(this.#spec.signal?.reason);
  readonly #response: Promise<http.IncomingMessage>;
  /** Sending has lost its point: there is a response, or no connection. */
  #ended = false;
  /** The response was read whole and nothing is left to send, so the connection can be kept. */
  #complete = false;
  /**
   * A time-out or an abort ended the connection. A body without a length ends with that, and what came until then
   * would pass for all of it.
   */
  #givenUp = false;
  /** The first cause; what follows from it is noise. */
  #failure: { readonly error: unknown } | undefined;

  constructor(spec: RequestSpec, message: http.ClientRequest) {
    this.#spec = spec;
    this.#message = message;
    this.#timer = setTimeout(
      () => this.#fail(new TakemarkError('timed_out', 'the service did not answer in time')),
      spec.timeoutMs,
    );
    spec.signal?.addEventListener('abort', this.#onAbort, { once: true });
    this.#response = new Promise((resolve, reject) => {
      message.once('response', (response) => {
        this.#ended = true;
        resolve(response);
      });
      // Stays for the life of the message: a connection may break again after its response was read.
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
            new TakemarkError('connection_failed', 'the connection closed before an answer'),
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
    // Opened here, so that a rejection to open is the caller's error and not an unhandled one.
    const chunks = body.source.open();
    const sent = this.#send(body, chunks);
    try {
      // A source that fails must not leave the service, and us, waiting for the rest of it.
      return await this.#read(await Promise.race([this.#response, sent.then(() => this.#response)]));
    } finally {
      this.#ended = true;
      release(chunks);
      sent.catch(() => undefined);
    }
  }

  /** @param begun called with the headers of the response, whatever its status */
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

  /** Ends what is left. */
  close(): void {
    clearTimeout(this.#timer);
    this.#spec.signal?.removeEventListener('abort', this.#onAbort);
    if (!this.#complete) this.#message.destroy();
  }

  /** Resolves when all is sent, or when sending has lost its point. Throws for the source alone. */
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
          throw new TakemarkError('source_failed', 'the source is longer than announced');
        await this.#write(chunk);
        onProgress?.({ sentBytes, totalBytes });
      }
      if (this.#ended) return;
      if (totalBytes !== undefined && sentBytes < totalBytes)
        throw new TakemarkError('source_failed', 'the source is shorter than announced');
    } catch (error) {
      throw error instanceof TakemarkError ? error : sourceError(error);
    }
    this.#message.end(tail);
  }

  /** Resolves when more may be written, so that memory stays constant however slow the connection. */
  async #write(bytes: Uint8Array): Promise<void> {
    if (this.#message.write(bytes)) {
      // Small writes must not starve the reading side either: an early rejection is seen before a reset.
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
          throw new TakemarkError('bad_response', 'the answer is too large', {
            status,
            requestId: singleHeader(headers['x-request-id']),
          });
        parts.push(part);
      }
      if (this.#givenUp) throw new Error('call ended');
    } catch (error) {
      // A rejection whose body was cut off (a service may close on a sender who does not stop) still says
      // enough by its status.
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
 * Node's codes of a refused certificate (those of OpenSSL's X509_V_ERR_* among them) and of a failed
 * handshake.
 */
const TLS_CODES =
  /^(ERR_TLS_|ERR_SSL_|EPROTO$|CERT_|CRL_|ERROR_IN_CERT_|ERROR_IN_CRL_|UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_|INVALID_CA$|INVALID_PURPOSE$|PATH_LENGTH_|HOSTNAME_MISMATCH$)/;

function connectionError(cause: unknown): TakemarkError {
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : undefined;
  if (code !== undefined && TLS_CODES.test(code))
    return new TakemarkError('tls_failed', `no trusted connection (${code})`, { cause });
  return new TakemarkError(
    'connection_failed',
    `the connection failed${code === undefined ? '' : ` (${code})`}`,
    { cause },
  );
}
