import type { KeyObject } from 'node:crypto';
import type { Agent } from 'node:http';
import { singleHeader, TakemarkError } from './errors.js';
import type { ClientHooks } from './hooks.js';
import { MessageSigner, type SignedRequest } from './message-signature.js';
import { isRefusedForNow, isTransient, type RetryPolicy, retrying } from './retry.js';
import { type ServiceResponse, type StreamedResponse, Transport } from './transport.js';
import type { RateLimit, Responded } from './types.js';

export interface ClientOptions extends ClientHooks {
  /** Address of the partner listener, with or without its `/v1`. */
  readonly baseUrl: string;
  /** A server-side secret: it never enters a browser, an app bundle or a log. Not needed for `health`. */
  readonly apiKey?: string;
  /**
   * Certificates of the authorities that may vouch for the service, in PEM; instead of Node's own and
   * NODE_EXTRA_CA_CERTS.
   */
  readonly ca?: string | Uint8Array;
  /**
   * Lets the key and audio travel over plain HTTP to another machine than this one: where the network itself
   * is trusted. Default false.
   */
  readonly allowPlainHttp?: boolean;
  /**
   * Private key (Ed25519 or P-256, PEM or KeyObject) of the public key that the API key was made with: every
   * call is signed.
   */
  readonly signingKey?: KeyObject | string;
  /** Milliseconds for a JSON call, from sending to its complete response. Default 30,000. */
  readonly timeoutMs?: number;
  /**
   * Milliseconds an upload or a download may stand still, the wait for a response included. Default 60,000.
   */
  readonly idleTimeoutMs?: number;
  /** Default: 4 attempts, 250 ms doubling, pauses of at most 30 s. */
  readonly retry?: Partial<RetryPolicy>;
  /**
   * Agent of node:http or node:https, by the protocol of `baseUrl` and of its upload addresses, in the place of the
   * client's own: one that goes through a proxy, for example. Its owner ends it. Where it keeps connections, a stream
   * can be lost to one that the other side has closed.
   */
  readonly agent?: Agent;
  /** Product tokens of the caller, before the client's own: `ingest/2.1`. Default: the client's own alone. */
  readonly userAgent?: string;
}

export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
}

/** A query; members that are undefined are left out. */
export type Query = Readonly<Record<string, string | number | undefined>>;

export interface Call extends CallOptions {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** Below `/v1/`, its variable parts made by `pathPart`. */
  readonly path: string;
  readonly query?: Query | undefined;
  readonly json?: object;
  readonly headers?: Readonly<Record<string, string>>;
  /**
   * True where the contract calls the call safe to send again after any failure that may pass; a 429 is
   * always obeyed. Default: true of a GET.
   */
  readonly repeatable?: boolean | ((error: unknown) => error is TakemarkError);
  /** Sends no key. */
  readonly public?: boolean;
}

export interface ParsedResponse {
  readonly status: number;
  readonly headers: ServiceResponse['headers'];
  readonly requestId: string | undefined;
  readonly value: object;
}

/**
 * Checked here, so that a key with a newline from a file fails with a word on the key and not on a header.
 */
export const PRINTABLE = /^[\x21-\x7e]+$/;
const TEXT = /^[\x20-\x7e]+$/;
/**
 * An identifier that fails rule 2.5 is not sent (rule 17.2): `..` or nothing at all would make another path.
 */
const IDENTIFIER = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$/;

