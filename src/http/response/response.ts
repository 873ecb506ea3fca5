import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { DomainError } from '../../domain/errors.js';
import { ChunkSizes } from '../body/chunk-sizes.js';
import type { Exchange } from '../exchange.js';
import { errorAnswer } from './error-response.js';

/** What an endpoint answers. */
export type Answer =
  | {
      readonly kind: 'json';
      readonly status: number;
      readonly body: unknown;
      readonly headers?: Readonly<Record<string, string>>;
    }
  | {
      readonly kind: 'text';
      readonly status: number;
      readonly mediaType: string;
      readonly text: string;
      readonly headers?: Readonly<Record<string, string>>;
    }
  /** The same bytes every time. */
  | {
      readonly kind: 'constant';
      readonly status: number;
      readonly mediaType: string;
      readonly bytes: Buffer;
      readonly headers?: Readonly<Record<string, string>>;
    }
  /** Without a body. `headers` may hold the Content-Type and Content-Length that the body would have. */
  | { readonly kind: 'empty'; readonly status: number; readonly headers: Readonly<Record<string, string>> }
  /** A refusal that needs headers of its own. */
  | {
      readonly kind: 'refusal';
      readonly error: DomainError;
      readonly headers: Readonly<Record<string, string>>;
    }
  | {
      readonly kind: 'stream';
      readonly status: number;
      readonly mediaType: string;
      readonly bytes: number;
      readonly stream: Readable;
      readonly headers?: Readonly<Record<string, string>>;
    };

export function json(status: number, body: unknown, headers?: Readonly<Record<string, string>>): Answer {
  return headers === undefined ? { kind: 'json', status, body } : { kind: 'json', status, body, headers };
}

/** Made into bytes once, for an answer that is large or asked for often. */
export function constantJson(status: number, body: unknown): Answer {
  return { kind: 'constant', status, mediaType: JSON_TYPE, bytes: Buffer.from(JSON.stringify(body)) };
}

const JSON_TYPE = 'application/json';
const NOTHING = Buffer.alloc(0);
/**
 * A rest of at most this size is read after the answer, so that the connection can serve the next request.
 */
const SMALL_REST = 65_536;
/** Of what follows a refusal, so many pieces may be of any size. */
const DRAINED_CHUNKS = 100;
/** How long a connection stays open behind the answer to a message that could not be parsed. */
export const LINGER_MS = 1000;

export async function send(exchange: Exchange, answer: Answer): Promise<void> {
  switch (answer.kind) {
    case 'json':
      sendText(exchange, answer.status, JSON_TYPE, JSON.stringify(answer.body), answer.headers);
      return;
    case 'text':
      sendText(exchange, answer.status, answer.mediaType, answer.text, answer.headers);
      return;
    case 'constant':
      sendBytes(exchange, answer.status, answer.mediaType, answer.bytes, answer.headers);
      return;
    case 'empty':
      sendWhole(exchange, answer.status, answer.headers, NOTHING);
      return;
    case 'refusal':
      sendError(exchange, answer.error, answer.headers);
      return;
    case 'stream':
      await sendStream(exchange, answer);
  }
}

/**
 * Answers a refusal. Without effect where the answer has begun: its connection is cut instead, for it cannot
 * be taken back.
 */
export function sendError(
  exchange: Exchange,
  error: DomainError,
  headers: Readonly<Record<string, string>> = {},
): void {
  if (exchange.response.headersSent) {
    exchange.response.destroy();
    return;
  }
  // The rest is as costly to read: a moment of it, so that the answer is not lost to a reset.
  if (error.reason === 'chunks_too_small') exchange.closing = exchange.broken = true;
  const { status, body, retryAfterSeconds } = errorAnswer(error);
  sendText(
    exchange,
    status,
    JSON_TYPE,
    body,
    retryAfterSeconds === undefined ? headers : { ...headers, 'Retry-After': String(retryAfterSeconds) },
  );
}

function sendText(
  exchange: Exchange,
  status: number,
  mediaType: string,
  text: string,
  extra: Readonly<Record<string, string>> | undefined,
): void {
  sendBytes(exchange, status, mediaType, Buffer.from(text), extra);
}

