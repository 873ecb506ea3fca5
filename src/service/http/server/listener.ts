import {
  createServer as createHttpServer,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { defined } from '../../../core/domain/defined.js';
import { DomainError } from '../../../core/domain/errors.js';
import type { Route } from '../../contract/route.js';
import type { Observer } from '../../ports/observer.js';
import type { RequestLog } from '../../ports/request-log.js';
import type { Ids } from '../../ports/system.js';
import type { TlsIdentity } from '../../ports/tls-identity.js';
import { ByteBudget, defaultBudgetBytes } from '../byte-budget.js';
import type { Exchange, ListenerLimits } from '../exchange.js';
import type { Response } from '../response/response.js';
import { CallerAddresses } from './caller-address.js';
import { Calls, type EndedCalls } from './calls.js';
import type { CallerConnection } from './connection.js';
import { ConnectionTable } from './connection-table.js';
import { type Endpoint, runEndpoint } from './endpoint.js';
import { checkGrammar, malformed, toOriginForm } from './http-grammar.js';
import { respondToParserErrors, tooLate } from './parser-errors.js';
import { createRoutes, type FindPath } from './routes.js';
import { TlsFront } from './tls-front.js';

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
  /** The limits that differ from DEFAULT_LIMITS. */
  readonly limits?: Partial<ListenerLimits>;
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

export function createListener(
  name: Route['listener'],
  endpoints: readonly Endpoint[],
  limits: ListenerLimits,
  parts: ListenerParts,
): Listener {
  const { ids, requestLog, observer, requestIdHeader } = parts;
  const addresses = new CallerAddresses(parts.trustedProxies);
  const budget = parts.budget ?? new ByteBudget(defaultBudgetBytes());
  const reports = { ids, requestLog, ...defined({ requestIdHeader }) };
  const calls = new Calls({ ...reports, listener: name, observer, limits, addresses, budget });
  const parser = createParser(calls, limits, responder(createRoutes(endpoints), parts));
  const respondOnConnection = respondToParserErrors(parser, name, reports);
  const table = new ConnectionTable(limits, budget, addresses, (connection) =>
    respondOnConnection(connection, tooLate()),
  );
  // Callers of the operator listener have no key, and are no strangers.
  if (name === 'partner') budget.evictBy(() => table.evictStranger());
  const welcome = (socket: Socket): void => {
    const connection = table.admit(socket);
    if (connection !== undefined) parser.emit('connection', connection);
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
    drain: () => calls.drain(),
    close: (graceMs) =>
      new Promise((resolve) => {
        calls.stop();
        const timer = setTimeout(() => table.closeAll(), graceMs);
        server.close(() => {
          clearTimeout(timer);
          table.stop();
          resolve();
        });
        tls?.close();
        table.closeIdle();
      }),
    endedCalls: () => calls.ended,
    renewTls: (identity) => tls?.renew(identity),
  };
}

/** Returns the function that finds the endpoint of a request, and runs it. It throws the error of the request. */
function responder(
  findPath: FindPath,
  { observer, assertOpen }: ListenerParts,
): (exchange: Exchange) => Promise<Response> {
  return async (exchange) => {
    const { request, response, headers, log } = exchange;
    const found = findPath(request, response);
    const { path, params } = found instanceof Promise ? await found : found;
    log.route = path.route;
    // Rule 2.11.
    const known = path.byMethod.get(request.method === 'HEAD' ? 'GET' : request.method!);
    if (known === undefined)
      return {
        kind: 'error',
        error: new DomainError('method_not_allowed', 'This path does not support this method.'),
        headers: { Allow: path.allow },
      };
    Object.assign(headers, known.headers);
    if (known.endpoint.auth !== 'public') assertOpen?.();
    return runEndpoint(known.endpoint, observer, exchange, params);
  };
}

/** Creates the server that parses HTTP on the connections that it is given. It does not listen. */
function createParser(
  calls: Calls,
  limits: ListenerLimits,
  respond: (exchange: Exchange) => Promise<Response>,
): Server {
  const handle = (
    request: IncomingMessage,
    response: ServerResponse,
    expectation?: 'continue' | 'unsupported',
  ): void => {
    const connection = request.socket as Duplex as CallerConnection;
    connection.arrived(request, () =>
      calls.answer(connection, request, response, expectation === 'continue', async (exchange) => {
        const fault =
          expectation === 'unsupported'
            ? malformed('The only supported expectation is 100-continue.')
            : messageFault(connection, request);
        // The service ignores an upgrade (RFC 9110, 7.8). Node's parser drops the bytes that it got after an
        // upgrade request. The connection therefore closes, so that no bytes after a body are read as another
        // request. After a malformed message it is unclear where the next one begins.
        if (fault !== undefined || (asksToUpgrade(request) && !connection.endsAtHead))
          exchange.message.beLast();
        if (fault === undefined) return respond(exchange);
        exchange.log.route = 'malformed';
        throw fault;
      }),
    );
  };
  const parser = createHttpServer(
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
    handle(request, response, 'continue'),
  );
  parser.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) =>
    handle(request, response, 'unsupported'),
  );
  return parser;
}

/** Returns the error of a message that is not a request of this service, or undefined for a request. */
function messageFault(connection: CallerConnection, request: IncomingMessage): DomainError | undefined {
  return (
    checkGrammar(request) ??
    toOriginForm(request) ??
    (asksToUpgrade(request) && connection.followed
      ? malformed('Bytes follow an upgrade request before its response.')
      : undefined)
  );
}

/**
 * Returns true when a request asks to upgrade the protocol (RFC 9110, 7.8). The caller may switch to it as
 * soon as the response arrives.
 */
function asksToUpgrade({ headers }: IncomingMessage): boolean {
  return headers.upgrade !== undefined && /(^|,)[ \t]*upgrade[ \t]*(,|$)/i.test(headers.connection ?? '');
}
