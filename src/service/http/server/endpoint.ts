import { isRouteOf, type KeyRoute, type OpenRoute, type Route } from '../../contract/route.js';
import { ROUTES, type RouteIdOf } from '../../contract/routes/routes.js';
import type { ResponseBodyOf, RouteInput } from '../../contract/validation.js';
import type { ContentDigest } from '../../domain/message-signature.js';
import { monthEnd } from '../../domain/usage-window.js';
import type { CallSignal } from '../../operations/attributed.js';
import type { Caller } from '../../operations/caller.js';
import type { Observer } from '../../ports/observer.js';
import type { Exchange } from '../exchange.js';
import { isFault } from '../response/error-response.js';
import { limitHeaders } from '../response/limit-headers.js';
import { json, type Response, type ResponseOf } from '../response/response.js';
import {
  type AnyCall,
  type Check,
  COMMON_CHECKS,
  type InTime,
  type KeyCall,
  type KeyCheck,
  keyChecks,
  type PartnerGuard,
  type Run,
  runChecks,
} from './checks.js';
import { Deadline, givenUp } from './deadline.js';
import type { RunningCalls } from './running-calls.js';
import type { TestAnswers } from './test-answers.js';

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
      ) => ResponseBodyOf<(typeof ROUTES)[Id]> | Promise<ResponseBodyOf<(typeof ROUTES)[Id]>>
    : (
        input: Input<(typeof ROUTES)[Id]>,
      ) => ResponseBodyOf<(typeof ROUTES)[Id]> | Promise<ResponseBodyOf<(typeof ROUTES)[Id]>>;
};

/** The operations of any listener, without their own types. */
interface AnyOperations {
  until(signal: AbortSignal): Readonly<Record<string, (...input: unknown[]) => unknown>>;
}

/** A route with its function and the checks that its authentication needs. */
export type Endpoint = { readonly id: string; readonly run: Run } & (
  | {
      readonly auth: 'key';
      readonly route: KeyRoute;
      readonly partners: PartnerGuard;
      /** The checks after the key was authenticated. */
      readonly checks: readonly KeyCheck[];
    }
  | { readonly auth: 'bearer'; readonly route: OpenRoute; readonly authorise: Check }
  | { readonly auth: 'public' | 'form'; readonly route: OpenRoute }
);

interface Guards {
  readonly keys?: {
    readonly partners: PartnerGuard;
    /** The calls of all partners that run. */
    readonly calls: RunningCalls;
    /** What test keys change. Undefined in an environment without test keys. */
    readonly testAnswers: TestAnswers | undefined;
  };
  /** Checks the bearer token of the operator. */
  readonly bearer?: Check;
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
  guards: Guards,
  environment?: string,
): readonly Endpoint[] {
  // The casts lose the types, but the checks validate each call with the schemas of its own route.
  const direct = operations as unknown as AnyOperations;
  const functions = own as unknown as Readonly<Record<string, Run>>;
  const routes = routesOf(listener).filter(([, route]) => isRouteOf(environment, route));
  return routes.map(([id, route]) =>
    guarded({ id, run: functions[id] ?? callDirectly(id, route, direct) }, route, guards),
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
  { keys, bearer }: Guards,
): Endpoint {
  const { auth } = route;
  switch (auth) {
    case 'key':
      if (keys === undefined) break;
      return {
        id: named.id,
        auth,
        route,
        partners: keys.partners,
        checks: keyChecks(keys.partners, keys.calls, keys.testAnswers ? [keys.testAnswers.refuse] : []),
        run: keys.testAnswers?.delayed(named.run) ?? named.run,
      };
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
 * @param params the path's parameters, as they were sent
 */
export async function runEndpoint(
  endpoint: Endpoint,
  observer: Observer,
  exchange: Exchange,
  params: unknown,
): Promise<Response> {
  if (endpoint.auth === 'key') return runForPartner(endpoint, observer, exchange, params);
  const { route, run } = endpoint;
  const signal = exchange.gone;
  const call: AnyCall = {
    ...UNCHECKED,
    exchange,
    route,
    caller: undefined,
    signal,
    inTime: (step) => step,
    params,
  };
  if (endpoint.auth === 'bearer') await endpoint.authorise(call);
  await runChecks(COMMON_CHECKS, call);
  return run(call);
}

/** What the checks of a call fill in. */
const UNCHECKED = { digest: undefined, query: undefined, headers: undefined, body: undefined };

async function runForPartner(
  { id, route, run, partners, checks }: Extract<Endpoint, { auth: 'key' }>,
  observer: Observer,
  exchange: Exchange,
  params: unknown,
): Promise<Response> {
  const { gone, log, request, limits } = exchange;
  const end = new AbortController();
  Object.assign(end.signal, { requestId: log.requestId } satisfies Partial<CallSignal>);
  const giveUp = (): void => end.abort(givenUp());
  if (gone.aborted) giveUp();
  else gone.addEventListener('abort', giveUp);
  const deadline = new Deadline(
    limits.callMs,
    (error) => void (isFault(error) && observer.fault(log.route, error, log)),
    giveUp,
  );
  // Node joins repeated headers with a comma. No key contains a comma, so a repeated key header is not valid.
  const caller = await deadline.of(
    partners.until(end.signal).authenticate(request.headers['x-api-key'] as string | undefined),
  );
  log.keyId = caller.keyId;
  log.partnerId = caller.partnerId;
  exchange.lease.belongTo(caller.partnerId);
  const call: KeyCall = {
    ...UNCHECKED,
    exchange,
    route,
    caller,
    signal: end.signal,
    inTime: (step, late) => deadline.of(step, late),
    params,
    endRunning: undefined,
  };
  let work: Response | Promise<Response> | undefined;
  try {
    await runChecks(checks, call);
    work = run(call);
    // The function limits its steps itself if it reads a streamed body.
    const isLimited = work instanceof Promise && route.body?.kind !== 'form';
    const response = await (isLimited ? deadline.of(work as Promise<Response>, discard) : work);
    // Free operations are metered here. Billed operations are counted by their charge (rule 6.4).
    if (route.billed === undefined && response.kind !== 'error') partners.meter(caller, id);
    return response;
  } finally {
    // Work that is given up runs on until its next step.
    const { endRunning } = call;
    if (endRunning !== undefined) Promise.resolve(work).then(endRunning, endRunning);
    if (!gone.aborted) await quotaHeaders(partners, observer, exchange, caller);
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
  let facts: Parameters<typeof limitHeaders>[2];
  try {
    const quota = partners.quota(caller);
    facts =
      quota instanceof Promise
        ? await new Deadline(exchange.limits.quotaMs, (error) =>
            observer.fault('quota', error, exchange.log),
          ).of(quota)
        : quota;
  } catch (error) {
    // The call has taken effect, so an unreadable counter must not lose the response.
    observer.fault('quota', error, exchange.log);
    facts = { limit: caller.plan.monthlyQuota, reset: monthEnd(Date.now() / 1000) };
  }
  Object.assign(exchange.headers, limitHeaders(caller.plan, rate, facts));
}
