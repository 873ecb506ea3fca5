import type { Readable } from 'node:stream';
import type { DomainError } from '../../../core/domain/errors.js';
import type { Route } from '../../contract/route.js';
import type { RouteOutput } from '../../contract/validation.js';
import type { Exchange } from '../exchange.js';
import { ChunkSizes } from './chunk-sizes.js';
import { errorResponse } from './error-response.js';
import { ReaderPace } from './reader-pace.js';

type Headers = Readonly<Record<string, string>>;

/** A response as an endpoint returns it, before it is sent. */
export type Response =
  | JsonResponse<number, unknown>
  | TextResponse<number>
  | EmptyResponse<number>
  | StreamResponse<number>
  | FailedResponse;

export interface JsonResponse<Status extends number, Body> {
  readonly kind: 'json';
  readonly status: Status;
  readonly body: Body;
  /** The body as bytes, for a constant response. */
  readonly bytes?: Buffer;
  readonly headers?: Headers;
}

export interface TextResponse<Status extends number> {
  readonly kind: 'text';
  readonly status: Status;
  readonly mediaType: string;
  readonly text: string | Buffer;
  readonly headers?: Headers;
}

/**
 * A response without a body. `headers` may include the Content-Type and Content-Length that the body would
 * have.
 */
export interface EmptyResponse<Status extends number> {
  readonly kind: 'empty';
  readonly status: Status;
  readonly headers: Headers;
}

export interface StreamResponse<Status extends number> {
  readonly kind: 'stream';
  readonly status: Status;
  readonly mediaType: string;
  /** The length of the body. If it is undefined, the body is sent in chunks. */
  readonly bytes: number | undefined;
  readonly stream: Readable;
  readonly headers?: Headers;
}

/** An error that needs headers of its own. Every other error is thrown. */
export interface FailedResponse {
  readonly kind: 'error';
  readonly error: DomainError;
  readonly headers: Headers;
}

/**
 * The responses that a route may return: each status of the path table, with a body that matches its schema.
 */
export type ResponseOf<R extends Route> =
  | FailedResponse
  | {
      [Status in keyof RouteOutput<R> & number]: RouteOutput<R>[Status] extends { readonly body: infer Body }
        ? JsonResponse<Status, Body>
        : RouteOutput<R>[Status] extends { readonly mediaTypes: readonly string[] }
          ? TextResponse<Status> | StreamResponse<Status> | EmptyResponse<Status>
          : EmptyResponse<Status>;
    }[keyof RouteOutput<R> & number];

export function json<const Status extends number, const Body>(
  status: Status,
  body: Body,
  headers?: Headers,
): JsonResponse<Status, Body> {
  return headers === undefined ? { kind: 'json', status, body } : { kind: 'json', status, body, headers };
}

/** Returns a JSON response that is serialized once, for large or frequent responses. */
export function constantJson<const Status extends number, const Body>(
  status: Status,
  body: Body,
): JsonResponse<Status, Body> {
  return { kind: 'json', status, body, bytes: Buffer.from(JSON.stringify(body)) };
}

const JSON_TYPE = 'application/json';
const NOTHING = Buffer.alloc(0);
/**
 * The most bytes of a request that are read after its response, so that the connection can serve the next
 * request. Beyond it the connection is closed.
 */
const SMALL_REST = 65_536;
/** How many pieces of the rest of a body may have any size. */
const DRAINED_CHUNKS = 100;
/** How long a connection stays open after the response to a malformed message, in milliseconds. */
export const LINGER_MS = 1000;
/**
 * The most bytes that a streamed response holds outside the connection: a block of 64 KiB in each of the
 * file's buffer, the chunk read from it, the encrypted block, the next piece, and the piece being sent.
 */
const STREAM_BYTES = 5 * 65_536;

export async function send(exchange: Exchange, response: Response): Promise<void> {
  switch (response.kind) {
    case 'json':
      sendBytes(
        exchange,
        response.status,
        JSON_TYPE,
        response.bytes ?? JSON.stringify(response.body),
        response.headers,
      );
      return;
    case 'text':
      sendBytes(exchange, response.status, response.mediaType, response.text, response.headers);
      return;
    case 'empty':
      sendWhole(exchange, response.status, response.headers, NOTHING);
      return;
    case 'error':
      sendError(exchange, response.error, response.headers);
      return;
    case 'stream':
      await sendStream(exchange, response);
  }
}

/** Sends an error response. If another response has already begun, cuts the connection instead. */
export function sendError(
  exchange: Exchange,
  error: DomainError,
  headers: Readonly<Record<string, string>> = {},
): void {
  exchange.log.refusal = error;
  if (exchange.response.headersSent) {
    exchange.response.destroy();
    return;
  }
  // The rest of this body would be as costly to read. So the rest is read only for a moment, to prevent a
  // reset that loses the response.
  if (error.reason === 'chunks_too_small') exchange.message.abandon();
  const { status, body, retryAfterSeconds } = errorResponse(error);
  sendBytes(
    exchange,
    status,
    JSON_TYPE,
    body,
    retryAfterSeconds === undefined ? headers : { ...headers, 'Retry-After': String(retryAfterSeconds) },
  );
}

function sendBytes(
  exchange: Exchange,
  status: number,
  mediaType: string,
  body: string | Buffer,
  extra: Readonly<Record<string, string>> | undefined,
): void {
  sendWhole(
    exchange,
    status,
    { 'Content-Type': mediaType, 'Content-Length': String(Buffer.byteLength(body)), ...extra },
    body,
  );
}

