import { createHash, timingSafeEqual } from 'node:crypto';
import { DomainError } from '../../../core/domain/errors.js';
import {
  isRouteOf,
  type KeyRoute,
  type OpenRoute,
  type Route,
  type RouteBody,
} from '../../contract/route.js';
import { FORM_BYTES } from '../../contract/routes/partner-routes.js';
import { ROUTES, type RouteIdOf } from '../../contract/routes/routes.js';
import {
  NO_PARAMETERS,
  type RequestPart,
  type RequestSchema,
  type RouteInput,
  type RouteOutput,
  validate,
} from '../../contract/validation.js';
import { type ContentDigest, digestHolds } from '../../domain/message-signature.js';
import { MAX_UPLOAD_BYTES } from '../../domain/upload.js';
import { type Caller, requireScope } from '../../operations/caller.js';
import type { PartnerOperations } from '../../operations/operations.js';
import type { Observer } from '../../ports/observer.js';
import { bodyNotSigned, fileTooLarge, readBody, tooLarge } from '../body/body-reader.js';
import { parseJson } from '../body/json-text.js';
import { checkMediaType, declaredLength } from '../body/media-type.js';
import { parseQuery } from '../body/query.js';
import type { Exchange } from '../exchange.js';
import { isFault } from '../response/error-response.js';
import { limitHeaders } from '../response/limit-headers.js';
import { json, type Response, type ResponseOf } from '../response/response.js';
import { Deadline, givenUp } from './deadline.js';
import { countHeader } from './http-grammar.js';
import type { RunningCalls } from './running-calls.js';
import { refuseForTest, SlowAnswers } from './test-answers.js';

/**
 * A call as an endpoint receives it. All parts are checked and have the types that the path table declares.
 */
export interface Call<R extends Route> extends RouteInput<R> {
  readonly exchange: Exchange;
  readonly caller: R['auth'] extends 'key' ? Caller : undefined;
  /** The signal that aborts when the caller leaves, or the time of the call is over. */
  readonly signal: AbortSignal;
  /** The digest of the body that the call's signature covers. The reader of a streamed body compares it. */
  readonly digest: ContentDigest | undefined;
  /**
   * Limits a step of a call with a key whose body is streamed, by the time of the call. The time in which the body
   * arrives does not count. `discard` receives the value of a step that settles too late.
   */
  readonly inTime: InTime;
}

type InTime = <Value>(step: Promise<Value>, discard?: (value: Value) => void) => Promise<Value>;

/**
 * One function for each route of a listener. The compiler checks that no function is missing, and that each
 * response matches the route's schema for its status.
 */
export type Endpoints<Listener extends Route['listener']> = {
  readonly [Id in RouteIdOf<Listener>]: (
    call: Call<(typeof ROUTES)[Id]>,
  ) => ResponseOf<(typeof ROUTES)[Id]> | Promise<ResponseOf<(typeof ROUTES)[Id]>>;
};

type Member<Value> = Value extends object ? Value : unknown;
/** The members of path, query and JSON body in one object. */
type Input<R extends Route> = Member<RouteInput<R>['params']> &
  Member<RouteInput<R>['query']> &
  Member<RouteInput<R>['body']>;
type BodyOf<R extends Route> = {
  [Status in keyof RouteOutput<R>]: RouteOutput<R>[Status] extends { readonly body: infer Body }
    ? Body
    : never;
}[keyof RouteOutput<R>];

/**
 * Operations that are called directly, without an endpoint function. An operation has the name of its route.
 * The arguments are the caller (on routes with a key) and one object with all input. The result is the body
 * of the route's only JSON response.
 */
export type DirectOperations<Listener extends Route['listener']> = {
  readonly [Id in RouteIdOf<Listener>]: (typeof ROUTES)[Id]['auth'] extends 'key'
    ? (
        caller: Caller,
        input: Input<(typeof ROUTES)[Id]>,
      ) => BodyOf<(typeof ROUTES)[Id]> | Promise<BodyOf<(typeof ROUTES)[Id]>>
    : (
        input: Input<(typeof ROUTES)[Id]>,
      ) => BodyOf<(typeof ROUTES)[Id]> | Promise<BodyOf<(typeof ROUTES)[Id]>>;
};

/** A call of any route, without the route's own types. */
interface AnyCall {
  readonly exchange: Exchange;
  readonly caller: Caller | undefined;
  readonly signal: AbortSignal;
  readonly digest: ContentDigest | undefined;
  readonly inTime: InTime;
  readonly params: unknown;
  readonly query: unknown;
  readonly headers: unknown;
  readonly body: unknown;
}

