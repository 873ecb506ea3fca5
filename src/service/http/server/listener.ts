import {
  createServer as createHttpServer,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import express from 'express';
import { defined } from '../../../core/domain/defined.js';
import { DomainError } from '../../../core/domain/errors.js';
import type { Route } from '../../contract/route.js';
import { noticesOf } from '../../contract/route-headers.js';
import type { Observer, RouteName } from '../../ports/observer.js';
import type { RequestLog } from '../../ports/request-log.js';
import type { Ids } from '../../ports/system.js';
import type { TlsIdentity } from '../../ports/tls-identity.js';
import { ByteBudget, defaultBudgetBytes } from '../byte-budget.js';
import type { Exchange, ListenerLimits } from '../exchange.js';
import { asDomainError, isFault } from '../response/error-response.js';
import { type Response, send, sendError } from '../response/response.js';
import { CallerAddresses } from './caller-address.js';
import type { CallerConnection } from './connection.js';
import { ConnectionTable } from './connection-table.js';
import { type Endpoint, runEndpoint } from './endpoint.js';
import { checkGrammar, malformed, toOriginForm } from './http-grammar.js';
import { respondToParserErrors, tooLate } from './parser-errors.js';
import { TlsFront } from './tls-front.js';
import { traceIdOf } from './trace-context.js';

export interface ListenerParts {
  readonly ids: Ids;
  readonly requestLog: RequestLog;
  readonly observer: Observer;
  /** A second header name for the request id (rule 2.13). */
  readonly requestIdHeader?: string;
  /** The addresses and CIDR ranges of the proxies whose X-Forwarded-For is trusted. None by default. */
  readonly trustedProxies?: readonly string[];
  /** The TLS certificate and key. Without them the listener serves plain HTTP. */
  readonly tls?: TlsIdentity;
  /**
   * The budget for bytes that all listeners of the process hold for callers. By default each listener has its
   * own.
   */
  readonly budget?: ByteBudget;
  /** Throws while only public routes may be served. Without this function all routes are always served. */
  readonly assertOpen?: () => void;
  /** Merged over DEFAULT_LIMITS. */
  readonly limits?: Partial<ListenerLimits>;
}

/** The calls that ended while a listener stopped. */
export interface EndedCalls {
  readonly finished: number;
  /** The calls whose caller did not get the whole response. */
  readonly cut: number;
}

/** An HTTP server of the service. */
export interface Listener {
  /**
   * Starts listening. Port 0 selects any free port.
   * @returns the bound address and port
   */
  listen(port: number, host: string): Promise<{ readonly port: number; readonly host: string }>;
  /**
   * Answers each further call with `Connection: close` and goes on accepting connections, so that a load
   * balancer can move its calls to another process before `close`.
   */
  drain(): void;
  /**
   * Stops accepting connections and lets running requests finish. Cuts the remaining connections after
   * `graceMs`.
   */
  close(graceMs: number): Promise<void>;
  /** Returns how many calls were finished and how many were cut since `drain` or `close`. */
  endedCalls(): EndedCalls;
  /** Uses another certificate from the next connection on. Does nothing on a listener without TLS. */
  renewTls(identity: TlsIdentity): void;
}

const METHODS: ReadonlySet<string> = new Set([
  'GET',
  'HEAD',
  'POST',
  'PUT',
  'PATCH',
  'DELETE',
  'OPTIONS',
  'TRACE',
  'CONNECT',
]);

export function createListener(
  name: Route['listener'],
  endpoints: readonly Endpoint[],
  limits: ListenerLimits,
  parts: ListenerParts,
): Listener {
  const { ids, requestLog, observer, requestIdHeader } = parts;
  const addresses = new CallerAddresses(parts.trustedProxies);
  const budget = parts.budget ?? new ByteBudget(defaultBudgetBytes());
  const byResponse = new WeakMap<ServerResponse, Exchange>();
  /** The listener answers with `Connection: close`: it drains or stops. */
  let draining = false;
  let stopping = false;
  const ended = { finished: 0, cut: 0 };

  // An Express application would replace the prototype of each request and response, which slows down every
  // later access.
  const router = express.Router({ caseSensitive: true, strict: true });
  /**
   * Paths without parameters. Most calls use them, and they are found here without trying the routes one by
   * one.
   */
  const fixed = new Map<string, (exchange: Exchange) => void>();
  for (const [path, methods] of byPath(endpoints)) {
    const answer = answerer(path, methods);
    if (!path.includes('{')) fixed.set(path, (exchange) => answer(exchange, undefined));
    // One layer for each path and all methods. Otherwise Express would respond to OPTIONS itself, and other
    // methods would get 404.
    router
      .route(path.replaceAll(/\{(\w+)\}/g, ':$1'))
      .all((request, response) => answer(byResponse.get(response)!, request.params));
  }

  /** Returns the function that handles all calls of one path. */
  function answerer(
    path: RouteName,
    methods: ReadonlyMap<string, Endpoint>,
  ): (exchange: Exchange, params: unknown) => void {
    const allow = allowed(methods);
    const headers = new Map(
      [...methods.values()].map((endpoint) => [endpoint, routeHeaders(endpoint.route)]),
    );
    return (exchange, params) => {
      exchange.route = path;
      const { method } = exchange.request;
      // Rule 2.11.
      const endpoint = methods.get(method === 'HEAD' ? 'GET' : method!);
      if (endpoint === undefined) {
        sendError(
          exchange,
          new DomainError('method_not_allowed', 'This path does not support this method.'),
          {
            Allow: allow,
          },
        );
        return;
      }
      Object.assign(exchange.headers, headers.get(endpoint));
      void carryOut(exchange, admitted(endpoint, exchange, params));
    };
  }

  const admitted = async (endpoint: Endpoint, exchange: Exchange, params: unknown): Promise<Response> => {
    if (endpoint.auth !== 'public') parts.assertOpen?.();
    return runEndpoint(endpoint, observer, exchange, params);
  };

  /** Runs a call and sends its response. Every call that has run is logged, even when its caller has left. */
  const carryOut = async (exchange: Exchange, work: Promise<Response>): Promise<void> => {
    exchange.working = true;
    try {
      const result = await work;
      exchange.working = false;
      await send(exchange, result);
    } catch (error) {
      exchange.working = false;
      fail(exchange, error);
    } finally {
      if (exchange.gone || exchange.response.destroyed || exchange.response.writableFinished)
        finish(exchange);
    }
  };

  const fail = (exchange: Exchange, error: unknown): void => {
    if (isFault(error)) observer.fault(exchange.route, error, exchange);
    sendError(exchange, asDomainError(error));
  };

  const begin = (
    connection: CallerConnection,
    request: IncomingMessage,
    response: ServerResponse,
    awaitsContinue: boolean,
  ): Exchange => {
    const requestId = ids.next('request');
    // Rule 2.12.
    const headers: Record<string, string> = {
      'X-Request-Id': requestId,
      'X-Content-Type-Options': 'nosniff',
    };
    if (requestIdHeader !== undefined) headers[requestIdHeader] = requestId;
    // Node joins repeated headers with a comma and keeps their order.
    const forwardedFor = request.headers['x-forwarded-for'] as string | undefined;
    const address =
      forwardedFor === undefined ? connection.address : addresses.of(connection.remoteAddress, forwardedFor);
    const exchange: Exchange = {
      requestId,
      traceId: traceIdOf(request.headers['traceparent'] as string | undefined, ids.random),
      request,
      response,
      limits,
      address,
      startedAt: performance.now(),
      route: 'unmatched',
      keyId: undefined,
      partnerId: undefined,
      operator: undefined,
      refusal: undefined,
      bytesIn: 0,
      bytesOut: 0,
      awaitsContinue,
      connectionClose: draining,
      abandoned: false,
      headers,
      lease: budget.lease(address),
      working: false,
      gone: false,
      logged: false,
      onGone: undefined,
      giveUp: undefined,
      abortBody: undefined,
    };
    connection.begin(exchange);
    response.on('close', () => {
      if (!exchange.working) finish(exchange);
      connection.ended(exchange);
      if (stopping) connection.destroySoon();
    });
    return exchange;
  };

  /**
   * Logs an exchange once, after its response was sent, or after its connection closed and the work ended.
   */
  const finish = (exchange: Exchange): void => {
    if (exchange.logged) return;
    exchange.logged = true;
    exchange.lease.end();
    const { request, response, requestId, route, startedAt, keyId, partnerId, address } = exchange;
    const { bytesIn, bytesOut, refusal, traceId, operator } = exchange;
    const method = METHODS.has(request.method!) ? request.method! : 'other';
    const durationMs = performance.now() - startedAt;
    const status = response.headersSent ? response.statusCode : 0;
    if (draining) ended[response.writableFinished ? 'finished' : 'cut'] += 1;
    requestLog.request({
      listener: name,
      method,
      route,
      status,
      requestId,
      traceId,
      keyId,
      partnerId,
      operator,
      address,
      code: refusal?.code,
      reason: refusal?.reason,
      durationMs,
      bytesIn,
      bytesOut,
    });
  };

  const handle = (request: IncomingMessage, response: ServerResponse, awaitsContinue = false): void => {
    const connection = request.socket as Duplex as CallerConnection;
    connection.arrived(request, () => {
      const exchange = begin(connection, request, response, awaitsContinue);
      const upgrade = asksToUpgrade(request);
      const fault =
        checkGrammar(request) ??
        toOriginForm(request) ??
        (upgrade && connection.followed
          ? malformed('Bytes follow an upgrade request before its response.')
          : undefined);
      // The service ignores the upgrade (RFC 9110, 7.8). Node's parser drops the bytes that it got after an
      // upgrade request. The connection therefore closes, so that no bytes after a body are read as another
      // request.
      if (upgrade && !connection.endsAtHead) exchange.connectionClose = true;
      if (fault !== undefined) {
        exchange.route = 'malformed';
        // It is unclear where this message ends and the next one begins.
        exchange.connectionClose = true;
        sendError(exchange, fault);
        return;
      }
      const known = fixed.get(request.url!.split('?', 1)[0]!);
      if (known !== undefined) {
        known(exchange);
        return;
      }
      byResponse.set(response, exchange);
      // The router's types ask for an application's requests and responses, but the router does not need
      // them.
      (
        router as unknown as (
          request: IncomingMessage,
          response: ServerResponse,
          done: (error?: unknown) => void,
        ) => void
      )(request, response, (error) => {
        if (error === undefined || error === null)
          sendError(
            exchange,
            new DomainError('not_found', 'This path does not exist.', { reason: 'unknown_route' }),
          );
        else if (error instanceof URIError)
          sendError(
            exchange,
            new DomainError('invalid_request', 'The path is not valid percent-encoded UTF-8.', {
              reason: 'invalid_member',
            }),
          );
        else fail(exchange, error);
      });
    });
  };

  // This server only parses HTTP on the connections that it is given, and does not listen.
  const parser: Server = createHttpServer(
    {
      // Node's own response to a missing Host header has no body. checkGrammar responds instead.
      requireHostHeader: false,
      keepAliveTimeout: limits.keepAliveMs,
    },
    (request, response) => handle(request, response),
  );
  parser.timeout = limits.stallMs;
  // By default Node silently drops headers after the 2,000th. The total size of the headers is limited
  // anyway.
  parser.maxHeadersCount = 0;
  // Errors are sent before `100 Continue`, so that a caller that waits for it need not send the file.
  parser.on('checkContinue', (request: IncomingMessage, response: ServerResponse) =>
    handle(request, response, true),
  );
  parser.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) => {
    const connection = request.socket as Duplex as CallerConnection;
    connection.arrived(request, () => {
      const exchange = begin(connection, request, response, false);
      exchange.route = 'malformed';
      exchange.connectionClose = true;
      sendError(exchange, malformed('The only supported expectation is 100-continue.'));
    });
  });
  const respondOnConnection = respondToParserErrors(
    parser,
    name,
    defined({ ids, requestLog, requestIdHeader }),
  );
  const table = new ConnectionTable(limits, budget, addresses, (connection) =>
    respondOnConnection(connection, tooLate()),
  );

  const welcome = (socket: Socket): void => {
    const connection = table.admit(socket);
    if (connection === undefined) return;
    connection.once('close', () => {
      const { exchange } = connection;
      if (exchange === undefined) return;
      exchange.gone = true;
      exchange.onGone?.();
      if (exchange.working) exchange.giveUp?.();
      if (!exchange.working) finish(exchange);
    });
    parser.emit('connection', connection);
  };

  const tls = parts.tls && new TlsFront(parts.tls, limits, welcome);
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) =>
    tls === undefined ? welcome(socket) : tls.accept(socket),
  );

  return {
    listen: (port, host) =>
      new Promise((resolve, reject) => {
        server.once('error', reject);
        server.listen(port, host, () => {
          server.off('error', reject);
          const address = server.address() as AddressInfo;
          resolve({ port: address.port, host: address.address });
        });
      }),
    drain: () => {
      draining = true;
    },
    close: (graceMs) =>
      new Promise((resolve) => {
        draining = stopping = true;
        const timer = setTimeout(() => table.closeAll(), graceMs);
        server.close(() => {
          clearTimeout(timer);
          table.stop();
          resolve();
        });
        tls?.close();
        table.closeIdle();
      }),
    endedCalls: () => ended,
    renewTls: (identity) => tls?.renew(identity),
  };
}

