import { createHash, timingSafeEqual } from 'node:crypto';
import { defined } from '../../../core/domain/defined.js';
import { DomainError } from '../../../core/domain/errors.js';
import type { BodySchema, KeyRoute, Route } from '../../contract/route.js';
import { FORM_BYTES } from '../../contract/routes/partner-routes.js';
import { NO_PARAMETERS, type RequestPart, type RequestSchema, validate } from '../../contract/validation.js';
import { type ContentDigest, digestHolds } from '../../domain/message-signature.js';
import type { NamedToken } from '../../domain/operator-token.js';
import { MAX_UPLOAD_BYTES } from '../../domain/upload.js';
import type { CallSignal } from '../../operations/attributed.js';
import { type Caller, requireScope } from '../../operations/caller.js';
import type { PartnerOperations } from '../../operations/operations.js';
import { bodyNotSigned, fileTooLarge, readBody, tooLarge } from '../body/body-reader.js';
import { parseJson } from '../body/json-text.js';
import { checkMediaType, declaredLength, mustBeEmpty, notJson } from '../body/media-type.js';
import { parseQuery } from '../body/query.js';
import type { Exchange } from '../exchange.js';
import type { Response } from '../response/response.js';
import { countHeader } from './http-grammar.js';
import type { RunningCalls } from './running-calls.js';

/** Limits a step by the time of its call. See `Call.inTime`. */
export type InTime = <Value>(step: Promise<Value>, discard?: (value: Value) => void) => Promise<Value>;

/** A call of any route, without the route's own types. The checks fill in what the route's function gets. */
export interface AnyCall {
  readonly exchange: Exchange;
  readonly route: Route;
  readonly caller: Caller | undefined;
  readonly signal: AbortSignal;
  readonly inTime: InTime;
  digest: ContentDigest | undefined;
  /** The parameters of the path, as they were sent. `checkParameters` checks them. */
  params: unknown;
  query: unknown;
  headers: unknown;
  body: unknown;
}

/** A call whose key was checked. */
export interface KeyCall extends AnyCall {
  readonly route: KeyRoute;
  readonly caller: Caller;
  /** Records that the work of the call has ended. Undefined if the call does not count as running. */
  endRunning: (() => void) | undefined;
}

export type Run = (call: AnyCall) => Response | Promise<Response>;
/** A check of a call. It throws the error of the call. */
export type Check<Checked extends AnyCall = AnyCall> = (call: Checked) => void | Promise<void>;
export type KeyCheck = Check<KeyCall>;

/** The operations that check partners' keys and enforce their limits. */
export type PartnerGuard = Pick<
  PartnerOperations,
  'checkSignature' | 'admit' | 'rate' | 'quota' | 'meter'
> & {
  until(signal: AbortSignal): Pick<PartnerOperations, 'authenticate'>;
};

/** Runs checks one after the other. The first that fails determines the response. */
export async function runChecks<Checked extends AnyCall>(
  checks: readonly Check<Checked>[],
  call: Checked,
): Promise<void> {
  for (const check of checks) {
    const waits = check(call);
    if (waits !== undefined) await waits;
  }
}

/**
 * The checks of every call, in the order of rule 3.1. The whole body is read before the call has any effect, because
 * its end may be malformed.
 */
export const COMMON_CHECKS: readonly Check[] = [
  checkBodyType,
  checkSize,
  expectNoBody,
  readJson,
  checkParameters,
];

/** Returns the checks of a call whose key was authenticated, in the order of rule 3.1. */
export function keyChecks(
  partners: PartnerGuard,
  calls: RunningCalls,
  forced: readonly KeyCheck[],
): readonly KeyCheck[] {
  return [checkScope, countRunning(calls), checkRateAndSignature(partners), ...forced, ...COMMON_CHECKS];
}

function checkScope({ route, caller }: KeyCall): void {
  if (route.scope !== 'any') requireScope(caller, route.scope);
}

/**
 * Returns the check of rule 6.19. It precedes everything that is expensive, or that costs the partner a call of its
 * rate.
 */
function countRunning(calls: RunningCalls): KeyCheck {
  return (call) => {
    const end = calls.begin(call.caller.partnerId);
    // A call that waits for the bytes of a file does no work. Concurrent uploads are limited separately.
    if (call.route.body?.kind === 'form') end();
    else call.endRunning = end;
  };
}