/** The JSON side of the contract: addresses, the key, retries and responses. */
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
    onExchange,
    onDeprecation,
  }: ClientOptions) {
    this.base = parseBase(baseUrl);
    if (apiKey !== undefined && !allowPlainHttp && isPlain(this.base)) {
      throw new TypeError(
        'over http the key could be read on its way to another machine: use an https address, or allowPlainHttp where the network is trusted',
      );
    }
    if (userAgent !== undefined && !TEXT.test(userAgent))
      throw new TypeError('userAgent must be printable ASCII');
    this.transport = new Transport({ ca, agent, userAgent, onExchange, onDeprecation });
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

  /** @throws TypeError without a key */
  get apiKey(): string {
    if (this.#apiKey === undefined) throw new TypeError('this call needs an apiKey');
    return this.#apiKey;
  }

  /** @param fits whether the value is what `what` names, as far as the client itself relies on it */
  async json<Body extends object>(
    call: Call,
    what: string,
    fits: (body: Partial<Body>) => boolean,
  ): Promise<Responded<Body>> {
    const { body } = await this.jsonWithHeaders(call, what, fits);
    return body;
  }

  /** Like `json`, with the headers. */
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
   * True where audio may go to an address that a response names: never one that is less protected than the
   * service's own.
   */
  mayFollow(url: URL): boolean {
    if (url.protocol === 'https:') return true;
    return (
      url.protocol === 'http:' && this.base.protocol === 'http:' && (this.#allowPlainHttp || !isPlain(url))
    );
  }

  /** The response as it is, for what stands in its headers; a redirect is one. */
  raw(call: Call): Promise<ServiceResponse> {
    return this.#send(call, true);
  }

  /** Repeated until a response begins, never once its body does. */
  open(call: Call): Promise<StreamedResponse> {
    const spec = this.#specOf(call, this.idleTimeoutMs);
    return retrying(this.retry, call.signal, () => this.transport.open(this.#signed(spec)));
  }

  #send(call: Call, redirect: boolean): Promise<ServiceResponse> {
    const { repeatable = call.method === 'GET' } = call;
    const spec = { ...this.#specOf(call, this.#timeoutMs), redirect };
    const again = typeof repeatable === 'function' ? repeatable : repeatable ? isTransient : isRefusedForNow;
    return retrying(this.retry, call.signal, () => this.transport.send(this.#signed(spec)), again);
  }

  /** Anew for each attempt: a signature is taken once, and for a minute. */
  #signed<Sent extends SignedRequest & { readonly headers: Readonly<Record<string, string>> }>(
    spec: Sent,
  ): Sent {
    if (this.#signer === undefined || spec.headers['x-api-key'] === undefined) return spec;
    return { ...spec, headers: { ...spec.headers, ...this.#signer.sign(spec) } };
  }

  #specOf(
    { method, path, query = {}, json, headers = {}, signal, public: open = false }: Call,
    timeoutMs: number,
  ) {
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
      },
      ...(json === undefined ? {} : { body: Buffer.from(JSON.stringify(json)) }),
      signal,
      timeoutMs,
    };
  }
}

/** An identifier as part of a path, where it stands as it is (rule 2.15). @throws TypeError for what cannot be one */
export function pathPart(identifier: string): string {
  if (!IDENTIFIER.test(identifier))
    throw new TypeError(
      'an identifier has 1 to 128 letters, digits, dots, underscores, colons or dashes, and begins with a letter or digit',
    );
  return identifier;
}

/** Puts the facts of a response on its body, last, so that no member of the body can stand in for them. */
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

/** Reads the JSON object that every 2xx response of the contract is. */
export function parseResponse({ status, headers, body }: ServiceResponse): ParsedResponse {
  const requestId = singleHeader(headers['x-request-id']);
  let value: unknown;
  try {
    value = JSON.parse(body.toString('utf8'));
  } catch {
    value = undefined;
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new TakemarkError('bad_response', 'the answer is not a JSON object', { status, requestId });
  return { status, headers, requestId, value };
}

export function unexpected(
  { status, requestId }: Pick<ParsedResponse, 'status' | 'requestId'>,
  what: string,
): TakemarkError {
  return new TakemarkError('bad_response', `the answer is not ${what}`, { status, requestId });
}

/** True where what is sent can be read on its way: plain HTTP that leaves this machine. */
export function isPlain(url: URL): boolean {
  return url.protocol === 'http:' && !isLoopback(url);
}

/**
 * Names and addresses of this machine for itself (RFC 6761, section 6.3; RFC 1122, section 3.2.1.3; RFC 4291,
 * section 2.5.3).
 */
export function isLoopback({ hostname }: URL): boolean {
  // A URL has its address in four decimal numbers, however it was written.
  return hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d{1,3}){3}$/.test(hostname);
}

/** Ends in a slash, without `/v1`, so that paths can be resolved against it. */
export function parseBase(address: string): URL {
  const url = URL.canParse(address) ? new URL(address) : undefined;
  if (url === undefined || (url.protocol !== 'http:' && url.protocol !== 'https:'))
    throw new TypeError('the address of the service must begin with http:// or https://');
  url.search = '';
  url.hash = '';
  url.pathname = `${url.pathname.replace(/\/+$/, '').replace(/\/v1$/, '')}/`;
  return url;
}