type Run = (call: AnyCall) => Response | Promise<Response>;

/** The operations that check partners' keys and enforce their limits. */
type PartnerGuard = Pick<PartnerOperations, 'checkSignature' | 'admit' | 'rate' | 'quota' | 'meter'> & {
  until(signal: AbortSignal): Pick<PartnerOperations, 'authenticate'>;
};

/** The guard of partners' keys, with the calls of all partners that run, and the delayed calls of test keys. */
interface KeyGuard {
  readonly partners: PartnerGuard;
  readonly calls: RunningCalls;
  readonly slow: SlowAnswers;
}
/** The operations of any listener, without their own types. */
interface AnyOperations {
  until(signal: AbortSignal): Readonly<Record<string, (...input: unknown[]) => unknown>>;
}
/** Throws `forbidden` for a request without a valid bearer token of the operator. */
type BearerGuard = (request: Exchange['request']) => void;

/** A route with its function and the guard that its authentication needs. */
export type Endpoint = { readonly id: string; readonly run: Run } & (
  | { readonly auth: 'key'; readonly route: KeyRoute; readonly keys: KeyGuard }
  | { readonly auth: 'bearer'; readonly route: OpenRoute; readonly authorise: BearerGuard }
  | { readonly auth: 'public' | 'form'; readonly route: OpenRoute }
);

interface Guards {
  readonly keys?: Pick<KeyGuard, 'partners' | 'calls'>;
  readonly bearer?: BearerGuard;
}

/**
 * Returns every route of a listener with its guard, in the order of the table. A route without a function of
 * its own calls the operation of the same name.
 * @param environment routes of other environments are omitted
 */
export function joinEndpoints<Listener extends Route['listener'], Own extends Partial<Endpoints<Listener>>>(
  listener: Listener,
  own: Own,
  operations: { until(signal: AbortSignal): Omit<DirectOperations<Listener>, keyof Own> },
  { keys: given, bearer }: Guards,
  environment?: string,
): readonly Endpoint[] {
  // The casts lose the types, but `runChecked` validates each call with the schemas of its own route.
  const direct = operations as unknown as AnyOperations;
  const functions = own as unknown as Readonly<Record<string, Run>>;
  const keys = given && { ...given, slow: new SlowAnswers() };
  const routes = routesOf(listener).filter(([, route]) => isRouteOf(environment, route));
  return routes.map(([id, route]) =>
    guarded({ id, run: functions[id] ?? callDirectly(id, route, direct) }, route, { keys, bearer }),
  );
}

/** Returns only the routes of a listener that have a function in `own`. */
export function joinOwn<Listener extends Route['listener']>(
  listener: Listener,
  own: Partial<Endpoints<Listener>>,
): readonly Endpoint[] {
  const functions = own as unknown as Readonly<Record<string, Run>>;
  return routesOf(listener)
    .filter(([id]) => Object.hasOwn(functions, id))
    .map(([id, route]) => guarded({ id, run: functions[id]! }, route, {}));
}

function routesOf(listener: Route['listener']): readonly (readonly [string, Route])[] {
  return Object.entries<Route>(ROUTES).filter(([, route]) => route.listener === listener);
}

function callDirectly(id: string, { auth, responses }: Route, operations: AnyOperations): Run {
  const [status, ...others] = Object.keys(responses).map(Number);
  if (status === undefined || others.length > 0)
    throw new Error(`the route ${id} needs an endpoint function, because it has more than one response`);
  return async ({ caller, params, query, body, signal }) => {
    const input = { ...(params as object), ...(query as object), ...(body as object) };
    const own = operations.until(signal);
    return json(status, await (auth === 'key' ? own[id]!(caller, input) : own[id]!(input)));
  };
}

function guarded(
  named: { readonly id: string; readonly run: Run },
  route: Route,
  { keys, bearer }: { readonly keys?: KeyGuard | undefined; readonly bearer?: BearerGuard | undefined },
): Endpoint {
  const { auth } = route;
  switch (auth) {
    case 'key':
      if (keys !== undefined) return { ...named, auth, route, keys };
      break;
    case 'bearer':
      if (bearer !== undefined) return { ...named, auth, route, authorise: bearer };
      break;
    default:
      return { ...named, auth, route };
  }
  throw new Error(`no guard for the route ${named.id}`);
}

/**
 * Runs one call, with its checks in the order of rule 3.1.
 * @param params the path's parameters, decoded
 */
