import type { Socket } from 'node:net';
import { createServer, type Server, type TLSSocket } from 'node:tls';
import type { TlsIdentity } from '../../ports/tls-identity.js';

export interface HandshakeLimits {
  /** The most concurrent TLS handshakes. One more cuts the oldest. */
  readonly handshakes: number;
  /** The time limit of a handshake, in milliseconds. */
  readonly handshakeMs: number;
}

/**
 * Performs TLS handshakes before connections reach a listener. Connections without a finished handshake have
 * a time limit and a count of their own, and never keep out a new connection.
 */
export class TlsFront {
  readonly #server: Server;
  readonly #handshakes: number;
  /** The running handshakes by connection name, the oldest first. */
  readonly #underWay = new Map<string, Socket>();

  /** @param secured receives each connection whose handshake is complete */
  constructor(
    identity: TlsIdentity,
    { handshakes, handshakeMs }: HandshakeLimits,
    secured: (socket: TLSSocket) => void,
  ) {
    this.#handshakes = handshakes;
    // This server does not listen. Connections are passed to it.
    this.#server = createServer({
      ...contextOf(identity),
      ALPNProtocols: ['http/1.1'],
      handshakeTimeout: handshakeMs,
    });
    this.#server.on('secureConnection', (socket) => {
      this.#underWay.delete(nameOf(socket));
      socket.disableRenegotiation();
      secured(socket);
    });
    // A caller without a finished handshake cannot read a response.
    this.#server.on('tlsClientError', (_error, socket) => socket.destroy());
  }

  /** Starts the handshake on a new connection. */
  accept(socket: Socket): void {
    if (this.#underWay.size >= this.#handshakes) {
      const [name, oldest] = this.#underWay.entries().next().value!;
      this.#underWay.delete(name);
      oldest.destroy();
    }
    const name = nameOf(socket);
    this.#underWay.set(name, socket);
    socket.once('close', () => {
      // By now another connection may use the same address and port.
      if (this.#underWay.get(name) === socket) this.#underWay.delete(name);
    });
    this.#server.emit('connection', socket);
  }

  /** Uses another certificate from the next handshake on. */
  renew(identity: TlsIdentity): void {
    this.#server.setSecureContext(contextOf(identity));
  }

  /** Cuts the running handshakes. */
  close(): void {
    for (const socket of this.#underWay.values()) socket.destroy();
  }
}

function contextOf({ certificate, key }: TlsIdentity) {
  return { cert: certificate, key, minVersion: 'TLSv1.2' } as const;
}

/**
 * Returns a name for a connection, the peer's address and port. The name is unique while the connection
 * exists, and equal for the TLS socket and its TCP socket.
 */
function nameOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}
