import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isLoopback, isPlain, parseBase, parseResponse, pathPart } from '../client/connection.js';
import { TakemarkError } from '../client/errors.js';
import { entriesOf } from '../client/pages.js';
import { retrying } from '../client/retry.js';
import type { AudioSource } from '../client/source.js';
import { type Progress, type RequestSpec, Transport } from '../client/transport.js';
import { challengeKey, challengeNonce, challengeResponse } from '../service/contract/operator-challenge.js';
import type { ROUTES, RouteIdOf } from '../service/contract/routes/routes.js';
import type { RequestBodyOf, ResponseBodyOf, RouteInput } from '../service/contract/validation.js';
import { type ClientConfig, RuntimeError, UsageError } from './command.js';
import { type EvidenceFiles, issuingForm } from './issuing-form.js';
import type { ServiceAccess } from './service-access.js';

type Routes = typeof ROUTES;
type OperatorRoute = Routes[RouteIdOf<'operator'>];
/** The method of a route, and its path below `/operator/v1/`. */
type AddressOf<R extends OperatorRoute> = R['path'] extends `/operator/v1/${infer Path}`
  ? `${R['method']} ${Path}`
  : never;
type RoutesByAddress = {
  [Id in RouteIdOf<'operator'> as AddressOf<Routes[Id]>]: Routes[Id];
};
type Address = keyof RoutesByAddress;

type PathOf<R extends OperatorRoute> = keyof RouteInput<R>['params'] & string;
type QueryOf<R extends OperatorRoute> = Readonly<
  Partial<Record<keyof RouteInput<R>['query'] & string, string | number | undefined>>
>;
/** The path parameters, the query and the JSON body of a call, as far as its route declares them. */
type RequestAt<At extends Address> = ([PathOf<RoutesByAddress[At]>] extends [never]
  ? unknown
  : { readonly path: Readonly<Record<PathOf<RoutesByAddress[At]>, string>> }) &
  (RoutesByAddress[At] extends { readonly query: unknown }
    ? { readonly query?: QueryOf<RoutesByAddress[At]> }
    : unknown) &
  (RoutesByAddress[At] extends { readonly body: { readonly kind: 'json' } }
    ? { readonly json: BodyAt<At> }
    : unknown);
/** A request may be omitted if nothing in it is required. */
type ArgumentsOf<Request> = Record<never, never> extends Request ? [Request?] : [Request];
/** The JSON body of a route's request, and of its response, as the schemas of the contract declare them. */
export type BodyAt<At extends Address> = RequestBodyOf<RoutesByAddress[At]>;
export type ResponseAt<At extends Address> = ResponseBodyOf<RoutesByAddress[At]>;

export type IssuedProof = ResponseAt<'POST proofs'>;

export interface IssueCall {
  readonly query: QueryOf<Routes['issueProof']>;
  /** Makes a lost response harmless: repeating the call with the same key returns the first result. */
  readonly idempotencyKey: string;
  readonly audio: AudioSource;
  /** The capture trace and the files sent with it. */
  readonly evidence?: EvidenceFiles | undefined;
  readonly onProgress?: (progress: Progress) => void;
}

/** Calls that are never retried. After a lost response the partner or key may exist, or other letters be the oldest. */
const ONCE: ReadonlySet<Address> = new Set([
  'POST partners',
  'POST partners/{partnerId}/keys',
  'POST dead-letters/replay',
  'POST dead-letters/discard',
]);
/** Calls with a long timeout, because the service reads and checks many entries before it responds. */
const LONG: ReadonlySet<Address> = new Set([
  'GET partners/{partnerId}/audit/verification',
  'GET audit/stores',
  'POST samples/fill',
]);

const RETRY = { maxAttempts: 3, baseDelayMs: 250, maxDelayMs: 10_000 };
const TIMEOUT_MS = 30_000;
/** The milliseconds that issuing may make no progress. Signing the asset and writing it to disk take long. */
const ISSUE_TIMEOUT_MS = 120_000;
const LONG_TIMEOUT_MS = 600_000;
/** The milliseconds that a snapshot may make no progress. A busy disk delays the rows, so the limit is higher. */
const SNAPSHOT_TIMEOUT_MS = 120_000;

interface AnyRequest {
  readonly path?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string | number | undefined>>;
  readonly json?: object;
}

