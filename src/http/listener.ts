import express from 'express';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createFront, type AddressInfo, type Socket } from 'node:net';
import { noticesOf } from '../contract/deprecation.js';
import type { Route } from '../contract/route.js';
import { DomainError } from '../domain/errors.js';
import type { Ids } from '../ports/ids.js';
import type { Observer } from '../ports/observer.js';
import type { RequestLog } from '../ports/request-log.js';
import type { TlsIdentity } from '../ports/tls-identity.js';
import { send, sendError } from './answer.js';
import { CallerAddresses } from './caller-address.js';
import { Capacity } from './capacity.js';
import { runEndpoint, type Endpoint, type Gate } from './endpoint.js';
import { asDomainError, isFault } from './error-body.js';
import type { Exchange, ListenerLimits } from './exchange.js';
import { checkGrammar, malformed } from './http-grammar.js';
import { answerParserErrors, type OpenExchanges } from './parser-errors.js';
import { TlsFront } from './tls-front.js';

/** What writing to a connection fails with when its other end is gone. */
const CALLER_LEFT: ReadonlySet<string> = new Set(['ERR_STREAM_PREMATURE_CLOSE', 'ERR_STREAM_DESTROYED', 'ERR_STREAM_UNABLE_TO_PIPE', 'ECONNRESET', 'EPIPE', 'ABORT_ERR']);

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

const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'CONNECT']);