/**
 * Returns true when a request asks to upgrade the protocol (RFC 9110, 7.8). The caller may switch to it as
 * soon as the response arrives.
 */
function asksToUpgrade({ headers }: IncomingMessage): boolean {
  return headers.upgrade !== undefined && /(^|,)[ \t]*upgrade[ \t]*(,|$)/i.test(headers.connection ?? '');
}

/** Groups the endpoints by path. The paths keep the order of the table. */
function byPath(endpoints: readonly Endpoint[]): ReadonlyMap<RouteName, ReadonlyMap<string, Endpoint>> {
  const paths = new Map<RouteName, Map<string, Endpoint>>();
  for (const endpoint of endpoints) {
    const path = endpoint.route.path as RouteName;
    const methods = paths.get(path) ?? new Map<string, Endpoint>();
    paths.set(path, methods.set(endpoint.route.method, endpoint));
  }
  return paths;
}

function allowed(methods: ReadonlyMap<string, Endpoint>): string {
  return [...methods.keys()].flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method])).join(', ');
}

/** Returns the headers of every response of a route, including errors. */
function routeHeaders(route: Route): Record<string, string> {
  const notices = noticesOf(route);
  return {
    ...(route.noStore ? { 'Cache-Control': 'no-store' } : {}),
    // Rule 14.3: the earliest dates of several notices apply.
    ...(notices.length === 0
      ? {}
      : {
          Deprecation: `@${Math.min(...notices.map(({ since }) => since))}`,
          Sunset: new Date(Math.min(...notices.map(({ sunset }) => sunset)) * 1000).toUTCString(),
          Link: [...new Set(notices.map(({ guide }) => `<${guide}>; rel="deprecation"`))].join(', '),
        }),
  };
}