/** A client for the calls of the operator listener that the command line needs. */
export class OperatorClient {
  readonly #base: URL;
  readonly #token: string;
  readonly #allowPlainHttp: boolean;
  /** The challenge key, derived on first use because the derivation is slow. */
  #challengeKey: Buffer | undefined;
  readonly #signal: AbortSignal;
  readonly #transport: Transport;

  constructor({
    url,
    token,
    signal,
    ca,
    allowPlainHttp,
  }: { readonly url: string; readonly token: string; readonly signal: AbortSignal } & ServiceAccess) {
    this.#base = parseBase(url);
    if (!allowPlainHttp && isPlain(this.#base))
      throw new TypeError('plain http to another machine would expose the operator token');
    this.#transport = new Transport({ ca });
    this.#token = token;
    this.#allowPlainHttp = allowPlainHttp;
    this.#signal = signal;
  }

  /** Makes a JSON call. The compiler compares its address, request and response with the routes of the contract. */
  async call<At extends Address>(
    address: At,
    ...[request]: ArgumentsOf<RequestAt<At>>
  ): Promise<ResponseAt<At>> {
    const { path = {}, query, json }: AnyRequest = request ?? {};
    const [method, template] = address.split(' ') as [RequestSpec['method'], string];
    const url = this.#url(
      template.replace(/\{(\w+)\}/g, (_whole, name: string) => pathPart(path[name]!)),
      query,
    );
    const send = async () => {
      const response = await this.#send({
        method,
        url,
        headers: {
          accept: 'application/json',
          ...(json === undefined ? {} : { 'content-type': 'application/json' }),
        },
        ...(json === undefined ? {} : { body: Buffer.from(JSON.stringify(json)) }),
        timeoutMs: LONG.has(address) ? LONG_TIMEOUT_MS : TIMEOUT_MS,
      });
      return parseResponse(response).value as ResponseAt<At>;
    };
    return ONCE.has(address) ? send() : retrying(RETRY, this.#signal, send);
  }

  /** Makes a call, and returns the list in its response. @throws TakemarkError `bad_response` without a list */
  async list<At extends Address, Name extends keyof ResponseAt<At> & string>(
    address: At,
    member: Name,
    ...request: ArgumentsOf<RequestAt<At>>
  ): Promise<ResponseAt<At>[Name]> {
    return listIn(await this.call(address, ...request), member);
  }

  /** Yields a partner's review cases, newest first, across all pages. */
  listReviews(
    partnerId: string,
    filter: { readonly proofId?: string | undefined; readonly status?: string | undefined },
  ): AsyncGenerator<ResponseAt<'GET partners/{partnerId}/reviews'>['reviews'][number], void, undefined> {
    return entriesOf(async (cursor) => {
      const query = { ...filter, limit: 100, cursor };
      const page = await this.call('GET partners/{partnerId}/reviews', { path: { partnerId }, query });
      return { entries: listIn(page, 'reviews'), nextCursor: page.nextCursor };
    });
  }