export async function runEndpoint(
  endpoint: Endpoint,
  observer: Observer,
  exchange: Exchange,
  params: unknown,
): Promise<Response> {
  const end = new AbortController();
  exchange.giveUp = () => end.abort(givenUp());
  if (exchange.gone) exchange.giveUp();
  if (endpoint.auth === 'key') return runForPartner(endpoint, observer, exchange, params, end.signal);
  if (endpoint.auth === 'bearer') endpoint.authorise(exchange.request);
  return runChecked(endpoint.route, endpoint.run, exchange, params, { signal: end.signal });
}

async function runForPartner(
  { id, route, run, keys: { partners, calls, slow } }: Extract<Endpoint, { auth: 'key' }>,
  observer: Observer,
  exchange: Exchange,
  params: unknown,
  signal: AbortSignal,
): Promise<Response> {
  const deadline = new Deadline(
    exchange.limits.callMs,
    (error) => void (isFault(error) && observer.fault(exchange.route, error, exchange)),
    exchange.giveUp,
  );
  // Node joins repeated headers with a comma. No key contains a comma, so a repeated key header is not valid.
  const caller = await deadline.of(
    partners.until(signal).authenticate(exchange.request.headers['x-api-key'] as string | undefined),
  );
  exchange.keyId = caller.keyId;
  exchange.partnerId = caller.partnerId;
  exchange.lease.belongTo(caller.partnerId);
  let end: (() => void) | undefined;
  let work: Promise<unknown> | undefined;
  try {
    if (route.scope !== 'any') requireScope(caller, route.scope);
    // Before everything that is expensive, or that costs the partner a call of its rate.
    end = calls.begin(caller.partnerId);
    // The operation itself counts rotations, because replays do not count. Requests to rotate have a separate
    // limit.
    const rateClass = route.rateClass === 'rotation' ? 'rotation_calls' : route.rateClass;
    const digest = partners.admit(caller, rateClass, () =>
      partners.checkSignature(caller, {
        method: exchange.request.method!,
        target: exchange.request.url!,
        hasBody:
          declaredLength(exchange.request) > 0 || exchange.request.headers['transfer-encoding'] !== undefined,
        field: (name) => exchange.request.headers[name] as string | undefined,
      }),
    );
    refuseForTest(caller.testAnswer);
    if (route.body?.kind === 'form') {
      // A call that waits for the bytes of a file does no work. Concurrent uploads are limited separately.
      end();
      end = undefined;
    }
    const inTime: Run = (call) => {
      const response =
        caller.testAnswer === 'slow'
          ? slow.wait(exchange, caller.partnerId).then(() => run(call))
          : run(call);
      if (!(response instanceof Promise)) return response;
      work = response;
      // The function limits its steps itself if it reads a streamed body.
      return route.body?.kind === 'form' ? response : deadline.of(response, discard);
    };
    const response = await runChecked(route, inTime, exchange, params, {
      caller,
      signal,
      digest,
      inTime: (step, late) => deadline.of(step, late),
    });
    // Free operations are metered here. Billed operations are counted by their charge (rule 6.4).
    if (route.billed === undefined && response.kind !== 'error') partners.meter(caller, id);
    return response;
  } finally {
    // Work that is given up runs on until its next step.
    if (work === undefined) end?.();
    else if (end !== undefined) work.then(end, end);
    if (!exchange.gone) await quotaHeaders(partners, observer, exchange, caller);
  }
}

/** Frees the resources of a response that arrived after its deadline. */
function discard(response: Response): void {
  if (response.kind === 'stream') response.stream.destroy();
}

/**
 * Sets the headers of rules 6.9 and 6.16, on error responses too. Reads the quota last, so that it includes
 * this call.
 */
async function quotaHeaders(
  partners: PartnerGuard,
  observer: Observer,
  exchange: Exchange,
  caller: Caller,
): Promise<void> {
  const rate = partners.rate(caller);
  Object.assign(exchange.headers, limitHeaders(caller.plan, rate));
  try {
    const quota = partners.quota(caller);
    const facts =
      quota instanceof Promise
        ? await new Deadline(exchange.limits.quotaMs, (error) => observer.fault('quota', error, exchange)).of(
            quota,
          )
        : quota;
    Object.assign(exchange.headers, limitHeaders(caller.plan, rate, facts));
  } catch (error) {
    // The call has taken effect, so an unreadable counter must not lose the response.
    observer.fault('quota', error, exchange);
  }
}

