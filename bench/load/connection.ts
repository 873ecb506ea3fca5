import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { defined } from '../../src/core/domain/defined.js';

export interface Reply {
  readonly status: number;
  /** The value of `Retry-After`, in seconds. */
  readonly retryAfterSeconds: number | undefined;
  readonly body: Buffer;
}

const HEAD_END = Buffer.from('\r\n\r\n');

/**
 * A kept-alive connection with one request in flight. It does little more than write and read the socket,
 * so that the load takes as little as possible of the machine it shares with the server.
 */
export class Connection {
  readonly #socket: Socket;
  #received: Buffer = Buffer.alloc(0);
  #waiting: { readonly resolve: (reply: Reply) => void; readonly reject: (error: Error) => void } | undefined;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on('data', (chunk: Buffer) => this.#take(chunk));
    socket.on('error', (error) => this.#fail(error));
    socket.on('close', () => this.#fail(new Error('the server closed the connection')));
  }

  /** @param localAddress loopback address of the caller's side; the system's choice where it is absent */
  static async open(port: number, localAddress?: string): Promise<Connection> {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true, ...defined({ localAddress }) });
    await once(socket, 'connect');
    return new Connection(socket);
  }

  /** @param parts the complete request; must not change until the reply is there */
  request(parts: readonly (Uint8Array | string)[]): Promise<Reply> {
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject };
      if (parts.length > 1) this.#socket.cork();
      for (const part of parts) this.#socket.write(part);
      if (parts.length > 1) this.#socket.uncork();
    });
  }

  close(): void {
    this.#socket.destroy();
  }

  #take(chunk: Buffer): void {
    this.#received = this.#received.length === 0 ? chunk : Buffer.concat([this.#received, chunk]);
    const headEnd = this.#received.indexOf(HEAD_END);
    if (headEnd < 0) return;
    const head = this.#received.toString('latin1', 0, headEnd);
    const length = Number(/^content-length: *(\d+)\r?$/im.exec(head)?.[1] ?? 0);
    const end = headEnd + 4 + length;
    if (this.#received.length < end) return;
    const retryAfter = /^retry-after: *(\d+)\r?$/im.exec(head)?.[1];
    const reply = {
      status: Number(head.slice(9, 12)),
      retryAfterSeconds: retryAfter === undefined ? undefined : Number(retryAfter),
      body: this.#received.subarray(headEnd + 4, end),
    };
    this.#received = this.#received.subarray(end);
    const waiting = this.#waiting;
    this.#waiting = undefined;
    waiting?.resolve(reply);
  }

  #fail(error: Error): void {
    this.#waiting?.reject(error);
    this.#waiting = undefined;
  }
}

export async function openConnections(port: number, count: number): Promise<Connection[]> {
  return Promise.all(Array.from({ length: count }, () => Connection.open(port)));
}