  async issue({ query, idempotencyKey, audio, evidence, onProgress }: IssueCall): Promise<IssuedProof> {
    const url = this.#url('proofs', query);
    const { contentType, source } =
      evidence === undefined
        ? { contentType: 'application/octet-stream', source: audio }
        : issuingForm(evidence, audio);
    return retrying(RETRY, this.#signal, async () => {
      const response = await this.#send({
        method: 'POST',
        url,
        headers: {
          'content-type': contentType,
          accept: 'application/json',
          'idempotency-key': idempotencyKey,
        },
        body: { source, onProgress },
        timeoutMs: ISSUE_TIMEOUT_MS,
      });
      return parseResponse(response).value as unknown as IssuedProof;
    });
  }

  /** @param receive consumes the file while it arrives. It is called at most once */
  async readAsset(
    proofId: string,
    part: 'audio' | 'sidecar',
    receive: (body: AsyncIterable<Uint8Array>) => Promise<void>,
  ): Promise<void> {
    await this.#send({
      method: 'GET',
      url: this.#url(`proofs/${pathPart(proofId)}/asset`, { part }),
      headers: {},
      timeoutMs: TIMEOUT_MS,
      receive,
    });
  }

  /** @param receive consumes the rows of the store while they arrive. It is called at most once */
  async readSnapshot(receive: (body: AsyncIterable<Uint8Array>) => Promise<void>): Promise<void> {
    await this.#send({
      method: 'GET',
      url: this.#url('snapshot'),
      headers: {},
      timeoutMs: SNAPSHOT_TIMEOUT_MS,
      receive,
    });
  }

  /** Returns the certificates as PEM, the current one first. */
  async authority(): Promise<string> {
    const response = await retrying(RETRY, this.#signal, () =>
      this.#send({ method: 'GET', url: this.#url('authority'), headers: {}, timeoutMs: TIMEOUT_MS }),
    );
    return response.body.toString('utf8');
  }

  close(): void {
    this.#transport.close();
  }

  async #send(request: RequestSpec): ReturnType<Transport['send']> {
    await this.#challenge();
    return this.#transport.send({
      ...request,
      headers: { ...request.headers, authorization: `Bearer ${this.#token}` },
      signal: this.#signal,
    });
  }

  /**
   * Checks that the listener knows the token before the token is sent. It runs before each request, because
   * another program may listen by now. Over https the certificate proves the same. An impostor could relay
   * the challenge to the real service, so the answer is valid only for the port that the service names. If a
   * tunnel or a container maps that port, the caller must state that the path is trusted.
   * @throws RuntimeError
   */
  async #challenge(): Promise<void> {
    if (this.#base.protocol === 'https:') return;
    const nonce = challengeNonce();
    const url = this.#url('challenge', { nonce });
    const { value } = parseResponse(
      await this.#transport
        .send({
          method: 'GET',
          url,
          // The listener answers only to its own names, so that no web page can ask. A page cannot set Host.
          headers: { accept: 'application/json', host: 'localhost' },
          timeoutMs: TIMEOUT_MS,
          signal: this.#signal,
        })
        .catch((error: unknown) => {
          throw error instanceof TakemarkError && error.status !== undefined && error.status < 500
            ? this.#stranger()
            : error;
        }),
    );
    const { port, answers } = value as { readonly port?: unknown; readonly answers?: unknown };
    if (typeof port !== 'number' || !Array.isArray(answers)) throw this.#stranger();
    this.#challengeKey ??= challengeKey(this.#token);
    if (!answers.includes(challengeResponse(this.#challengeKey, nonce, port))) throw this.#stranger();
    if (String(port) !== (url.port || '80') && !this.#allowPlainHttp) {
      throw new RuntimeError(
        `the service listens on port ${port}, but ${url.host} is another port. If a trusted tunnel or container forwards the port, give --allow-plain-http. The token was not sent.`,
      );
    }
  }

  #stranger(): RuntimeError {
    return new RuntimeError(
      `the listener at ${this.#base.host} does not know the operator token: it is another program, or a service with another token. The token was not sent.`,
    );
  }

  #url(path: string, query: AnyRequest['query'] = {}): URL {
    const url = new URL(`operator/v1/${path}`, this.#base);
    // URLSearchParams.toString() would encode a space as `+`, which is for forms only.
    url.search = Object.entries(query)
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`)
      .join('&');
    return url;
  }
}

/** @throws TakemarkError `bad_response` if the member is not a list */
function listIn<Body, Name extends keyof Body & string>(body: Body, member: Name): Body[Name] {
  if (!Array.isArray(body[member]))
    throw new TakemarkError('bad_response', `the response has no member \`${member}\``);
  return body[member];
}

/** Returns the path of the token that the service created on its first start. */
export function operatorTokenPath(dataDirectory: string): string {
  return join(dataDirectory, 'operator-token');
}

/**
 * Returns the token from the environment, or the token that a service on this machine stored.
 * @throws UsageError
 */
export async function findOperatorToken(config: ClientConfig): Promise<string> {
  if (config.operatorToken !== undefined) return config.operatorToken;
  // The token file belongs to the service on this machine, so the token must not go to another machine.
  if (!isLoopback(parseBase(config.operatorUrl)))
    throw new UsageError(
      `TAKEMARK_OPERATOR_URL names another machine (${config.operatorUrl}): set TAKEMARK_OPERATOR_TOKEN to its token`,
    );
  const path = operatorTokenPath(config.dataDirectory);
  const token = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new UsageError(
      `no operator token: set TAKEMARK_OPERATOR_TOKEN, or TAKEMARK_DATA_DIR to the service's data directory (${path}: ${error.code ?? 'unreadable'})`,
    );
  });
  return token.trim();
}
