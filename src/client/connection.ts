import type { KeyObject } from 'node:crypto';
import type { Agent } from 'node:http';
import { singleHeader, TakemarkError } from './errors.js';
import type { UploadForm } from './form.js';
import type { ClientHooks } from './hooks.js';
import { MessageSigner } from './message-signature.js';
import { isRefusedForNow, isTransient, type RetryPolicy, retrying } from './retry.js';
import {
  type RequestSpec,
  type ServiceResponse,
  type StreamedBody,
  type StreamedResponse,
  Transport,
} from './transport.js';
import type { RateLimit, Responded } from './types.js';

export interface ClientOptions extends ClientHooks {
  /** The address of the partner listener, with or without `/v1`. */
  readonly baseUrl: string;
  /**
   * The API key. It is a server-side secret: keep it out of browsers, app bundles and logs. `health` needs no
   * key.
   */
  readonly apiKey?: string;
  /**
   * The PEM certificates of the authorities to trust for the service, instead of Node's defaults and
   * NODE_EXTRA_CA_CERTS.
   */
  readonly ca?: string | Uint8Array;
  /**
   * Allows sending the key and audio over plain HTTP to another machine. Use it only on a trusted network.
   * Default false.
   */
  readonly allowPlainHttp?: boolean;
  /**
   * The private key (Ed25519 or P-256, PEM or KeyObject) for the public key of the API key. If set, every
   * call is signed.
   */
  readonly signingKey?: KeyObject | string;
  /** The timeout of a JSON call in milliseconds, from sending to the complete response. Default 30,000. */
  readonly timeoutMs?: number;
  /**
   * The milliseconds that an upload or a download may make no progress, including the wait for a response.
   * Default 60,000.
   */
  readonly idleTimeoutMs?: number;
  /** The retry policy. Default: 4 attempts, a first pause of 250 ms that doubles, pauses of at most 30 s. */
  readonly retry?: Partial<RetryPolicy>;
  /**
   * An agent of node:http or node:https that replaces the client's own, for example for a proxy. It must
   * match the protocol of `baseUrl` and of the upload addresses. The caller closes the agent. If the agent
   * keeps connections alive, a stream upload can fail on a connection that the server has closed.
   */
  readonly agent?: Agent;
  /** The product tokens to put before the client's own, such as `ingest/2.1`. Default: only the client's own. */
  readonly userAgent?: string;
  /**
   * Returns the W3C trace context of the running operation, which each request then sends as `traceparent`. The
   * service logs its trace id beside the request id. A value of another form is not sent.
   */
  readonly traceparent?: (() => string | undefined) | undefined;
}

export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
}

/** A query. Undefined members are omitted. */
export type Query = Readonly<Record<string, string | number | undefined>>;

export interface Call extends CallOptions {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** The path below `/v1/`. Its variable parts come from `pathPart`. */
  readonly path: string;
  readonly query?: Query | undefined;
  readonly json?: object;
  /** A form that is sent while its file is read. A client that signs cannot send one: it needs the digest first. */
  readonly form?: UploadForm & Pick<StreamedBody, 'source' | 'onProgress'>;
  readonly headers?: Readonly<Record<string, string>>;
  /**
   * True if the contract allows repeating the call after any transient failure. A 429 is always retried.
   * Default: true for GET.
   */
  readonly repeatable?: boolean | ((error: unknown) => error is TakemarkError);
  /** True if the call sends no key. */
  readonly public?: boolean;
}

export interface ParsedResponse {
  readonly status: number;
  readonly headers: ServiceResponse['headers'];
  readonly requestId: string | undefined;
  readonly value: object;
}

/**
 * Matches a valid key. A key with a newline from a file then fails with an error about the key instead of a
 * header.
 */
export const PRINTABLE = /^[\x21-\x7e]+$/;
const TEXT = /^[\x20-\x7e]+$/;
/**
 * Matches an identifier of rule 2.5. Others are never sent (rule 17.2), because `..` or an empty one changes
 * the path.
 */
const IDENTIFIER = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$/;

/** Sends the JSON calls of the contract: addresses, key, retries and responses. */
export class Connection {
  readonly base: URL;
  readonly retry: RetryPolicy;
  readonly idleTimeoutMs: number;
  readonly transport: Transport;
  readonly #allowPlainHttp: boolean;
  // Private members do not show when a client is logged.
  readonly #apiKey: string | undefined;
  readonly #signer: MessageSigner | undefined;
  readonly #timeoutMs: number;

