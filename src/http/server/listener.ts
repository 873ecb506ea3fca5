import {
  createServer as createHttpServer,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import express from 'express';
import type { Route } from '../../contract/route.js';
import { noticesOf } from '../../contract/route-headers.js';
import { defined } from '../../domain/defined.js';
import { DomainError } from '../../domain/errors.js';
import type { Observer } from '../../ports/observer.js';
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

export interface ListenerParts {
  readonly ids: Ids;
  readonly requestLog: RequestLog;
  readonly observer: Observer;
  /** Second header name of the request id (rule 2.13). */
  readonly requestIdHeader?: string;
  /** Addresses and CIDR ranges of the proxies whose X-Forwarded-For is believed; none by default. */
  readonly trustedProxies?: readonly string[];
  /** The listener speaks TLS with this identity. */
  readonly tls?: TlsIdentity;
  /** Bytes that all listeners of the process may hold for callers; a budget of its own by default. */
  readonly budget?: ByteBudget;
  /**
   * Throws while nobody may be served, whatever is asked for: routes without authentication alone are. Absent:
   * never.
   */
  readonly assertOpen?: () => void;
  /** Merged over DEFAULT_LIMITS. */
  readonly limits?: Partial<ListenerLimits>;
}

/** A front door of the service. */
export interface Listener {
  /** Port 0 takes any free port. Resolves to the address that is listened on. */
  listen(port: number, host: string): Promise<{ readonly port: number; readonly host: string }>;
  /** Takes no new connections, lets requests in flight finish, and cuts what is left after `graceMs`. */
  close(graceMs: number): Promise<void>;
  /** Shows another certificate from the next connection on; nothing where the listener does not speak TLS. */
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
  let stopping = false;

  // Express's application would give each request and response another prototype, by which all that touches
  // them afterwards is slower.
  const router = express.Router({ caseSensitive: true, strict: true });
  /** Paths without parameters, which most calls give as they are: none of the table is tried for those. */
  const fixed = new Map<string, (exchange: Exchange) => void>();
  for (const [path, methods] of byPath(endpoints)) {
    const answer = answerer(path, methods);
    if (!path.includes('{')) fixed.set(path, (exchange) => answer(exchange, undefined));
    // A layer for each path, whatever the method: Express would respond to OPTIONS by itself and fall
    // through to 404 for the rest.
    router
      .route(path.replaceAll(/\{(\w+)\}/g, ':$1'))
      .all((request, response) => answer(byResponse.get(response)!, request.params));
  }

  /** The calls of one path. */
  function answerer(
    path: string,
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
        sendError(exchange, new DomainError('method_not_allowed', 'This path does not have that method.'), {
          Allow: allow,
        });
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

  /**
   * Sends the response; every call that is carried out is logged, whether or not its caller is still there.
   */
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
    if (isFault(error)) observer.fault(exchange.route, error);
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
    // Node joins repeated headers with a comma, in their order.
    const forwardedFor = request.headers['x-forwarded-for'] as string | undefined;
    const address =
      forwardedFor === undefined ? connection.address : addresses.of(connection.remoteAddress, forwardedFor);
    const exchange: Exchange = {
      requestId,
      request,
      response,
      limits,
      address,
      startedAt: performance.now(),
      route: 'unmatched',
      keyId: undefined,
      bytesIn: 0,
      bytesOut: 0,
      awaitsContinue,
      connectionClose: stopping,
      abandoned: false,
      headers,
      lease: budget.lease(address),
      working: false,
      gone: false,
      logged: false,
      onGone: undefined,
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

  /** Logs an exchange once: its response has gone out, or its connection is gone and the work is done. */
  const finish = (exchange: Exchange): void => {
    if (exchange.logged) return;
    exchange.logged = true;
    exchange.lease.end();
    const { request, response, requestId, route, startedAt, keyId, bytesIn, bytesOut } = exchange;
    const method = METHODS.has(request.method!) ? request.method! : 'other';
    const durationMs = performance.now() - startedAt;
    const status = response.headersSent ? response.statusCode : 0;
    requestLog.request(
      defined({ listener: name, method, route, status, requestId, keyId, durationMs, bytesIn, bytesOut }),
    );
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
          ? malformed('Something follows a request to upgrade before its answer.')
          : undefined);
      // RFC 9110, 7.8: the offer is ignored. Node's parser drops what it got behind such a message, so nothing
      // that may come behind a body is read as a request.
      if (upgrade && !connection.endsAtHead) exchange.connectionClose = true;
      if (fault !== undefined) {
        exchange.route = 'malformed';
        // The boundary between this message and the next is in doubt.
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
      // The router asks nothing of an application's requests and responses, which its types speak of.
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
            new DomainError('not_found', 'There is nothing at this path.', { reason: 'unknown_route' }),
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

  // The parser reads and writes HTTP on connections that it is given, and listens to nothing itself.
  const parser: Server = createHttpServer(
    {
      // Node's own response to a missing Host has no body; checkGrammar gives it one.
      requireHostHeader: false,
      keepAliveTimeout: limits.keepAliveMs,
    },
    (request, response) => handle(request, response),
  );
  parser.timeout = limits.stallMs;
  // By default Node drops what comes after the 2,000th header without a word. Their total size is bounded
  // anyway.
  parser.maxHeadersCount = 0;
  // Errors go out before `100 Continue`, so that a caller that asked first need not send the file.
  parser.on('checkContinue', (request: IncomingMessage, response: ServerResponse) =>
    handle(request, response, true),
  );
  parser.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) => {
    const connection = request.socket as Duplex as CallerConnection;
    connection.arrived(request, () => {
      const exchange = begin(connection, request, response, false);
      exchange.route = 'malformed';
      exchange.connectionClose = true;
      sendError(exchange, malformed('The only expectation is 100-continue.'));
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
    close: (graceMs) =>
      new Promise((resolve) => {
        stopping = true;
        const timer = setTimeout(() => table.closeAll(), graceMs);
        server.close(() => {
          clearTimeout(timer);
          table.stop();
          resolve();
        });
        tls?.close();
        table.closeIdle();
      }),
    renewTls: (identity) => tls?.renew(identity),
  };
}

/**
 * Tells whether a request asks for another protocol (RFC 9110, 7.8), in which the caller may go on as soon as
 * it has the response.
 */
function asksToUpgrade({ headers }: IncomingMessage): boolean {
  return headers.upgrade !== undefined && /(^|,)[ \t]*upgrade[ \t]*(,|$)/i.test(headers.connection ?? '');
}

/** Endpoints of each path, paths in the order of the table. */
function byPath(endpoints: readonly Endpoint[]): ReadonlyMap<string, ReadonlyMap<string, Endpoint>> {
  const paths = new Map<string, Map<string, Endpoint>>();
  for (const endpoint of endpoints) {
    const methods = paths.get(endpoint.route.path) ?? new Map<string, Endpoint>();
    paths.set(endpoint.route.path, methods.set(endpoint.route.method, endpoint));
  }
  return paths;
}

function allowed(methods: ReadonlyMap<string, Endpoint>): string {
  return [...methods.keys()].flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method])).join(', ');
}

/** Headers that a route gives to each of its responses, errors included. */
function routeHeaders(route: Route): Record<string, string> {
  const notices = noticesOf(route);
  return {
    ...(route.noStore ? { 'Cache-Control': 'no-store' } : {}),
    // Rule 14.3: of several notices, the earliest dates count.
    ...(notices.length === 0
      ? {}
      : {
          Deprecation: `@${Math.min(...notices.map(({ since }) => since))}`,
          Sunset: new Date(Math.min(...notices.map(({ sunset }) => sunset)) * 1000).toUTCString(),
          Link: [...new Set(notices.map(({ guide }) => `<${guide}>; rel="deprecation"`))].join(', '),
        }),
  };
}
