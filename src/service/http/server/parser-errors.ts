import { type Server, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { DomainError } from '../../../core/domain/errors.js';
import type { Route } from '../../contract/route.js';
import type { RequestLog } from '../../ports/request-log.js';
import type { Ids } from '../../ports/system.js';
import { left } from '../body/body-reader.js';
import { errorResponse } from '../response/error-response.js';
import { LINGER_MS, sendError } from '../response/response.js';
import type { CallerConnection } from './connection.js';
import { malformed } from './http-grammar.js';

interface Parts {
  readonly ids: Ids;
  readonly requestLog: RequestLog;
  readonly requestIdHeader?: string;
}

/**
 * Responds to bytes that are not a valid request (rules 2.12 and 5.1). Node alone would send a bare status
 * line. A connection gets at most one such response, and none inside another response.
 * @returns a function that responds on a connection without an open request, and closes the connection
 */
export function respondToParserErrors(
  server: Server,
  listener: Route['listener'],
  parts: Parts,
): (connection: CallerConnection, error: DomainError) => void {
  const responded = new WeakSet<CallerConnection>();

  const respondNow = (
    connection: CallerConnection,
    error: DomainError,
    headers: Readonly<Record<string, string>> = {},
  ): void => {
    if (responded.has(connection) || !connection.writable) return;
    responded.add(connection);
    const requestId = parts.ids.next('request');
    const { code, reason } = error;
    const { status, body } = errorResponse(error);
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
    connection.closing();
    connection.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${body}`);
    // Keep reading for a moment. Closing a socket with unread bytes resets the connection, and the response
    // is lost.
    connection.resume();
    const timer = setTimeout(() => connection.destroy(), LINGER_MS);
    connection.once('close', () => clearTimeout(timer));
    parts.requestLog.request({
      listener,
      method: 'other',
      route: 'malformed',
      status,
      requestId,
      address: connection.address,
      code,
      reason,
      durationMs: 0,
      bytesIn: 0,
      bytesOut: body.length,
    });
  };

  server.on('clientError', (cause: NodeJS.ErrnoException, socket: Duplex) => {
    const connection = socket as CallerConnection;
    if (responded.has(connection)) return;
    if (!connection.writable || cause.code === 'ECONNRESET') {
      connection.destroy();
      return;
    }
    const error = parserError(cause.code);
    const current = connection.exchange;
    if (current !== undefined && !current.request.complete) {
      // The bytes belong to the body of this request.
      current.message.abandon();
      if (current.response.headersSent) current.response.end();
      else if (!current.message.stopReader(cause.code === 'HPE_INVALID_EOF_STATE' ? left() : error))
        sendError(current, error);
      return;
    }
    connection.inTurn(() => respondNow(connection, error));
  });

  // CONNECT has no route. Without a listener Node closes the connection without a response.
  server.on('connect', (_request, socket: Duplex) => {
    const connection = socket as CallerConnection;
    connection.inTurn(() =>
      respondNow(
        connection,
        new DomainError('method_not_allowed', 'This path does not support this method.'),
        {
          Allow: 'GET, HEAD, POST, PATCH, DELETE',
        },
      ),
    );
  });

  return respondNow;
}

/** Returns the error for a head that did not arrive in time. */
export function tooLate(): DomainError {
  return new DomainError('timeout', 'The request did not arrive in time.', { reason: 'client_too_slow' });
}

function parserError(code: string | undefined): DomainError {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return new DomainError('headers_too_large', 'The request line and headers are too large.', {
        reason: 'malformed_http',
      });
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return new DomainError('payload_too_large', 'The chunk extensions are too large.', {
        reason: 'body_too_large',
      });
    default:
      return malformed('The request is not well-formed HTTP.');
  }
}
