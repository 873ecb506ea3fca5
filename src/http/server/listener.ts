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
import { DomainError } from '../../domain/errors.js';
import type { Ids } from '../../ports/ids.js';
import type { Observer } from '../../ports/observer.js';
import type { RequestLog } from '../../ports/request-log.js';
import type { TlsIdentity } from '../../ports/tls-identity.js';
import { ByteBudget, defaultBudgetBytes } from '../byte-budget.js';
import type { Exchange, ListenerLimits } from '../exchange.js';
import { asDomainError, isFault } from '../response/error-response.js';
import { type Response, send, sendError } from '../response/response.js';
import { CallerAddresses } from './caller-address.js';
import type { CallerConnection } from './connection.js';
import { ConnectionTable } from './connection-table.js';
import { type Endpoint, runEndpoint } from './endpoint.js';
import { checkGrammar, malformed } from './http-grammar.js';
import { respondToParserErrors, tooLate } from './parser-errors.js';
import { TlsFront } from './tls-front.js';

export interface ListenerParts {
  readonly ids: Ids;
  readonly requestLog: RequestLog;
  readonly observer: Observer;
  /** "The request id may also be sent under a second header name, set by configuration (none by default)." */
  readonly requestIdHeader?: string;
  /** Addresses and CIDR ranges of the proxies whose X-Forwarded-For is believed; none by default. */
  readonly trustedProxies?: readonly string[];
  /** With it the listener speaks TLS. */
  readonly tls?: TlsIdentity;
  /** What all listeners of the process may hold for callers; one of its own by default. */
  readonly budget?: ByteBudget;
  /** Merged over DEFAULT_LIMITS. */
  readonly limits?: Partial<ListenerLimits>;
}

/** One of the service's two front doors. */
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

  const app = express();
  app
    .disable('x-powered-by')
    .disable('etag')
    .enable('case sensitive routing')
    .enable('strict routing')
    .set('query parser', false);
  const headers = new Map(endpoints.map((endpoint) => [endpoint, routeHeaders(endpoint.route)]));
  for (const [path, methods] of byPath(endpoints)) {
    const allow = allowed(methods);
    // One layer for each path, whatever the method: Express would answer OPTIONS by itself and fall through
    // to 404 for the rest.
    app.route(path.replaceAll(/\{(\w+)\}/g, ':$1')).all((request, response) => {
      const exchange = byResponse.get(response)!;
      exchange.route = path;
      // "HEAD answers like GET; OPTIONS, TRACE: 405."
      const endpoint = methods.get(request.method === 'HEAD' ? 'GET' : request.method);
      if (endpoint === undefined) {
        sendError(exchange, new DomainError('method_not_allowed', 'This path does not have that method.'), {
          Allow: allow,
        });
        return;
      }
      Object.assign(exchange.headers, headers.get(endpoint));
      void carryOut(exchange, runEndpoint(endpoint, observer, exchange, request.params));
    });
  }

  /** What is carried out is logged, whether or not its caller is still there. */
  const carryOut = async (exchange: Exchange, work: Promise<Response>): Promise<void> => {
    exchange.working = true;
    try {
      const answer = await work;
      exchange.working = false;
      await send(exchange, answer);
    } catch (error) {
      exchange.working = false;
      refuse(exchange, error);
    } finally {
      if (exchange.gone || exchange.response.destroyed || exchange.response.writableFinished)
        finish(exchange);
    }
  };

  const refuse = (exchange: Exchange, error: unknown): void => {
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
    // "Every response, including errors, carries header `X-Request-Id`" - ours, never the caller's.
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
      onGone: undefined,
      abortBody: undefined,
    };
    byResponse.set(response, exchange);
    connection.begin(exchange);
    response.on('close', () => {
      if (!exchange.working) finish(exchange);
      connection.ended(exchange);
      if (stopping) connection.destroySoon();
    });
    return exchange;
  };

  const finished = new WeakSet<Exchange>();
  /** Once for each exchange: its answer has gone out, or its connection has and the work is done. */
  const finish = (exchange: Exchange): void => {
    if (finished.has(exchange)) return;
    finished.add(exchange);
    exchange.lease.end();
    const { request, response, requestId, route, startedAt, keyId, bytesIn, bytesOut } = exchange;
    const method = METHODS.has(request.method!) ? request.method! : 'other';
    const durationMs = performance.now() - startedAt;
    const status = response.headersSent ? response.statusCode : 0;
    requestLog.request({
      listener: name,
      method,
      route,
      status,
      requestId,
      ...(keyId === undefined ? {} : { keyId }),
      durationMs,
      bytesIn,
      bytesOut,
    });
  };

  const handle = (request: IncomingMessage, response: ServerResponse, awaitsContinue = false): void => {
    const connection = request.socket as Duplex as CallerConnection;
    connection.arrived(request, () => {
      const exchange = begin(connection, request, response, awaitsContinue);
      const fault =
        checkGrammar(request) ??
        (connection.followed && asksToUpgrade(request)
          ? malformed('Something follows a request to upgrade before its answer.')
          : undefined);
      if (fault !== undefined) {
        exchange.route = 'malformed';
        // Where one message ends and the next begins is in doubt.
        exchange.connectionClose = true;
        sendError(exchange, fault);
        return;
      }
      // Express never answers by itself: its own last resort is a page of HTML.
      (
        app as unknown as (
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
        else refuse(exchange, error);
      });
    });
  };

  // Parses and writes HTTP on the connections that it is given; it listens to nothing itself.
  const parser: Server = createHttpServer(
    {
      // Node's own answer to a missing Host has no body; checkGrammar gives it one.
      requireHostHeader: false,
      keepAliveTimeout: limits.keepAliveMs,
    },
    (request, response) => handle(request, response),
  );
  parser.timeout = limits.stallMs;
  // By default Node drops what comes after the 2,000th header without a word. Their total size is bounded
  // anyway.
  parser.maxHeadersCount = 0;
  // Refusals go out before `100 Continue`, so that a caller that asked first need not send the file.
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
  const answerOnConnection = respondToParserErrors(parser, name, {
    ids,
    requestLog,
    ...(requestIdHeader === undefined ? {} : { requestIdHeader }),
  });
  const table = new ConnectionTable(limits, budget, addresses, (connection) =>
    answerOnConnection(connection, tooLate()),
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
 * RFC 9110, 7.8: it asks for another protocol on this connection, which it may go on in as soon as it has the
 * answer.
 */
function asksToUpgrade({ headers }: IncomingMessage): boolean {
  return headers.upgrade !== undefined && /(^|,)[ \t]*upgrade[ \t]*(,|$)/i.test(headers.connection ?? '');
}

/** The rows of each path, paths in the order of the table. */
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

/** Headers that a row gives to each of its answers, refusals included. */
function routeHeaders(route: Route): Record<string, string> {
  const notices = noticesOf(route);
  return {
    ...(route.noStore ? { 'Cache-Control': 'no-store' } : {}),
    // "With a migration guide and `Sunset` headers on affected responses": of several notices, the earliest
    // dates count.
    ...(notices.length === 0
      ? {}
      : {
          Deprecation: `@${Math.min(...notices.map(({ since }) => since))}`,
          Sunset: new Date(Math.min(...notices.map(({ sunset }) => sunset)) * 1000).toUTCString(),
          Link: [...new Set(notices.map(({ guide }) => `<${guide}>; rel="deprecation"`))].join(', '),
        }),
  };
}
