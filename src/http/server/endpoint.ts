import { createHash, timingSafeEqual } from 'node:crypto';
import type { KeyRoute, OpenRoute, Route } from '../../contract/route.js';
import { ROUTES, type RouteIdOf } from '../../contract/routes/routes.js';
import {
  type RequestSchema,
  type RouteInput,
  type RouteOutput,
  validate,
} from '../../contract/validation.js';
import { DomainError } from '../../domain/errors.js';
import { type ContentDigest, digestHolds } from '../../domain/message-signature.js';
import { type Caller, requireScope } from '../../operations/caller.js';
import type { PartnerOperations } from '../../operations/operations.js';
import type { Observer } from '../../ports/observer.js';
import { readBody, tooLarge } from '../body/body-reader.js';
import { parseJson } from '../body/json-text.js';
import { checkMediaType, declaredLength } from '../body/media-type.js';
import { parseQuery } from '../body/query.js';
import type { Exchange } from '../exchange.js';
import { isFault } from '../response/error-response.js';
import { json, type Response, type ResponseOf } from '../response/response.js';
import { Deadline } from './deadline.js';
import { countHeader } from './http-grammar.js';
import { refuseForTest, SlowAnswers } from './test-answers.js';

/** A call as an endpoint gets it: everything checked, in the shape that the path table gives. */
export interface Call<R extends Route> extends RouteInput<R> {
  readonly exchange: Exchange;
  readonly caller: R['auth'] extends 'key' ? Caller : undefined;
}

/**
 * A function for each route of a listener. The compiler checks that none lacks, and that each response fits
 * the route's schema for its status.
 */
export type Endpoints<Listener extends Route['listener']> = {
  readonly [Id in RouteIdOf<Listener>]: (
    call: Call<(typeof ROUTES)[Id]>,
  ) => ResponseOf<(typeof ROUTES)[Id]> | Promise<ResponseOf<(typeof ROUTES)[Id]>>;
};

type Member<Value> = Value extends object ? Value : unknown;
/** Members of path, query and JSON body in one object. */
type Input<R extends Route> = Member<RouteInput<R>['params']> &
  Member<RouteInput<R>['query']> &
  Member<RouteInput<R>['body']>;
type BodyOf<R extends Route> = {
  [Status in keyof RouteOutput<R>]: RouteOutput<R>[Status] extends { readonly body: infer Body }
    ? Body
    : never;
}[keyof RouteOutput<R>];

/**
 * Operations that are called without a function of their own: the operation has its route's name, takes the
 * caller (where there is one) and all input in one object, and returns the body of the route's one JSON
 * response.
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

/** A call of any route. */
interface AnyCall {
  readonly exchange: Exchange;
  readonly caller: Caller | undefined;
  readonly params: unknown;
  readonly query: unknown;
  readonly headers: unknown;
  readonly body: unknown;
}

type Run = (call: AnyCall) => Response | Promise<Response>;

/** The part of the operations that checks partners' keys, and keeps their limits. */
type PartnerGuard = Pick<PartnerOperations, 'authenticate' | 'checkSignature' | 'admit' | 'quota' | 'meter'>;

/** The guard of partners' keys, with the calls of slow test keys that wait in the listener. */
interface KeyGuard {
  readonly partners: PartnerGuard;
  readonly slow: SlowAnswers;
}
/** Throws `forbidden` for a request without a bearer token of the operator's. */
type BearerGuard = (request: Exchange['request']) => void;

/** A route with its function, and with the guard that its kind of authentication needs. */
export type Endpoint = { readonly id: string; readonly run: Run } & (
  | { readonly auth: 'key'; readonly route: KeyRoute; readonly keys: KeyGuard }
  | { readonly auth: 'bearer'; readonly route: OpenRoute; readonly authorise: BearerGuard }
  | { readonly auth: 'public' | 'form'; readonly route: OpenRoute }
);

interface Guards {
  readonly partners?: PartnerGuard;
  readonly bearer?: BearerGuard;
}

/**
 * Every route of a listener, in the table's order, with its guard: with its own function, or else with the
 * operation of its name.
 * @param environment routes of other environments are left out
 */
