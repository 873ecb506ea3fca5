import { createHash, timingSafeEqual } from 'node:crypto';
import type { Route } from '../../contract/route.js';
import { ROUTES, type RouteIdOf } from '../../contract/routes/routes.js';
import { type RequestSchema, type RouteInput, validate } from '../../contract/validation.js';
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
import type { Answer } from '../response/response.js';
import { Deadline } from './deadline.js';
import { countHeader } from './http-grammar.js';

/** What an endpoint gets: everything checked, in the shape the path table gives. */
export interface Call<R extends Route> extends RouteInput<R> {
  readonly exchange: Exchange;
  readonly caller: R['auth'] extends 'key' ? Caller : undefined;
}

/** One function for each row of the table, checked by the compiler to be complete. */
export type Endpoints<Listener extends Route['listener']> = {
  readonly [Id in RouteIdOf<Listener>]: (call: Call<(typeof ROUTES)[Id]>) => Answer | Promise<Answer>;
};

/** A row and its function, as the listener runs it. */
export interface Endpoint {
  readonly id: string;
  readonly route: Route;
  readonly run: (call: Call<Route>) => Answer | Promise<Answer>;
}

/**
 * Joins the table's rows of one listener, in the table's order, with their functions; a row without one is
 * not there.
 */
export function joinEndpoints<Listener extends Route['listener']>(
  listener: Listener,
  endpoints: Partial<Endpoints<Listener>>,
): readonly Endpoint[] {
  const run = endpoints as unknown as Readonly<Record<string, Endpoint['run']>>;
  return Object.entries(ROUTES)
    .filter(([id, route]) => route.listener === listener && Object.hasOwn(run, id))
    .map(([id, route]) => ({ id, route, run: run[id]! }));
}

/** How a listener recognises its callers. */
export interface Gate {
  readonly observer: Observer;
  /** Where partners' keys are checked, and their limits kept. */
  readonly partners?: Pick<
    PartnerOperations,
    'authenticate' | 'checkSignature' | 'admit' | 'quota' | 'meter'
  >;
  readonly bearer?: (request: Exchange['request']) => void;
}

/**
 * Runs one call. "Order of checks: HTTP grammar, route 404, method 405, key 403, rate and quota 429, media
 * type 415, size 413, body, query and path 400, existence 404, state 409."
 * @param params the path's parameters, decoded
 */
export async function runEndpoint(
  endpoint: Endpoint,
  gate: Gate,
  exchange: Exchange,
  params: unknown,
): Promise<Answer> {
  const { auth } = endpoint.route;
  if (auth === 'key') return runForPartner(endpoint, gate, exchange, params);
  if (auth === 'bearer') gate.bearer!(exchange.request);
  return runChecked(endpoint, exchange, params, undefined);
}

async function runForPartner(
  endpoint: Endpoint,
  gate: Gate,
  exchange: Exchange,
  params: unknown,
): Promise<Answer> {
  const { id, route } = endpoint;
  const partners = gate.partners!;
  const patience = new Deadline(
    exchange.limits.answerMs,
    (error) => void (isFault(error) && gate.observer.fault(exchange.route, error)),
  );
  // Node joins repeated headers with a comma, which no key holds: sent twice is not valid.
  const caller = await patience.of(
    partners.authenticate(exchange.request.headers['x-api-key'] as string | undefined),
  );
  exchange.keyId = caller.keyId;
  exchange.lease.belongTo(caller.partnerId);
  try {
    if (route.scope !== undefined) requireScope(caller, route.scope);
    const digest = partners.checkSignature(caller, {
      method: exchange.request.method!,
      target: exchange.request.url!,
      hasBody:
        declaredLength(exchange.request) > 0 || exchange.request.headers['transfer-encoding'] !== undefined,
      field: (name) => exchange.request.headers[name] as string | undefined,
    });
    // The rotation lane is the operation's to spend: "replays do not spend the rotation lane". The calls
    // themselves have a bound.
    if (route.lane !== 'none')
      partners.admit(caller, route.lane === 'rotation' ? 'rotation_calls' : route.lane);
    const run: Endpoint['run'] = (call) => {
      const answer = endpoint.run(call);
      return answer instanceof Promise ? patience.of(answer, discard) : answer;
    };
    const answer = await runChecked({ ...endpoint, run }, exchange, params, caller, digest);
    // "The quota counts verify and identify; everything else is metered per day but free."
    if (route.billed === undefined && answer.kind !== 'refusal') partners.meter(caller, id);
    return answer;
  } finally {
    await quotaHeaders(gate, exchange, caller);
  }
}

