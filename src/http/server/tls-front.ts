import type { Socket } from 'node:net';
import { createServer, type Server, type TLSSocket } from 'node:tls';
import type { TlsIdentity } from '../../ports/tls-identity.js';

export interface HandshakeLimits {
  /** Handshakes under way at once: for one more, the oldest is cut. */
  readonly handshakes: number;
  /** A handshake must be complete in this time. */
  readonly handshakeMs: number;
}

/**
 * TLS on connections before they come to a listener. A caller without a finished handshake has shown nothing
 * yet: such connections have a time and a number of their own, and none of them keeps a newcomer out.
 */
export class TlsFront {
  readonly #server: Server;
  readonly #handshakes: number;
  /** The oldest first. */
  readonly #underWay = new Map<string, Socket>();

  /** @param secured takes a connection whose handshake is complete */
  constructor(
    identity: TlsIdentity,
    { handshakes, handshakeMs }: HandshakeLimits,
    secured: (socket: TLSSocket) => void,
  ) {
    this.#handshakes = handshakes;
    // This server listens to nothing: connections are given to it.
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
    // No caller is there yet who could read a response.
    this.#server.on('tlsClientError', (_error, socket) => socket.destroy());
  }

  /** Begins the handshake on a new connection. */
  accept(socket: Socket): void {
    if (this.#underWay.size >= this.#handshakes) {
      const [name, oldest] = this.#underWay.entries().next().value!;
      this.#underWay.delete(name);
      oldest.destroy();
    }
    const name = nameOf(socket);
    this.#underWay.set(name, socket);
    socket.once('close', () => {
      // Another connection may come from the same port by now.
      if (this.#underWay.get(name) === socket) this.#underWay.delete(name);
    });
    this.#server.emit('connection', socket);
  }

  /** From the next handshake on. */
  renew(identity: TlsIdentity): void {
    this.#server.setSecureContext(contextOf(identity));
  }

  /** Cuts the handshakes that are under way. */
  close(): void {
    for (const socket of this.#underWay.values()) socket.destroy();
  }
}

function contextOf({ certificate, key }: TlsIdentity) {
  return { cert: certificate, key, minVersion: 'TLSv1.2' } as const;
}

/**
 * Name of a connection: the peer's address and port, unique while the connection lasts, and the same below
 * TLS and above it.
 */
function nameOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}