  constructor({
    baseUrl,
    apiKey,
    signingKey,
    ca,
    allowPlainHttp = false,
    timeoutMs = 30_000,
    idleTimeoutMs = 60_000,
    retry,
    agent,
    userAgent,
    traceparent,
    onExchange,
    onDeprecation,
  }: ClientOptions) {
    this.base = parseBase(baseUrl);
    if (apiKey !== undefined && !allowPlainHttp && isPlain(this.base)) {
      throw new TypeError(
        'plain http to another machine would expose the API key: use an https address, or allowPlainHttp on a trusted network',
      );
    }
    if (userAgent !== undefined && !TEXT.test(userAgent))
      throw new TypeError('userAgent must be printable ASCII');
    this.transport = new Transport({ ca, agent, userAgent, traceparent, onExchange, onDeprecation });
    this.#allowPlainHttp = allowPlainHttp;
    if (apiKey !== undefined && !PRINTABLE.test(apiKey))
      throw new TypeError('apiKey must be printable ASCII without spaces');
    this.#apiKey = apiKey;
    this.#signer =
      signingKey === undefined || apiKey === undefined ? undefined : new MessageSigner(signingKey, apiKey);
    this.#timeoutMs = timeoutMs;
    this.idleTimeoutMs = idleTimeoutMs;
    this.retry = { maxAttempts: 4, baseDelayMs: 250, maxDelayMs: 30_000, ...retry };
  }

  /** True if the calls are signed. */
  get signs(): boolean {
    return this.#signer !== undefined;
  }