function checkRateAndSignature(partners: PartnerGuard): KeyCheck {
  return (call) => {
    const { caller, route } = call;
    const { request } = call.exchange;
    // The operation itself counts rotations, because replays do not count. Requests to rotate have a separate
    // limit.
    const rateClass = route.rateClass === 'rotation' ? 'rotation_calls' : route.rateClass;
    call.digest = partners.admit(caller, rateClass, () =>
      partners.checkSignature(caller, {
        method: request.method!,
        target: request.url!,
        hasBody: declaredLength(request) > 0 || request.headers['transfer-encoding'] !== undefined,
        field: (name) => request.headers[name] as string | undefined,
      }),
    );
  };
}

/**
 * Returns the check of `Authorization: Bearer <token>`, in constant time. It records the name of the token, if it has
 * one, for the log and for audit entries.
 */
export function bearerGuard(tokens: readonly string[], named: readonly NamedToken[] = []): Check {
  const accepted = [...tokens.map((token) => ({ name: undefined, token })), ...named];
  const expected = accepted.map(({ name, token }) => ({
    name,
    digest: createHash('sha256').update(`Bearer ${token}`).digest(),
  }));
  return ({ exchange: { request, log }, signal }) => {
    const given = createHash('sha256')
      .update(request.headers.authorization ?? '')
      .digest();
    // Node keeps only the first of several Authorization headers.
    const [found] = expected.filter(({ digest }) => timingSafeEqual(given, digest));
    if (found === undefined || countHeader(request, 'authorization') !== 1)
      throw new DomainError('forbidden', 'The token in the header `Authorization` is missing or not valid.');
    log.operator = found.name;
    Object.assign(signal, defined({ operator: found.name }) satisfies Partial<CallSignal>);
  };
}

function checkBodyType({ route: { body }, exchange }: AnyCall): void | Promise<void> {
  if (body === undefined || body.kind === 'none') return;
  checkMediaType(exchange.request, body);
  if (mustBeEmpty(exchange.request, body)) return expectEmpty(exchange, notJson);
}

/** @throws DomainError `payload_too_large` for a declared length beyond what any call of the route may send */
function checkSize({ route: { body }, exchange: { request, limits } }: AnyCall): void {
  if (body === undefined || body.kind === 'none') return;
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
function expectNoBody({ route: { body, auth }, exchange }: AnyCall): void | Promise<void> {
  const isExpected = body === undefined ? auth !== 'key' && auth !== 'bearer' : body.kind !== 'none';
  if (isExpected) return;
  if (declaredLength(exchange.request) > 0) throw unexpectedBody();
  if (exchange.request.headers['transfer-encoding'] === undefined) return;
  return expectEmpty(exchange, unexpectedBody);
}

/** @param refusal returns the error of a body that is not empty */
async function expectEmpty(exchange: Exchange, refusal: () => DomainError): Promise<void> {
  try {
    await readBody(exchange, 0);
  } catch (error) {
    throw error instanceof DomainError && error.code === 'payload_too_large' ? refusal() : error;
  }
}

function unexpectedBody(): DomainError {
  return new DomainError('invalid_request', 'This call does not accept a body.', {
    reason: 'invalid_member',
  });
}

function readJson(call: AnyCall): void | Promise<void> {
  const { body } = call.route;
  if (body?.kind !== 'json') return;
  const accept = (bytes: Buffer): void => {
    if (call.digest !== undefined && !digestHolds(call.digest, bytes)) throw bodyNotSigned();
    call.body = check(body.schema, bytes.length === 0 && !body.required ? {} : parseJson(bytes), 'body');
  };
  const read = readBody(call.exchange, body.maxBytes);
  return read instanceof Promise ? read.then(accept) : accept(read);
}

/** Checks path, query and headers. */
function checkParameters(call: AnyCall): void {
  const { route } = call;
  const { url, headers } = call.exchange.request;
  call.params = route.params && checkPath(route.params, url!, call.params);
  call.query = checkQuery(route, url!);
  call.headers = route.headers && check(route.headers, singleHeaders(headers, route.headers), 'header');
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
function checkPath(schema: RequestSchema, target: string, params: unknown): unknown {
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

function check(schema: BodySchema, value: unknown, part: RequestPart): unknown {
  const result = validate(schema, value, part);
  if ('problem' in result)
    throw new DomainError('invalid_request', result.problem, { reason: 'invalid_member' });
  return result.value;
}