export function joinEndpoints<Listener extends Route['listener'], Own extends Partial<Endpoints<Listener>>>(
  listener: Listener,
  own: Own,
  operations: Omit<DirectOperations<Listener>, keyof Own>,
  guards: Guards,
  environment?: string,
): readonly Endpoint[] {
  // The types of functions and operations are lost here, and hold by construction: `runChecked` makes each
  // call by the schemas of its own route.
  const direct = operations as unknown as Readonly<Record<string, (...input: unknown[]) => unknown>>;
  const functions = own as unknown as Readonly<Record<string, Run>>;
  const { partners, bearer } = guards;
  const keys = partners && { partners, slow: new SlowAnswers() };
  const routes = routesOf(listener).filter(
    ([, { environments }]) => environments?.some((name) => name === environment) ?? true,
  );
  return routes.map(([id, route]) =>
    guarded({ id, run: functions[id] ?? callDirectly(id, route, direct) }, route, { keys, bearer }),
  );
}

/** Routes of a listener that have a function of their own, without the others. */
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

function callDirectly(
  id: string,
  { auth, responses }: Route,
  operations: Readonly<Record<string, (...input: unknown[]) => unknown>>,
): Run {
  const [status, ...others] = Object.keys(responses).map(Number);
  if (status === undefined || others.length > 0)
    throw new Error(`the route ${id} needs a function of its own`);
  return async ({ caller, params, query, body }) => {
    const input = { ...(params as object), ...(query as object), ...(body as object) };
    return json(status, await (auth === 'key' ? operations[id]!(caller, input) : operations[id]!(input)));
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
  throw new Error(`nothing guards the route ${named.id}`);
}

/**
 * Runs one call, with the checks in the order of rule 3.1.
 * @param params the path's parameters, decoded
 */
export async function runEndpoint(
  endpoint: Endpoint,
  observer: Observer,
  exchange: Exchange,
  params: unknown,
): Promise<Response> {
  if (endpoint.auth === 'key') return runForPartner(endpoint, observer, exchange, params);
  if (endpoint.auth === 'bearer') endpoint.authorise(exchange.request);
  return runChecked(endpoint.route, endpoint.run, exchange, params, undefined);
}

async function runForPartner(
  { id, route, run, keys: { partners, slow } }: Extract<Endpoint, { auth: 'key' }>,
  observer: Observer,
  exchange: Exchange,
  params: unknown,
): Promise<Response> {
  const deadline = new Deadline(
    exchange.limits.callMs,
    (error) => void (isFault(error) && observer.fault(exchange.route, error)),
  );
  // Node joins repeated headers with a comma, which no key holds: sent twice is not valid.
  const caller = await deadline.of(
    partners.authenticate(exchange.request.headers['x-api-key'] as string | undefined),
  );
  exchange.keyId = caller.keyId;
  exchange.lease.belongTo(caller.partnerId);
  try {
    if (route.scope !== 'any') requireScope(caller, route.scope);
    const digest = partners.checkSignature(caller, {
      method: exchange.request.method!,
      target: exchange.request.url!,
      hasBody:
        declaredLength(exchange.request) > 0 || exchange.request.headers['transfer-encoding'] !== undefined,
      field: (name) => exchange.request.headers[name] as string | undefined,
    });
    // The operation spends the rate of rotations, because replays do not. Requests to rotate have a bound of
    // their own.
    partners.admit(caller, route.rateClass === 'rotation' ? 'rotation_calls' : route.rateClass);
    refuseForTest(caller.testAnswer);
    const inTime: Run = (call) => {
      const response = caller.testAnswer === 'slow' ? slow.wait(exchange).then(() => run(call)) : run(call);
      return response instanceof Promise ? deadline.of(response, discard) : response;
    };
    const response = await runChecked(route, inTime, exchange, params, caller, digest);
    // Free operations are metered, billed ones are counted by their charge (rule 6.4).
    if (route.billed === undefined && response.kind !== 'error') partners.meter(caller, id);
    return response;
  } finally {
    await quotaHeaders(partners, observer, exchange, caller);
  }
}

/** Frees the resources of a response that nobody waits for any more. */
function discard(response: Response): void {
  if (response.kind === 'stream') response.stream.destroy();
}

/** Sets the headers of rule 6.9, also of an error; read last, so that the call itself is counted. */
async function quotaHeaders(
  partners: PartnerGuard,
  observer: Observer,
  exchange: Exchange,
  caller: Caller,
): Promise<void> {
  try {
    const quota = partners.quota(caller);
    const { limit, remaining, reset } =
      quota instanceof Promise
        ? await new Deadline(exchange.limits.quotaMs, (error) => observer.fault('quota', error)).of(quota)
        : quota;
    Object.assign(exchange.headers, {
      'X-RateLimit-Limit': String(limit),
      'X-RateLimit-Remaining': String(remaining),
      'X-RateLimit-Reset': String(reset),
    });
  } catch (error) {
    // The call has been done: its response must not be lost because a counter cannot be read.
    observer.fault('quota', error);
  }
}

async function runChecked(
  route: Route,
  run: Run,
  exchange: Exchange,
  params: unknown,
  caller: Caller | undefined,
  digest?: ContentDigest,
): Promise<Response> {
  const { request } = exchange;
  const { body, auth } = route;
  if (body !== undefined && body.kind !== 'none') {
    checkMediaType(request, body);
    if (declaredLength(request) > body.maxBytes) throw tooLarge(body.maxBytes);
  }
  const call = (json: unknown): AnyCall => ({
    exchange,
    caller,
    params: route.params && checkParams(route.params, request.url!, params),
    query: checkQuery(route, request.url!),
    headers: route.headers && check(route.headers, singleHeaders(request.headers, route.headers)),
    body: json,
  });
  // Read to its end before anything is done: a body that turns out to be malformed must have had no effect.
  if (body === undefined ? auth === 'key' || auth === 'bearer' : body.kind === 'none')
    await expectNoBody(exchange);
  if (body?.kind !== 'json') return run(call(undefined));
  const read = readBody(exchange, body.maxBytes);
  const bytes = read instanceof Promise ? await read : read;
  if (digest !== undefined && !digestHolds(digest, bytes))
    throw new DomainError('forbidden', 'The body is not the one that was signed.', {
      reason: 'signature_invalid',
    });
  return run(call(check(body.schema, bytes.length === 0 && !body.required ? {} : parseJson(bytes))));
}

/** Refuses a body of a route without one; a chunked body may still turn out to be empty. */
async function expectNoBody(exchange: Exchange): Promise<void> {
  const unexpected = () =>
    new DomainError('invalid_request', 'This call has no body.', { reason: 'invalid_member' });
  if (declaredLength(exchange.request) > 0) throw unexpected();
  if (exchange.request.headers['transfer-encoding'] === undefined) return;
  try {
    await readBody(exchange, 0);
  } catch (error) {
    throw error instanceof DomainError && error.code === 'payload_too_large' ? unexpected() : error;
  }
}

/** Rule 2.8: where a caller is known, the query of a route without one holds unknown parameters. */
function checkQuery({ query, auth }: Route, target: string): unknown {
  if (query !== undefined) return check(query, parseQuery(target));
  if ((auth === 'key' || auth === 'bearer') && Object.keys(parseQuery(target)).length > 0) {
    throw new DomainError('invalid_request', 'This call has no query parameters.', {
      reason: 'invalid_member',
    });
  }
  return undefined;
}

/** Rule 2.15: identifiers hold nothing that needs an escape, so an escaped one is a second spelling. */
function checkParams(schema: RequestSchema, target: string, params: unknown): unknown {
  const path = target.split('?', 1)[0]!;
  if (path.includes('%'))
    throw new DomainError('invalid_request', 'An identifier in the path is malformed.', {
      reason: 'invalid_member',
    });
  return check(schema, params);
}

function singleHeaders(
  headers: Exchange['request']['headers'],
  schema: RequestSchema,
): Record<string, unknown> {
  return Object.fromEntries(
    Object.keys(schema.shape).flatMap((name) => (headers[name] === undefined ? [] : [[name, headers[name]]])),
  );
}

function check(schema: RequestSchema, value: unknown): unknown {
  const result = validate(schema, value);
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
    // Node keeps the first of several and drops the others.
    if (
      !expected.some((token) => timingSafeEqual(given, token)) ||
      countHeader(request, 'authorization') !== 1
    )
      throw new DomainError('forbidden', 'The key is missing or not valid for this action.');
  };
}