  /** @throws TypeError without a key */
  get apiKey(): string {
    if (this.#apiKey === undefined) throw new TypeError('this call needs the option apiKey');
    return this.#apiKey;
  }

  /** @param fits returns whether the value is a `what`, as far as the client relies on it */
  async json<Body extends object>(
    call: Call,
    what: string,
    fits: (body: Partial<Body>) => boolean,
  ): Promise<Responded<Body>> {
    const { body } = await this.jsonWithHeaders(call, what, fits);
    return body;
  }

  /** Does the same as `json` and returns the headers too. */
  async jsonWithHeaders<Body extends object>(
    call: Call,
    what: string,
    fits: (body: Partial<Body>) => boolean,
  ): Promise<{ readonly headers: ServiceResponse['headers']; readonly body: Responded<Body> }> {
    const response = parseResponse(await this.#send(call, false));
    if (!fits(response.value as Partial<Body>)) throw unexpected(response, what);
    return { headers: response.headers, body: withFacts(response, response.value as Body) };
  }

  /**
   * Returns whether audio may be sent to an address from a response. Such an address must be protected at
   * least as well as the service's own.
   */
  mayFollow(url: URL): boolean {
    if (url.protocol === 'https:') return true;
    return (
      url.protocol === 'http:' && this.base.protocol === 'http:' && (this.#allowPlainHttp || !isPlain(url))
    );
  }

  /** Returns the raw response with its headers. A redirect is a valid response. */
  raw(call: Call): Promise<ServiceResponse> {
    return this.#send(call, true);
  }

  /** Opens a streamed response. It is retried until the response starts, but never after that. */
  open(call: Call): Promise<StreamedResponse> {
    const spec = this.#specOf(call, this.idleTimeoutMs);
    return retrying(this.retry, call.signal, () => this.transport.open(this.#signed(spec)));
  }

  #send(call: Call, redirect: boolean): Promise<ServiceResponse> {
    const { repeatable = call.method === 'GET' } = call;
    const timeoutMs = call.form === undefined ? this.#timeoutMs : this.idleTimeoutMs;
    const spec = { ...this.#specOf(call, timeoutMs), redirect };
    const again = typeof repeatable === 'function' ? repeatable : repeatable ? isTransient : isRefusedForNow;
    return retrying(this.retry, call.signal, () => this.transport.send(this.#signed(spec)), again);
  }

  /** Signs each attempt again: a signature is accepted only once and only for a minute. */
  #signed<Sent extends RequestSpec>(spec: Sent): Sent {
    const { method, url, body, headers } = spec;
    if (this.#signer === undefined || headers['x-api-key'] === undefined) return spec;
    const signed = Buffer.isBuffer(body) ? { method, url, body } : { method, url };
    return { ...spec, headers: { ...headers, ...this.#signer.sign(signed) } };
  }

  #specOf(
    { method, path, query = {}, json, form, headers = {}, signal, public: open = false }: Call,
    timeoutMs: number,
  ): RequestSpec {
    const url = new URL(`v1/${path}`, this.base);
    for (const [name, value] of Object.entries(query))
      if (value !== undefined) url.searchParams.set(name, String(value));
    return {
      method,
      url,
      headers: {
        accept: 'application/json',
        ...headers,
        ...(open ? {} : { 'x-api-key': this.apiKey }),
        ...(json === undefined ? {} : { 'content-type': 'application/json' }),
        ...(form === undefined ? {} : { 'content-type': form.contentType }),
      },
      ...(json === undefined ? {} : { body: Buffer.from(JSON.stringify(json)) }),
      ...(form === undefined ? {} : { body: form }),
      signal,
      timeoutMs,
    };
  }
}

/**
 * Returns an identifier for use in a path, unescaped (rule 2.15).
 * @throws TypeError for an invalid identifier
 */
export function pathPart(identifier: string): string {
  if (!IDENTIFIER.test(identifier))
    throw new TypeError(
      'an identifier must have 1 to 128 letters, digits, dots, underscores, colons or dashes, and start with a letter or digit',
    );
  return identifier;
}

/**
 * Adds the facts of a response to its body. They are added last, so that a member of the body cannot override
 * them.
 */
export function withFacts<Body extends object>(
  { requestId, headers }: Pick<ParsedResponse, 'requestId' | 'headers'>,
  body: Body,
): Responded<Body> {
  const rateLimit = readRateLimit(headers);
  const result = { ...body, ...(requestId === undefined ? {} : { requestId }) };
  if (rateLimit !== undefined)
    Object.defineProperty(result, 'rateLimit', { value: rateLimit, enumerable: false, configurable: true });
  return result;
}

function readRateLimit(headers: ServiceResponse['headers']): RateLimit | undefined {
  const [limit, remaining, reset] = ['limit', 'remaining', 'reset'].map((name) => {
    const value = singleHeader(headers[`x-ratelimit-${name}`]);
    return value !== undefined && /^\d{1,15}$/.test(value) ? Number(value) : undefined;
  });
  return limit === undefined || remaining === undefined || reset === undefined
    ? undefined
    : { limit, remaining, reset };
}

/** Parses the JSON object of a 2xx response. */
export function parseResponse({ status, headers, body }: ServiceResponse): ParsedResponse {
  const requestId = singleHeader(headers['x-request-id']);
  let value: unknown;
  try {
    value = JSON.parse(body.toString('utf8'));
  } catch {
    value = undefined;
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new TakemarkError('bad_response', 'the response is not a JSON object', { status, requestId });
  return { status, headers, requestId, value };
}

export function unexpected(
  { status, requestId }: Pick<ParsedResponse, 'status' | 'requestId'>,
  what: string,
): TakemarkError {
  return new TakemarkError('bad_response', `the response is not ${what}`, { status, requestId });
}

/** Returns true for plain HTTP to another machine, which exposes what is sent. */
export function isPlain(url: URL): boolean {
  return url.protocol === 'http:' && !isLoopback(url);
}

/**
 * Returns true for the loopback names and addresses (RFC 6761, section 6.3, RFC 1122, section 3.2.1.3, RFC
 * 4291, section 2.5.3).
 */
export function isLoopback({ hostname }: URL): boolean {
  // The URL parser normalises every IPv4 notation to four decimal numbers. The transport connects to 127.0.0.1
  // for `localhost`.
  return hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d{1,3}){3}$/.test(hostname);
}

/** Returns the address with a final slash and without `/v1`, so that paths can be resolved against it. */
export function parseBase(address: string): URL {
  const url = URL.canParse(address) ? new URL(address) : undefined;
  if (url === undefined || (url.protocol !== 'http:' && url.protocol !== 'https:'))
    throw new TypeError('the address of the service must start with http:// or https://');
  url.search = '';
  url.hash = '';
  url.pathname = `${url.pathname.replace(/\/+$/, '').replace(/\/v1$/, '')}/`;
  return url;
}
