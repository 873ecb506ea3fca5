/** A proxy of the bucket. It can refuse connections, delay answers, or withhold them. */

import type { AddressInfo } from 'node:net';
import { createServer, connect as dial, type Server, type Socket } from 'node:net';

export type BucketWay = 'open' | 'away' | 'slow' | 'late';

/** The delay of each piece of an answer in mode `slow`, in milliseconds. */
const SLOW_MS = 1500;

export class BucketProxy {
  readonly #server: Server;
  readonly #target: { readonly host: string; readonly port: number };
  readonly #sockets = new Set<Socket>();
  /** The answers that the proxy withholds. */
  #kept: (() => void)[] = [];
  #way: BucketWay = 'open';

  private constructor(target: URL) {
    this.#target = { host: target.hostname, port: Number(target.port) };
    this.#server = createServer((socket) => this.#join(socket));
  }

  static async open(target: string, host: string): Promise<BucketProxy> {
    const proxy = new BucketProxy(new URL(target));
    await new Promise<void>((resolve) => proxy.#server.listen(0, host, resolve));
    return proxy;
  }

  get endpoint(): string {
    const { address, port } = this.#server.address() as AddressInfo;
    return `http://${address}:${port}`;
  }

  turn(way: BucketWay): void {
    this.#way = way;
    if (way === 'away') for (const socket of this.#sockets) socket.destroy();
    const kept = this.#kept;
    this.#kept = [];
    for (const go of kept) go();
  }

  async close(): Promise<void> {
    this.turn('away');
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #join(client: Socket): void {
    if (this.#way === 'away') {
      client.destroy();
      return;
    }
    const server = dial(this.#target);
    for (const [socket, other] of [
      [client, server],
      [server, client],
    ] as const) {
      this.#sockets.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => {
        this.#sockets.delete(socket);
        other.destroy();
      });
    }
    client.pipe(server);
    server.on('data', (piece) => {
      const pass = (): void => {
        if (!client.destroyed) client.write(piece);
        server.resume();
      };
      if (this.#way === 'open') {
        if (!client.write(piece)) {
          server.pause();
          client.once('drain', () => server.resume());
        }
        return;
      }
      // The pause keeps later answers from overtaking the withheld ones.
      server.pause();
      if (this.#way === 'late') this.#kept.push(pass);
      else setTimeout(pass, SLOW_MS);
    });
  }
}
