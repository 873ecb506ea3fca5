import { subscribe } from 'node:diagnostics_channel';
import { connect, type Socket } from 'node:net';
import type { Test } from 'tap';
import type { ErrorCode } from '../../src/core/domain/errors.js';
import { STATUS_OF_CODE } from '../../src/service/contract/errors.js';
import { partnerContract, type SentRequest } from '../fixtures/contract-check.js';
import { until } from '../fixtures/until.js';

/** An answer as it came over the wire. */
export interface RawAnswer {
  readonly status: number;
  readonly headers: ReadonlyMap<string, string>;
  readonly body: Buffer;
}

/** The ends of connections at the servers of this process, by the port of the other end. */
const accepted = new Map<number | undefined, Socket>();
subscribe('net.server.socket', (message) => {
  const { socket } = message as { readonly socket: Socket };
  accepted.set(socket.remotePort, socket);
});

/** A connection that sends exactly the bytes it is given and reads answers one by one. */
export class RawClient {
  readonly socket: Socket;
  readonly #head: boolean;
  #buffer: Buffer = Buffer.alloc(0);
  #closed = false;
  #wake: (() => void) | undefined;

  /** @param options.head answers have no body, as those to HEAD */
  constructor(port: number, options: { readonly head?: boolean } = {}) {
    this.#head = options.head ?? false;
    this.socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    this.socket.on('data', (chunk) => {
      this.#buffer = Buffer.concat([this.#buffer, chunk]);
      this.#wake?.();
    });
    const closed = () => {
      this.#closed = true;
      this.#wake?.();
    };
    this.socket.on('end', closed).on('close', closed).on('error', closed);
  }

  /** Resolves when the bytes were taken by the kernel. */
  send(data: string | Uint8Array): Promise<void> {
    return new Promise((resolve) =>
      this.socket.write(typeof data === 'string' ? Buffer.from(data, 'latin1') : data, () => resolve()),
    );
  }

  /** The end of this connection at a server of this process, or undefined until the server has accepted it. */
  get peer(): Socket | undefined {
    return accepted.get(this.socket.localPort);
  }

  /** Resolves when a server of this process has read all that was sent. */
  async arrived(): Promise<void> {
    await until(() => this.peer?.bytesRead === this.socket.bytesWritten);
    // In the same turn of the event loop the bytes come to the parser.
    await new Promise((resolve) => setImmediate(resolve));
  }

  /** Returns the next answer, or undefined if the connection ends before an answer is complete. */
  async read(timeoutMs = 60_000): Promise<RawAnswer | undefined> {
    const deadline = Date.now() + timeoutMs;
    for (;;) {
      const answer = this.#parse();
      if (answer !== undefined) return answer;
      if (this.#closed) return undefined;
      if (!(await this.#more(deadline))) throw new Error('no answer in time');
    }
  }

  /** Returns true if the other side closes in time. */
  async ended(timeoutMs = 60_000): Promise<boolean> {
    const deadline = Date.now() + timeoutMs;
    while (!this.#closed) if (!(await this.#more(deadline))) return false;
    return true;
  }

  get unread(): number {
    return this.#buffer.length;
  }

  destroy(): void {
    this.socket.destroy();
  }

  #more(deadline: number): Promise<boolean> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve(false), Math.max(0, deadline - Date.now()));
      this.#wake = () => {
        clearTimeout(timer);
        this.#wake = undefined;
        resolve(true);
      };
    });
  }

