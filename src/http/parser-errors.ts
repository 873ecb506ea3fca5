import { STATUS_CODES, type Server } from 'node:http';
import type { Socket } from 'node:net';
import type { Route } from '../contract/route.js';
import { DomainError } from '../domain/errors.js';
import type { Ids } from '../ports/ids.js';
import type { RequestLog } from '../ports/request-log.js';
import { LINGER_MS, sendError } from './answer.js';
import { left } from './body-reader.js';
import { errorAnswer } from './error-body.js';
import type { Exchange } from './exchange.js';
import { malformed } from './http-grammar.js';

/** Requests of each connection that are not answered yet. */
export type OpenExchanges = WeakMap<Socket, Set<Exchange>>;

interface Parts {
  readonly ids: Ids;
  readonly requestLog: RequestLog;
  readonly requestIdHeader?: string;
}

/**
 * Answers what never became a request: "Every byte stream the server can send, including answers to malformed HTTP, carries that
 * JSON body and `X-Request-Id`." Node would send a bare status line. At most one answer goes to a connection, and none in the
 * middle of another.
 */
export function answerParserErrors(server: Server, listener: Route['listener'], open: OpenExchanges, parts: Parts): void {
  const answered = new WeakSet<Socket>();

  const answerOnSocket = (socket: Socket, error: DomainError, headers: Readonly<Record<string, string>> = {}): void => {
    if (answered.has(socket) || !socket.writable) return;
    answered.add(socket);
    const requestId = parts.ids.next('request');
    const { status, body } = errorAnswer(error);
    const head: Record<string, string> = {
      'Content-Type': 'application/json',
      'Content-Length': String(Buffer.byteLength(body)),
      Date: new Date().toUTCString(),
      'X-Request-Id': requestId,
      ...(parts.requestIdHeader === undefined ? {} : { [parts.requestIdHeader]: requestId }),
      ...headers,
      Connection: 'close',
    };
    const lines = Object.entries(head).map(([name, value]) => `${name}: ${value}\r\n`);
    socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${body}`);
    // What still comes in is read for a moment: a close with unread bytes resets the connection and the answer is lost.
    socket.resume();
    const timer = setTimeout(() => socket.destroy(), LINGER_MS);
    socket.once('close', () => clearTimeout(timer));
    parts.requestLog.request({ listener, method: 'other', route: 'malformed', status, requestId, durationMs: 0, bytesIn: 0, bytesOut: body.length });
  };

  /** Behind those to earlier requests of the connection. */
  const answerInTurn = (socket: Socket, error: DomainError, headers?: Readonly<Record<string, string>>): void => {
    const waiting = [...(open.get(socket) ?? [])];
    let unanswered = waiting.length;
    if (unanswered === 0) answerOnSocket(socket, error, headers);
    for (const { response } of waiting) {
      response.once('close', () => {
        unanswered -= 1;
        if (unanswered === 0) answerOnSocket(socket, error, headers);
      });
    }
  };

  server.on('clientError', (cause: NodeJS.ErrnoException, socket: Socket) => {
    if (answered.has(socket)) return;
    if (!socket.writable || cause.code === 'ECONNRESET') {
      socket.destroy();
      return;
    }
    const error = parserError(cause.code);
    const waiting = [...(open.get(socket) ?? [])];
    const current = waiting.at(-1);
    if (current !== undefined && !current.request.complete) {
      // The bytes belong to the body of this request.
      current.broken = true;
      current.closing = true;
      if (current.response.headersSent) current.response.end();
      else if (current.failBody !== undefined) current.failBody(cause.code === 'HPE_INVALID_EOF_STATE' ? left() : error);
      else sendError(current, error);
      return;
    }
    answerInTurn(socket, error);
  });

  // CONNECT has no route; without a listener Node closes the connection without a word.
  server.on('connect', (_request, socket: Socket) => {
    // Node takes its own listener off before this: without one, a reset would end the process.
    socket.on('error', () => socket.destroy());
    answerInTurn(socket, new DomainError('method_not_allowed', 'This path does not have that method.'), { Allow: 'GET, HEAD, POST, PATCH, DELETE' });
  });
}

function parserError(code: string | undefined): DomainError {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return new DomainError('headers_too_large', 'The request line and headers are too large.', { reason: 'malformed_http' });
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return new DomainError('payload_too_large', 'The chunk extensions are too large.', { reason: 'body_too_large' });
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new DomainError('timeout', 'The request did not arrive in time.', { reason: 'client_too_slow' });
    default:
      return malformed('The request is not well-formed HTTP.');
  }
}