/** Frees what an answer holds that nobody waits for any more. */
function discard(answer: Answer): void {
  if (answer.kind === 'stream') answer.stream.destroy();
}

/**
 * "All three `X-RateLimit-*` headers are on every partner-scoped response", refusals included; read last, so
 * that the call itself is counted.
 */
async function quotaHeaders({ partners, observer }: Gate, exchange: Exchange, caller: Caller): Promise<void> {
  try {
    const { limit, remaining, reset } = await new Deadline(exchange.limits.quotaMs, (error) =>
      observer.fault('quota', error),
    ).of(partners!.quota(caller));
    Object.assign(exchange.headers, {
      'X-RateLimit-Limit': String(limit),
      'X-RateLimit-Remaining': String(remaining),
      'X-RateLimit-Reset': String(reset),
    });
  } catch (error) {
    // The call has been done: its answer must not be lost because a counter cannot be read.
    observer.fault('quota', error);
  }
}

async function runChecked(
  { route, run }: Endpoint,
  exchange: Exchange,
  params: unknown,
  caller: Caller | undefined,
  digest?: ContentDigest,
): Promise<Answer> {
  const { request } = exchange;
  const { body, auth } = route;
  if (body !== undefined && body.kind !== 'none') {
    checkMediaType(request, body);
    if (declaredLength(request) > body.maxBytes) throw tooLarge(body.maxBytes);
  }
  const call = (json: unknown): Call<Route> => ({
    exchange,
    caller: caller as undefined,
    params: (route.params && checkParams(route.params, request.url!, params)) as undefined,
    query: checkQuery(route, request.url!) as undefined,
    headers: (route.headers &&
      check(route.headers, singleHeaders(request.headers, route.headers))) as undefined,
    body: json as undefined,
  });
  // Read to its end before anything is done: what turns out to be malformed must have had no effect.
  if (body === undefined ? auth === 'key' || auth === 'bearer' : body.kind === 'none')
    await refuseBody(exchange);
  if (body?.kind !== 'json') return run(call(undefined));
  const read = readBody(exchange, body.maxBytes);
  const bytes = read instanceof Promise ? await read : read;
  if (digest !== undefined && !digestHolds(digest, bytes))
    throw new DomainError('forbidden', 'The body is not the one that was signed.', {
      reason: 'signature_invalid',
    });
  return run(call(check(body.schema, bytes.length === 0 && !body.required ? {} : parseJson(bytes))));
}

/** "No body": a chunked one may still turn out to be empty. */
async function refuseBody(exchange: Exchange): Promise<void> {
  const refusal = () =>
    new DomainError('invalid_request', 'This call has no body.', { reason: 'invalid_member' });
  if (declaredLength(exchange.request) > 0) throw refusal();
  if (exchange.request.headers['transfer-encoding'] === undefined) return;
  try {
    await readBody(exchange, 0);
  } catch (error) {
    throw error instanceof DomainError && error.code === 'payload_too_large' ? refusal() : error;
  }
}

/**
 * "Requests are strict": where a caller is known, a query that the row does not have holds unknown members.
 */
function checkQuery({ query, auth }: Route, target: string): unknown {
  if (query !== undefined) return check(query, parseQuery(target));
  if ((auth === 'key' || auth === 'bearer') && Object.keys(parseQuery(target)).length > 0) {
    throw new DomainError('invalid_request', 'This call has no query parameters.', {
      reason: 'invalid_member',
    });
  }
  return undefined;
}

/** Identifiers hold nothing that needs an escape, so an escaped one is a second spelling: 400. */
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

/** "Requests are strict (an unknown member is 400)." */
function check(schema: RequestSchema, value: unknown): unknown {
  const result = validate(schema, value);
  if ('problem' in result)
    throw new DomainError('invalid_request', result.problem, { reason: 'invalid_member' });
  return result.value;
}

function forbidden(): DomainError {
  return new DomainError('forbidden', 'The key is missing or not valid for this action.');
}

/** Checks `Authorization: Bearer <token>` in constant time. */
export function bearerGate(tokens: readonly string[]): (request: Exchange['request']) => void {
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
      throw forbidden();
  };
}