export function createListener(name: Route['listener'], endpoints: readonly Endpoint[], gates: Omit<Gate, 'largeBodies' | 'observer'>, limits: ListenerLimits, parts: ListenerParts): Listener {
  const { ids, requestLog, observer, requestIdHeader } = parts;
  const addresses = new CallerAddresses(parts.trustedProxies);
  const gate: Gate = { ...gates, observer, largeBodies: new Capacity(limits.largeBodies) };
  const open: OpenExchanges = new WeakMap();
  const byResponse = new WeakMap<ServerResponse, Exchange>();
  /** Connections that end with an answer that was given. */
  const ended = new WeakSet<Socket>();
  let stopping = false;

  const app = express();
  app.disable('x-powered-by').disable('etag').enable('case sensitive routing').enable('strict routing').set('query parser', false);
  const headers = new Map(endpoints.map((endpoint) => [endpoint, routeHeaders(endpoint.route)]));
  for (const [path, methods] of byPath(endpoints)) {
    const allow = allowed(methods);
    // One layer for each path, whatever the method: Express would answer OPTIONS by itself and fall through to 404 for the rest.
    app.route(path.replaceAll(/\{(\w+)\}/g, ':$1')).all((request, response) => {
      const exchange = byResponse.get(response)!;
      exchange.route = path;
      // "HEAD answers like GET; OPTIONS, TRACE: 405."
      const endpoint = methods.get(request.method === 'HEAD' ? 'GET' : request.method);
      if (endpoint === undefined) {
        sendError(exchange, new DomainError('method_not_allowed', 'This path does not have that method.'), { Allow: allow });
        return;
      }
      Object.assign(exchange.headers, headers.get(endpoint));
      runEndpoint(endpoint, gate, exchange, request.params).then((answer) => send(exchange, answer)).catch((error: unknown) => refuse(exchange, error));
    });
  }

  const refuse = (exchange: Exchange, error: unknown): void => {
    // A caller that leaves while it is answered is no fault of ours. A stream that fails ends the connection too, so that alone says nothing.
    const left = exchange.response.headersSent && exchange.request.destroyed && CALLER_LEFT.has((error as NodeJS.ErrnoException).code ?? '');
    if (isFault(error) && !left) observer.fault(exchange.route, error);
    sendError(exchange, asDomainError(error));
  };

  const begin = (request: IncomingMessage, response: ServerResponse, awaitsContinue: boolean): Exchange => {
    const requestId = ids.next('request');
    // "Every response, including errors, carries header `X-Request-Id`" - ours, never the caller's.
    const headers: Record<string, string> = { 'X-Request-Id': requestId, 'X-Content-Type-Options': 'nosniff' };
    if (requestIdHeader !== undefined) headers[requestIdHeader] = requestId;
    const exchange: Exchange = {
      requestId,
      request,
      response,
      limits,
      // Node joins repeated headers with a comma, in their order.
      address: addresses.of(request.socket.remoteAddress, request.headers['x-forwarded-for'] as string | undefined),
      startedAt: performance.now(),
      route: 'unmatched',
      keyId: undefined,
      bytesIn: 0,
      bytesOut: 0,
      awaitsContinue,
      closing: stopping,
      broken: false,
      headers,
      failBody: undefined,
    };
    byResponse.set(response, exchange);
    const { socket } = request;
    const onSocket = open.get(socket);
    if (onSocket === undefined) open.set(socket, new Set([exchange]));
    else onSocket.add(exchange);
    response.on('close', () => {
      open.get(socket)?.delete(exchange);
      if (exchange.closing) ended.add(socket);
      if (stopping) server.closeIdleConnections();
      record(exchange, response.headersSent ? response.statusCode : 0);
    });
    return exchange;
  };

  const record = (exchange: Exchange, status: number): void => {
    const { request, requestId, route, startedAt, keyId, bytesIn, bytesOut } = exchange;
    const method = METHODS.has(request.method!) ? request.method! : 'other';
    const durationMs = performance.now() - startedAt;
    requestLog.request({ listener: name, method, route, status, requestId, ...(keyId === undefined ? {} : { keyId }), durationMs, bytesIn, bytesOut });
  };

  const handle = (request: IncomingMessage, response: ServerResponse, awaitsContinue = false): void => {
    const { socket } = request;
    // RFC 9112, 9.6: what follows an answer with `Connection: close` is not processed.
    if (ended.has(socket) || [...(open.get(socket) ?? [])].some(({ closing }) => closing)) return;
    const exchange = begin(request, response, awaitsContinue);
    const fault = checkGrammar(request);
    if (fault !== undefined) {
      exchange.route = 'malformed';
      // Where one message ends and the next begins is in doubt.
      exchange.closing = true;
      sendError(exchange, fault);
      return;
    }
    // Express never answers by itself: its own last resort is a page of HTML.
    (app as unknown as (request: IncomingMessage, response: ServerResponse, done: (error?: unknown) => void) => void)(request, response, (error) => {
      if (error === undefined || error === null) sendError(exchange, new DomainError('not_found', 'There is nothing at this path.', { reason: 'unknown_route' }));
      else if (error instanceof URIError) sendError(exchange, new DomainError('invalid_request', 'The path is not valid percent-encoded UTF-8.', { reason: 'invalid_member' }));
      else refuse(exchange, error);
    });
  };

  const server: Server = createServer(
    {
      // Node's own answer to a missing Host has no body; checkGrammar gives it one.
      requireHostHeader: false,
      headersTimeout: limits.headersMs,
      // Five minutes by default, which cuts honest uploads inside the 15 minutes of their slot; bodies are timed where they are read.
      requestTimeout: 0,
      keepAliveTimeout: limits.keepAliveMs,
      connectionsCheckingInterval: limits.checkMs,
      noDelay: true,
    },
    (request, response) => handle(request, response),
  );
  server.timeout = limits.stallMs;
  // By default Node drops what comes after the 2,000th header without a word. Their total size is bounded anyway.
  server.maxHeadersCount = 0;
  // Refusals go out before `100 Continue`, so that a caller that asked first need not send the file.
  server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => handle(request, response, true));
  server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) => {
    const exchange = begin(request, response, false);
    exchange.route = 'malformed';
    exchange.closing = true;
    sendError(exchange, malformed('The only expectation is 100-continue.'));
  });
  answerParserErrors(server, name, open, { ids, requestLog, ...(requestIdHeader === undefined ? {} : { requestIdHeader }) });

  const tls = parts.tls && new TlsFront(parts.tls, limits, (socket) => server.emit('connection', socket));
  const front = tls === undefined ? server : createFront({ allowHalfOpen: true, noDelay: true }, (socket) => tls.accept(socket));
  front.maxConnections = limits.connections;

  return {
    listen: (port, host) =>
      new Promise((resolve, reject) => {
        front.once('error', reject);
        front.listen(port, host, () => {
          front.off('error', reject);
          const address = front.address() as AddressInfo;
          resolve({ port: address.port, host: address.address });
        });
      }),
    close: (graceMs) =>
      new Promise((resolve) => {
        stopping = true;
        const timer = setTimeout(() => server.closeAllConnections(), graceMs);
        front.close(() => {
          clearTimeout(timer);
          resolve();
        });
        tls?.close();
        server.closeIdleConnections();
      }),
    renewTls: (identity) => tls?.renew(identity),
  };
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
    // "With a migration guide and `Sunset` headers on affected responses": of several notices, the earliest dates count.
    ...(notices.length === 0
      ? {}
      : {
          Deprecation: `@${Math.min(...notices.map(({ since }) => since))}`,
          Sunset: new Date(Math.min(...notices.map(({ sunset }) => sunset)) * 1_000).toUTCString(),
          Link: [...new Set(notices.map(({ guide }) => `<${guide}>; rel="deprecation"`))].join(', '),
        }),
  };
}