function sendWhole(
  exchange: Exchange,
  status: number,
  own: Readonly<Record<string, string>>,
  body: string | Buffer,
): void {
  const { request, response, message } = exchange;
  if (response.headersSent || response.destroyed || exchange.gone.aborted) return;
  exchange.log.bytesOut = Buffer.byteLength(body);
  const headers: Record<string, string> = { ...own, ...exchange.headers };
  if (message.isLast) headers['Connection'] = 'close';
  if (request.complete || request.destroyed) {
    response.writeHead(status, headers);
    response.end(body);
    return;
  }
  // A caller that waits for `100 Continue` sends no body after this response. A caller that stopped waiting
  // is sending it (RFC 9110, 10.1.1). The service cannot distinguish them, so it cannot know where the next
  // request begins.
  if (message.awaitsContinue) message.abandon();
  // The caller is still sending. The whole response is sent now, but it is ended only after the rest of the
  // request was read. Ending it closes the connection. Closing a socket with unread bytes resets the
  // connection, and the response would be lost.
  const rest =
    request.headers['transfer-encoding'] === undefined
      ? Number(request.headers['content-length'] ?? 0)
      : Infinity;
  if (rest > SMALL_REST) message.beLast();
  if (message.isLast) headers['Connection'] = 'close';
  response.writeHead(status, headers);
  response.write(body);
  drain(exchange);
}

/** Reads the rest of the request, within limits, then ends the response. */
function drain(exchange: Exchange): void {
  const { request, response, limits } = exchange;
  const sizes = new ChunkSizes(DRAINED_CHUNKS);
  let left = limits.drainBytes;
  const cut = () => {
    // Bytes that arrive until the connection has closed are not counted any more.
    request.off('data', count);
    response.end();
    request.socket.destroySoon();
  };
  const timer = setTimeout(
    cut,
    exchange.message.isAbandoned ? Math.min(LINGER_MS, limits.drainMs) : limits.drainMs,
  );
  const count = (chunk: Buffer) => {
    left -= chunk.length;
    if (left < 0 || !sizes.count(chunk.length)) cut();
  };
  request.on('data', count);
  request.once('end', () => response.end());
  request.once('close', () => response.end());
  // After its response has ended, a request gets no `close` event when its connection closes.
  response.once('close', () => clearTimeout(timer));
  request.resume();
}

async function sendStream(exchange: Exchange, file: StreamResponse<number>): Promise<void> {
  const { request, response, gone, log } = exchange;
  const headers: Record<string, string | number> = {
    'Content-Type': file.mediaType,
    ...(file.bytes === undefined ? {} : { 'Content-Length': file.bytes }),
    ...file.headers,
    ...exchange.headers,
  };
  if (exchange.message.isLast) headers['Connection'] = 'close';
  if (gone.aborted) {
    file.stream.destroy();
    return;
  }
  /** Ends the wait until the network has taken a piece. */
  let stopWaiting: (() => void) | undefined;
  // Otherwise a queued file stays open until it is garbage-collected. Not every version of Node closes the
  // responses of a cut connection.
  gone.addEventListener('abort', () => {
    file.stream.destroy();
    stopWaiting?.();
  });
  if (request.method === 'HEAD') {
    file.stream.destroy();
    response.writeHead(file.status, headers);
    response.end();
    return;
  }
  try {
    exchange.lease.holdStream(STREAM_BYTES);
    // Wait for the first bytes before sending the head, so that a file that cannot be opened is still a clean
    // 5xx.
    await readable(file.stream);
  } catch (error) {
    file.stream.destroy();
    throw error;
  }
  if (response.headersSent || response.destroyed || gone.aborted) {
    file.stream.destroy();
    return;
  }
  response.writeHead(file.status, headers);
  const pace = new ReaderPace(exchange.limits, () => response.destroy());
  try {
    for await (const piece of file.stream as AsyncIterable<Buffer>) {
      log.bytesOut += piece.length;
      if (file.bytes !== undefined && log.bytesOut > file.bytes) break;
      pace.waiting();
      // The next piece is read only when the network has taken this one.
      const isTaken = await new Promise<boolean>((resolve) => {
        if (gone.aborted || response.destroyed) return resolve(false);
        stopWaiting = () => resolve(false);
        response.write(piece, (error) => resolve(error === undefined || error === null));
      });
      pace.took(piece.length);
      if (!isTaken) return;
    }
  } catch (error) {
    // When the caller leaves, the stream ends with an error, which is not a fault of the service.
    if (gone.aborted || response.destroyed) return;
    throw error;
  } finally {
    pace.stop();
  }
  // The connection cannot continue after a response that is not as long as announced.
  if (file.bytes !== undefined && log.bytesOut !== file.bytes && !gone.aborted)
    throw new Error('the length of the file differs from its Content-Length');
  response.end();
}

function readable(stream: Readable): Promise<void> {
  return new Promise((resolve, reject) => {
    if (stream.errored) return reject(stream.errored);
    if (stream.readableLength > 0 || stream.readableEnded) return resolve();
    stream.once('error', reject);
    stream.once('end', resolve);
    stream.once('close', resolve);
    stream.once('readable', () => {
      stream.off('error', reject);
      resolve();
    });
  });
}
