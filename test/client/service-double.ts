import { createHash } from 'node:crypto';
import http from 'node:http';
import type { AddressInfo } from 'node:net';

/** An answer of a route of the double. */
export interface Reply {
  readonly status: number;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** Whether to answer without reading the request to its end. */
  readonly early?: boolean;
  /** Whether to break the connection instead of answering. */
  readonly drop?: boolean;
  /** Whether to never answer. */
  readonly hang?: boolean;
  /** Breaks the connection after this many bytes of the body. */
  readonly cutAt?: number;
}

export interface Seen {
  readonly method: string;
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  readonly headers: http.IncomingHttpHeaders;
  readonly at: number;
  readonly connection: number;
  bytes: number;
  /** The first 64 KiB of the body. */
  text: string;
  /** The digest of the bytes between the header of the file part and the closing boundary. */
  fileSha256?: string;
}

/**
 * An HTTP server with scripted answers. It first gives the replies that are queued for a path, then its
 * ordinary one. The double keeps no body, so that a test of memory measures the client.
 */
export class ServiceDouble {
  readonly seen: Seen[] = [];
  /** Connections that have ended, by their number. */
  readonly ended = new Set<number>();
  url = '';
  verdict: object = { verdict: 'valid', good: true };
  readonly #queued = new Map<string, Reply[]>();
  /** The response of a path when nothing is queued. */
  readonly #routes = new Map<string, (seen: Seen) => Reply | Promise<Reply>>();
  readonly #server = http.createServer((request, response) => void this.#answer(request, response));
  #connections = 0;
  #slots = 0;

  constructor() {
    // The tests cover a client's use of connections, so a slow machine must not end an idle one.
    this.#server.keepAliveTimeout = 0;
    this.#server.on('connection', (socket) => {
      this.#connections += 1;
      const ordinal = this.#connections;
      Object.assign(socket, { ordinal }).on('close', () => this.ended.add(ordinal));
      socket.on('error', () => undefined);
    });
  }

  async start(): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    this.url = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
    return this;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  /** @param path without the slot's id: `/uploads` is the presigned post */
  queue(path: string, ...replies: Reply[]): this {
    this.#queued.set(path, [...(this.#queued.get(path) ?? []), ...replies]);
    return this;
  }

  on(path: string, answer: (seen: Seen) => Reply | Promise<Reply>): this {
    this.#routes.set(path, answer);
    return this;
  }

  requests(path: string): Seen[] {
    return this.seen.filter((seen) => routeOf(seen.path) === path);
  }

  async #answer(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://double');
    const path = url.pathname;
    const route = routeOf(path);
    const seen: Seen = {
      method: request.method ?? '',
      path,
      query: Object.fromEntries(url.searchParams),
      headers: request.headers,
      at: performance.now(),
      connection: (request.socket as { ordinal?: number }).ordinal ?? 0,
      bytes: 0,
      text: '',
    };
    this.seen.push(seen);
    const reply = this.#queued.get(route)?.shift();
    request.on('error', () => undefined);
    if (reply?.hang === true) return;
    if (reply?.drop === true) {
      request.socket.destroy();
      return;
    }
    if (reply?.early === true) {
      this.#send(response, reply);
      // Reads on for a limited time, like the service, so that a reset does not destroy the answer.
      request.resume();
      setTimeout(() => request.socket.destroy(), 300).unref();
      return;
    }
    try {
      await readBody(request, seen);
    } catch {
      return;
    }
    this.#send(
      response,
      reply ?? (await this.#routes.get(route)?.(seen)) ?? this.#ordinary(route, path, seen),
    );
  }

  #ordinary(route: string, path: string, seen: Seen): Reply {
    switch (route) {
      case '/v1/uploads': {
        this.#slots += 1;
        const uploadId = `upl_${this.#slots}`;
        return {
          status: 201,
          body: {
            uploadId,
            url: `${this.url}/uploads/${uploadId}`,
            fields: { policy: 'p"1', signature: 's1' },
            maxBytes: 68_157_440,
            expiresAt: 2_000_000_000,
            later: 'addition',
          },
        };
      }
      case '/uploads':
        return {
          status: 201,
          body: { uploadId: path.split('/').pop(), bytes: seen.bytes, sha256: seen.fileSha256 },
        };
      case '/v1/verify':
      case '/v1/verifications':
        return { status: 200, body: this.verdict };
      case '/v1/health':
        return { status: 200, body: { ok: true, version: '1', commit: 'c', deployedAt: 1 } };
      default:
        return { status: 404, body: { error: 'no such route', code: 'not_found' } };
    }
  }

  #send(response: http.ServerResponse, { status, body, headers = {}, cutAt }: Reply): void {
    const bytes = Buffer.isBuffer(body)
      ? body
      : Buffer.from(typeof body === 'string' ? body : JSON.stringify(body ?? {}));
    response.writeHead(status, {
      'content-type': 'application/json',
      'x-request-id': `rq_${this.seen.length}`,
      'content-length': bytes.length,
      ...headers,
    });
    if (cutAt === undefined) response.end(bytes);
    else response.write(bytes.subarray(0, cutAt), () => response.destroy());
  }
}

function routeOf(path: string): string {
  return path.startsWith('/uploads/') ? '/uploads' : path;
}

/** The end of the head of the last part. Every client names the file `audio`. */
const FILE_HEADER = 'filename="audio"\r\nContent-Type: application/octet-stream\r\n\r\n';

async function readBody(request: http.IncomingMessage, seen: Seen): Promise<void> {
  const tailBytes = Buffer.byteLength(
    `\r\n--${/boundary=(.*)$/.exec(request.headers['content-type'] ?? '')?.[1] ?? ''}--\r\n`,
  );
  const hash = createHash('sha256');
  let pending = Buffer.alloc(0);
  let inFile = false;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    seen.bytes += chunk.length;
    if (seen.text.length < 65_536) seen.text += chunk.toString('latin1');
    pending = Buffer.concat([pending, chunk]);
    if (!inFile) {
      const at = pending.indexOf(FILE_HEADER);
      if (at < 0) continue;
      inFile = true;
      pending = pending.subarray(at + FILE_HEADER.length);
    }
    // Everything except what may be the closing boundary.
    const done = Math.max(0, pending.length - tailBytes);
    hash.update(pending.subarray(0, done));
    pending = pending.subarray(done);
  }
  if (inFile) seen.fileSha256 = hash.digest('hex');
}
