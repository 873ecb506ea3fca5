import type { Socket } from 'node:net';
import type { ByteBudget } from '../byte-budget.js';
import type { ListenerLimits } from '../exchange.js';
import type { CallerAddresses } from './caller-address.js';
import { CallerConnection, type ConnectionWatch } from './connection.js';

/**
 * The share of the table that one address may use. Trusted proxies carry many callers and have no such limit.
 */
const SHARE_OF_AN_ADDRESS = 1 / 4;
/** The fill level from which the table counts as nearly full. */
const PRESSURE = 3 / 4;

/**
 * The open connections of a listener. A full table evicts one connection for each new connection. The first
 * choice is the oldest connection that has not sent a complete head. The second choice is the connection with
 * the longest idle time. The third choice is the connection that has not read for longest. Connections with a
 * running request are not evicted.
 */
export class ConnectionTable implements ConnectionWatch {
  readonly #limits: ListenerLimits;
  readonly #budget: ByteBudget;
  readonly #addresses: CallerAddresses;
  readonly #timedOut: (connection: CallerConnection) => void;
  readonly #all = new Set<CallerConnection>();
  readonly #byAddress = new Map<string, number>();
  /** Candidates for eviction, in this order. Within each set the first entry is evicted first. */
  readonly #headless = new Set<CallerConnection>();
  readonly #idle = new Set<CallerConnection>();
  readonly #unread = new Set<CallerConnection>();
  readonly #timer: NodeJS.Timeout;

  /** @param timedOut responds to a caller whose head did not arrive in time */
  constructor(
    limits: ListenerLimits,
    budget: ByteBudget,
    addresses: CallerAddresses,
    timedOut: (connection: CallerConnection) => void,
  ) {
    this.#limits = limits;
    this.#budget = budget;
    this.#addresses = addresses;
    this.#timedOut = timedOut;
    this.#timer = setInterval(() => this.#check(performance.now()), limits.checkMs).unref();
  }

  /**
   * Adds a connection.
   * @returns undefined, after closing the socket, when no connection can be evicted for it
   */
  admit(socket: Socket): CallerConnection | undefined {
    const peer = socket.remoteAddress;
    const address = this.#addresses.of(peer);
    const { connections } = this.#limits;
    const share = this.#addresses.trusts(peer) ? connections : Math.ceil(connections * SHARE_OF_AN_ADDRESS);
    const crowded = (this.#byAddress.get(address) ?? 0) >= share;
    if (
      (crowded && !this.#makeRoom((other) => other.address === address)) ||
      (this.#all.size >= connections && !this.#makeRoom(() => true))
    ) {
      socket.destroy();
      return undefined;
    }
    const connection = new CallerConnection(socket, address, this.#budget, this);
    this.#all.add(connection);
    this.#headless.add(connection);
    this.#byAddress.set(address, (this.#byAddress.get(address) ?? 0) + 1);
    connection.once('close', () => this.#forget(connection));
    return connection;
  }

  busy(connection: CallerConnection): void {
    this.#headless.delete(connection);
    this.#idle.delete(connection);
  }

  idle(connection: CallerConnection): void {
    if (this.#all.has(connection)) this.#idle.add(connection);
  }

  unread(connection: CallerConnection, waits: boolean): void {
    this.#unread.delete(connection);
    if (waits && this.#all.has(connection)) this.#unread.add(connection);
  }

  roomFor(connection: CallerConnection, bytes: number): boolean {
    // Evict connections of the address that fills the budget before those of other addresses.
    for (const mayGo of [(other: CallerConnection) => other.address === connection.address, () => true]) {
      for (const other of this.#unread) {
        if (other === connection || !mayGo(other)) continue;
        other.destroy();
        this.#forget(other);
        if (this.#budget.fits(connection.address, bytes)) return true;
      }
    }
    return false;
  }

  /**
   * Evicts the connection that has not read for longest, of those whose caller has shown no key.
   * @returns false when there is no such connection
   */
  evictStranger(): boolean {
    for (const connection of this.#unread) {
      if (connection.exchange?.log.partnerId !== undefined) continue;
      connection.destroy();
      this.#forget(connection);
      return true;
    }
    return false;
  }

  /** Closes connections without a running request, except new connections whose first head has begun. */
  closeIdle(): void {
    for (const connection of this.#idle) connection.destroySoon();
    for (const connection of this.#headless) if (connection.headSince === undefined) connection.destroySoon();
  }

  closeAll(): void {
    for (const connection of this.#all) connection.destroy();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #makeRoom(mayGo: (connection: CallerConnection) => boolean): boolean {
    for (const kind of [this.#headless, this.#idle, this.#unread]) {
      for (const connection of kind) {
        if (!mayGo(connection)) continue;
        connection.destroy();
        this.#forget(connection);
        return true;
      }
    }
    return false;
  }

  /** Removes an evicted connection immediately, because its close event arrives later. */
  #forget(connection: CallerConnection): void {
    if (!this.#all.delete(connection)) return;
    this.#headless.delete(connection);
    this.#idle.delete(connection);
    this.#unread.delete(connection);
    const left = this.#byAddress.get(connection.address)! - 1;
    if (left === 0) this.#byAddress.delete(connection.address);
    else this.#byAddress.set(connection.address, left);
  }

  #check(now: number): void {
    const { headersMs, firstByteMs, connections } = this.#limits;
    const silenceMs = this.#all.size > connections * PRESSURE ? Math.min(firstByteMs, headersMs) : headersMs;
    for (const connection of this.#headless) {
      const { headSince, openedAt } = connection;
      if (now - openedAt > headersMs || (headSince === undefined && now - openedAt > silenceMs))
        this.#timedOut(connection);
    }
    // Between two requests a connection may be silent for the keep-alive time. Once a head has begun,
    // `headersMs` applies.
    for (const connection of this.#idle)
      if (connection.headSince !== undefined && now - connection.headSince > headersMs)
        this.#timedOut(connection);
  }
}
