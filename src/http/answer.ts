import { pipeline } from 'node:stream/promises';
import type { Readable } from 'node:stream';
import type { DomainError } from '../domain/errors.js';
import { errorAnswer } from './error-body.js';
import type { Exchange } from './exchange.js';

/** What an endpoint answers. */
export type Answer =
  | { readonly kind: 'json'; readonly status: number; readonly body: unknown; readonly headers?: Readonly<Record<string, string>> }
  | { readonly kind: 'text'; readonly status: number; readonly mediaType: string; readonly text: string; readonly headers?: Readonly<Record<string, string>> }
  /** Without a body. `headers` may hold the Content-Type and Content-Length that the body would have. */
  | { readonly kind: 'empty'; readonly status: number; readonly headers: Readonly<Record<string, string>> }
  /** A refusal that needs headers of its own. */
  | { readonly kind: 'refusal'; readonly error: DomainError; readonly headers: Readonly<Record<string, string>> }
  | { readonly kind: 'stream'; readonly status: number; readonly mediaType: string; readonly bytes: number; readonly stream: Readable; readonly headers?: Readonly<Record<string, string>> };

export function json(status: number, body: unknown, headers?: Readonly<Record<string, string>>): Answer {
  return headers === undefined ? { kind: 'json', status, body } : { kind: 'json', status, body, headers };
}

const JSON_TYPE = 'application/json';
/** A rest of at most this size is read after the answer, so that the connection can serve the next request. */
const SMALL_REST = 65_536;
/** How long a connection stays open behind the answer to a message that could not be parsed. */
export const LINGER_MS = 1_000;

export async function send(exchange: Exchange, answer: Answer): Promise<void> {
  switch (answer.kind) {
    case 'json':
      sendText(exchange, answer.status, JSON_TYPE, JSON.stringify(answer.body), answer.headers);
      return;
    case 'text':
      sendText(exchange, answer.status, answer.mediaType, answer.text, answer.headers);
      return;
    case 'empty':
      sendBytes(exchange, answer.status, answer.headers, '');
      return;
    case 'refusal':
      sendError(exchange, answer.error, answer.headers);
      return;
    case 'stream':
      await sendStream(exchange, answer);
  }
}

/** Answers a refusal. Without effect where the answer has begun: its connection is cut instead, for it cannot be taken back. */
export function sendError(exchange: Exchange, error: DomainError, headers: Readonly<Record<string, string>> = {}): void {
  if (exchange.response.headersSent) {
    exchange.response.destroy();
    return;
  }
  const { status, body, retryAfterSeconds } = errorAnswer(error);
  sendText(exchange, status, JSON_TYPE, body, retryAfterSeconds === undefined ? headers : { ...headers, 'Retry-After': String(retryAfterSeconds) });
}

function sendText(exchange: Exchange, status: number, mediaType: string, text: string, extra: Readonly<Record<string, string>> | undefined): void {
  sendBytes(exchange, status, { 'Content-Type': mediaType, 'Content-Length': String(Buffer.byteLength(text)), ...extra }, text);
}

function sendBytes(exchange: Exchange, status: number, own: Readonly<Record<string, string>>, text: string): void {
  const { request, response } = exchange;
  if (response.headersSent || response.destroyed || request.socket.destroyed) return;
  exchange.bytesOut = Buffer.byteLength(text);
  const headers: Record<string, string> = { ...own, ...exchange.headers };
  if (exchange.closing) headers['Connection'] = 'close';
  if (request.complete || request.destroyed || exchange.awaitsContinue) {
    response.writeHead(status, headers);
    response.end(text);
    return;
  }
  // The caller is still sending. The whole answer goes out now; the response is ended, and with it the connection, only when
  // the rest has been read, because closing a socket that holds unread bytes resets it and the answer would be lost.
  const rest = request.headers['transfer-encoding'] === undefined ? Number(request.headers['content-length'] ?? 0) : Infinity;
  const keep = rest <= SMALL_REST && !exchange.closing && !exchange.broken;
  if (!keep) {
    headers['Connection'] = 'close';
    exchange.closing = true;
  }
  response.writeHead(status, headers);
  response.write(text);
  drain(exchange);
}

/** Reads what is left of the request, within bounds, then ends the response. */
function drain(exchange: Exchange): void {
  const { request, response, limits } = exchange;
  let left = limits.drainBytes;
  const cut = () => {
    response.end();
    request.socket.destroySoon();
  };
  const timer = setTimeout(cut, exchange.broken ? Math.min(LINGER_MS, limits.drainMs) : limits.drainMs);
  request.on('data', (chunk: Buffer) => {
    left -= chunk.length;
    if (left < 0) cut();
  });
  request.once('end', () => response.end());
  request.once('close', () => response.end());
  // The request of an answer that has ended gets no `close` when its connection goes.
  response.once('close', () => clearTimeout(timer));
  request.resume();
}

async function sendStream(exchange: Exchange, answer: Extract<Answer, { kind: 'stream' }>): Promise<void> {
  const { request, response } = exchange;
  const headers: Record<string, string | number> = { 'Content-Type': answer.mediaType, 'Content-Length': answer.bytes, ...answer.headers, ...exchange.headers };
  if (exchange.closing) headers['Connection'] = 'close';
  if (request.method === 'HEAD') {
    answer.stream.destroy();
    response.writeHead(answer.status, headers);
    response.end();
    return;
  }
  try {
    // The first bytes are awaited before the head goes out, so that a file that cannot be opened is still a clean 5xx.
    await readable(answer.stream);
  } catch (error) {
    answer.stream.destroy();
    throw error;
  }
  if (response.headersSent || response.destroyed) {
    answer.stream.destroy();
    return;
  }
  response.writeHead(answer.status, headers);
  answer.stream
    .on('data', (chunk: Buffer) => {
      exchange.bytesOut += chunk.length;
    })
    // The connection cannot go on behind an answer that is shorter than it said.
    .once('end', () => {
      if (exchange.bytesOut !== answer.bytes) response.destroy(new Error('the file is not as long as it was'));
    });
  await pipeline(answer.stream, response);
}

function readable(stream: Readable): Promise<void> {
  return new Promise((resolve, reject) => {
    if (stream.errored) return reject(stream.errored);
    if (stream.readableLength > 0 || stream.readableEnded) return resolve();
    stream.once('error', reject);
    stream.once('end', resolve);
    stream.once('readable', () => {
      stream.off('error', reject);
      resolve();
    });
  });
}