async function runChecked(
  route: Route,
  run: Run,
  exchange: Exchange,
  params: unknown,
  {
    caller,
    signal,
    digest,
    inTime = (step) => step,
  }: {
    readonly caller?: Caller;
    readonly signal: AbortSignal;
    readonly digest?: ContentDigest | undefined;
    readonly inTime?: InTime;
  },
): Promise<Response> {
  const { request } = exchange;
  const { body, auth } = route;
  if (body !== undefined && body.kind !== 'none') {
    checkMediaType(request, body);
    checkDeclaredLength(body, exchange);
  }
  const call = (json: unknown): AnyCall => ({
    exchange,
    caller,
    signal,
    digest,
    inTime,
    params: route.params && checkParams(route.params, request.url!, params),
    query: checkQuery(route, request.url!),
    headers: route.headers && check(route.headers, singleHeaders(request.headers, route.headers), 'header'),
    body: json,
  });
  // Read the whole body before the call has any effect, because its end may be malformed.
  if (body === undefined ? auth === 'key' || auth === 'bearer' : body.kind === 'none')
    await expectNoBody(exchange);
  if (body?.kind !== 'json') return run(call(undefined));
  const read = readBody(exchange, body.maxBytes);
  const bytes = read instanceof Promise ? await read : read;
  if (digest !== undefined && !digestHolds(digest, bytes)) throw bodyNotSigned();
  return run(call(check(body.schema, bytes.length === 0 && !body.required ? {} : parseJson(bytes), 'body')));
}

/** @throws DomainError `payload_too_large` for a declared length beyond what any call of the route may send */
function checkDeclaredLength(
  body: Exclude<RouteBody, { kind: 'none' }>,
  { request, limits }: Exchange,
): void {
  const declared = declaredLength(request);
  if (body.kind === 'slot') {
    // The slot may allow less. It is read later.
    const largest = Math.max(MAX_UPLOAD_BYTES, limits.largeBytes);
    if (declared > largest + FORM_BYTES) throw fileTooLarge(largest);
    return;
  }
  // The query of an issuing decides whether its audio may be large. It is read later.
  const more = body.kind === 'issuing' ? Math.max(0, limits.largeBytes - body.audioBytes) : 0;
  if (declared > body.maxBytes + more)
    throw body.kind === 'form' ? fileTooLarge(body.fileBytes) : tooLarge(body.maxBytes);
}

/** Rejects a body on a route that has none. A chunked body may still be empty. */
async function expectNoBody(exchange: Exchange): Promise<void> {
  const unexpected = () =>
    new DomainError('invalid_request', 'This call does not accept a body.', { reason: 'invalid_member' });
  if (declaredLength(exchange.request) > 0) throw unexpected();
  if (exchange.request.headers['transfer-encoding'] === undefined) return;
  try {
    await readBody(exchange, 0);
  } catch (error) {
    throw error instanceof DomainError && error.code === 'payload_too_large' ? unexpected() : error;
  }
}

/**
 * Checks the query of a route. A route without a query rejects every parameter if its caller authenticates,
 * and ignores the query otherwise (rule 2.8).
 */
function checkQuery({ query, auth }: Route, target: string): unknown {
  if (query === undefined && auth !== 'key' && auth !== 'bearer') return undefined;
  return check(query ?? NO_PARAMETERS, parseQuery(target), 'query');
}

/**
 * Rejects escapes in the path (rule 2.15). Identifiers need no escapes, so an escape would be a second
 * spelling.
 */
function checkParams(schema: RequestSchema, target: string, params: unknown): unknown {
  const path = target.split('?', 1)[0]!;
  if (path.includes('%'))
    throw new DomainError('invalid_request', 'An identifier in the path is malformed.', {
      reason: 'invalid_member',
    });
  return check(schema, params, 'path');
}

function singleHeaders(
  headers: Exchange['request']['headers'],
  schema: RequestSchema,
): Record<string, unknown> {
  return Object.fromEntries(
    Object.keys(schema.shape).flatMap((name) => (headers[name] === undefined ? [] : [[name, headers[name]]])),
  );
}

function check(schema: RequestSchema, value: unknown, part: RequestPart): unknown {
  const result = validate(schema, value, part);
  if ('problem' in result)
    throw new DomainError('invalid_request', result.problem, { reason: 'invalid_member' });
  return result.value;
}

/** Checks `Authorization: Bearer <token>` in constant time. */
export function bearerGuard(tokens: readonly string[]): BearerGuard {
  const expected = tokens.map((token) => createHash('sha256').update(`Bearer ${token}`).digest());
  return (request) => {
    const given = createHash('sha256')
      .update(request.headers.authorization ?? '')
      .digest();
    // Node keeps only the first of several Authorization headers.
    if (
      !expected.some((token) => timingSafeEqual(given, token)) ||
      countHeader(request, 'authorization') !== 1
    )
      throw new DomainError('forbidden', 'The token in the header `Authorization` is missing or not valid.');
  };
}