  #parse(): RawAnswer | undefined {
    const end = this.#buffer.indexOf('\r\n\r\n');
    if (end < 0) return undefined;
    const [statusLine, ...lines] = this.#buffer.subarray(0, end).toString('latin1').split('\r\n');
    const status = Number(statusLine!.split(' ')[1]);
    const headers = new Map(
      lines.map((line) => [
        line.slice(0, line.indexOf(':')).toLowerCase(),
        line.slice(line.indexOf(':') + 1).trim(),
      ]),
    );
    const length = this.#head || status === 100 ? 0 : Number(headers.get('content-length') ?? 0);
    if (this.#buffer.length < end + 4 + length) return undefined;
    const body = Buffer.from(this.#buffer.subarray(end + 4, end + 4 + length));
    this.#buffer = this.#buffer.subarray(end + 4 + length);
    return { status, headers, body };
  }
}

/** Sends one request on its own connection and reads one answer, which is held to the contract. */
export async function ask(
  port: number,
  data: string | Uint8Array,
  options: { readonly head?: boolean } = {},
): Promise<RawAnswer | undefined> {
  const client = new RawClient(port, options);
  try {
    await client.send(data);
    const answer = await client.read();
    if (answer !== undefined) partnerContract.assert(sentRequest(data), answer);
    return answer;
  } finally {
    client.destroy();
  }
}

/**
 * Returns the request that was made, if the bytes begin with something that could be a request. It does not
 * look at a chunked body.
 */
function sentRequest(data: string | Uint8Array): SentRequest | undefined {
  const bytes = typeof data === 'string' ? Buffer.from(data, 'latin1') : Buffer.from(data);
  const end = bytes.indexOf('\r\n\r\n');
  const [line, ...lines] = bytes.subarray(0, Math.max(0, end)).toString('latin1').split('\r\n');
  const match = /^([A-Z]+) (\S+) HTTP\/1\.[01]$/.exec(line!);
  if (match === null) return undefined;
  const headers = Object.fromEntries(
    lines.map((header) => [
      header.slice(0, header.indexOf(':')).toLowerCase(),
      header.slice(header.indexOf(':') + 1).trim(),
    ]),
  );
  const length = headers['content-length'];
  return {
    method: match[1]!,
    target: match[2]!,
    headers,
    ...(length === undefined ? {} : { body: bytes.subarray(end + 4) }),
  };
}

/** Returns a request with `Host`, the given headers, and a body with its length. */
export function request(
  method: string,
  path: string,
  headers: Readonly<Record<string, string>> = {},
  body: string | Uint8Array = '',
): Buffer {
  const bytes = Buffer.from(body as string);
  const all: Record<string, string> = {
    Host: 'api.example.com',
    ...(bytes.length > 0 ? { 'Content-Length': String(bytes.length) } : {}),
    ...headers,
  };
  const head = `${method} ${path} HTTP/1.1\r\n${Object.entries(all)
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('')}\r\n`;
  return Buffer.concat([Buffer.from(head, 'latin1'), bytes]);
}

/** Holds an error to rules 2.12 and 5.1. */
export function matchError(
  t: Test,
  answer: RawAnswer | undefined,
  code: ErrorCode,
  reason: string | undefined,
  name: string,
): void {
  if (answer === undefined) {
    t.fail(`${name}: no answer`);
    return;
  }
  const body = JSON.parse(answer.body.toString()) as Record<string, unknown>;
  t.match(
    {
      status: answer.status,
      code: body['code'],
      reason: body['reason'],
      type: answer.headers.get('content-type'),
      id: answer.headers.get('x-request-id'),
      error: body['error'],
    },
    {
      status: STATUS_OF_CODE[code],
      code,
      reason,
      type: 'application/json',
      id: /^rq_[0-9A-Z]{26}$/,
      error: /^[A-Za-z].*\.$/,
    },
    name,
  );
  t.notOk(
    answer.headers.get('x-powered-by') ??
      answer.headers.get('etag') ??
      answer.headers.get('access-control-allow-origin'),
    `${name}: no header that was ruled out`,
  );
  if (answer.status === 503 || answer.status === 429)
    t.match(answer.headers.get('retry-after'), /^[1-9]\d*$/, `${name}: Retry-After`);
}

export function jsonOf(answer: RawAnswer | undefined): Record<string, unknown> {
  return JSON.parse(answer!.body.toString()) as Record<string, unknown>;
}

export interface FormPart {
  readonly name?: string;
  readonly filename?: string;
  readonly type?: string;
  readonly body: string | Uint8Array;
  /** Replaces the whole part head. */
  readonly head?: string;
}

/** Returns a multipart body. `closing` replaces what follows the last part. */
export function form(
  parts: readonly FormPart[],
  {
    boundary = 'XBOUNDARYX',
    preamble = '',
    closing,
  }: { readonly boundary?: string; readonly preamble?: string; readonly closing?: string } = {},
): Buffer {
  const pieces: Buffer[] = [Buffer.from(preamble)];
  parts.forEach(({ name, filename, type, body, head }, index) => {
    const disposition = `Content-Disposition: form-data${name === undefined ? '' : `; name="${name}"`}${filename === undefined ? '' : `; filename="${filename}"`}`;
    const lines = head ?? `${disposition}\r\n${type === undefined ? '' : `Content-Type: ${type}\r\n`}`;
    pieces.push(
      Buffer.from(`${index === 0 ? '' : '\r\n'}--${boundary}\r\n${lines}\r\n`),
      Buffer.from(body as string),
    );
  });
  pieces.push(Buffer.from(closing ?? `\r\n--${boundary}--\r\n`));
  return Buffer.concat(pieces);
}