function sendBytes(
  exchange: Exchange,
  status: number,
  mediaType: string,
  bytes: Buffer,
  extra: Readonly<Record<string, string>> | undefined,
): void {
  sendWhole(
    exchange,
    status,
    { 'Content-Type': mediaType, 'Content-Length': String(bytes.length), ...extra },
    bytes,
  );
}

function sendWhole(
  exchange: Exchange,
  status: number,
  own: Readonly<Record<string, string>>,
  bytes: Buffer,
): void {
  const { request, response } = exchange;
  if (response.headersSent || response.destroyed || exchange.gone) return;
  exchange.bytesOut = bytes.length;
  const headers: Record<string, string> = { ...own, ...exchange.headers };
  if (exchange.closing) headers['Connection'] = 'close';
  if (request.complete || request.destroyed || exchange.awaitsContinue) {
    response.writeHead(status, headers);
    response.end(bytes);
    return;
  }
  // The caller is still sending. The whole answer goes out now; the response is ended, and with it the
  // connection, only when the rest has been read, because closing a socket that holds unread bytes resets it
  // and the answer would be lost.
  const rest =
    request.headers['transfer-encoding'] === undefined
      ? Number(request.headers['content-length'] ?? 0)
      : Infinity;
  const keep = rest <= SMALL_REST && !exchange.closing && !exchange.broken;
  if (!keep) {
    headers['Connection'] = 'close';
    exchange.closing = true;
  }
  response.writeHead(status, headers);
  response.write(bytes);
  drain(exchange);
}

/** Reads what is left of the request, within bounds, then ends the response. */
function drain(exchange: Exchange): void {
  const { request, response, limits } = exchange;
  const sizes = new ChunkSizes(DRAINED_CHUNKS);
  let left = limits.drainBytes;
  const cut = () => {
    response.end();
    request.socket.destroySoon();
  };
  const timer = setTimeout(cut, exchange.broken ? Math.min(LINGER_MS, limits.drainMs) : limits.drainMs);
  request.on('data', (chunk: Buffer) => {
    left -= chunk.length;
    if (left < 0 || !sizes.count(chunk.length)) cut();
  });
  request.once('end', () => response.end());
  request.once('close', () => response.end());
  // The request of an answer that has ended gets no `close` when its connection goes.
  response.once('close', () => clearTimeout(timer));
  request.resume();
}

async function sendStream(exchange: Exchange, answer: Extract<Answer, { kind: 'stream' }>): Promise<void> {
  const { request, response } = exchange;
  const headers: Record<string, string | number> = {
    'Content-Type': answer.mediaType,
    'Content-Length': answer.bytes,
    ...answer.headers,
    ...exchange.headers,
  };
  if (exchange.closing) headers['Connection'] = 'close';
  if (exchange.gone) {
    answer.stream.destroy();
    return;
  }
  // A queued file would else stay open until it is collected: not every version of Node tells the answers of
  // a cut connection.
  exchange.onGone = () => answer.stream.destroy();
  if (request.method === 'HEAD') {
    answer.stream.destroy();
    response.writeHead(answer.status, headers);
    response.end();
    return;
  }
  try {
    // The first bytes are awaited before the head goes out, so that a file that cannot be opened is still a
    // clean 5xx.
    await readable(answer.stream);
  } catch (error) {
    answer.stream.destroy();
    throw error;
  }
  if (response.headersSent || response.destroyed || exchange.gone) {
    answer.stream.destroy();
    return;
  }
  response.writeHead(answer.status, headers);
  let failed = false;
  answer.stream
    // Before whoever sends it: when the caller leaves, the stream is ended with the connection's error.
    .once('error', () => {
      failed = !exchange.gone && !response.destroyed;
    })
    .on('data', (chunk: Buffer) => {
      exchange.bytesOut += chunk.length;
    })
    // The connection cannot go on behind an answer that is shorter than it said.
    .once('end', () => {
      if (exchange.bytesOut === answer.bytes) return;
      failed = true;
      response.destroy(new Error('the file is not as long as it was'));
    });
  try {
    await pipeline(answer.stream, response);
  } catch (error) {
    // A caller that leaves while it is answered is no fault of ours.
    if (failed) throw error;
    response.destroy();
  }
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
