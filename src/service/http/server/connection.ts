import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import type { ByteBudget } from '../byte-budget.js';
import type { Exchange } from '../exchange.js';

const HEAD_END = Buffer.from('\r\n\r\n');
const NOTHING = Buffer.alloc(0);
/** The most bytes of an unfinished head that the parser gets in one slice. */
const HEAD_SLICE = 1024;
/**
 * The most bytes of a chunked body that the parser gets in one slice. Only the parser knows where a chunked
 * body ends. Requests that follow it in the same slice wait for their turn.
 */
const CHUNKED_SLICE = 4096;
const SLICES_OF_A_TURN = 4;
/** The assumed memory cost, in bytes, of a request that waits for its turn. */
const WAITING_BYTES = 4096;
/**
 * The input, in bytes, that a connection may hold without using the budget. A request with a small body fits.
 */
const FREE_BYTES = 8192;

/** Receives the state of a connection. The table uses the states to choose which connection to evict. */
export interface ConnectionWatch {
  /** Records that a request has begun. */
  busy(connection: CallerConnection): void;
  /** Records that the response was written to the network, and that no other request has begun. */
  idle(connection: CallerConnection): void;
  /**
   * Records that output waits for the caller to read it (`waits`), or that all of it was written. The connection
   * repeats the call with each progress.
   */
  unread(connection: CallerConnection, waits: boolean): void;
  /**
   * Frees memory for output that the caller does not read, by evicting other connections.
   * @returns false when no other connection can be evicted
   */
  roomFor(connection: CallerConnection, bytes: number): boolean;
}

/**
 * A caller's connection, between the socket and the HTTP parser. Requests of a connection run one at a time.
 * RFC 9112, 9.3.2 allows only safe methods to run in parallel, and responses must keep their order. The
 * parser gets the bytes of one message at a time. The next message follows once the response has been written
 * to the network. Until then pipelined bytes stay in the caller's send buffer.
 */
export class CallerConnection extends Duplex {
  readonly socket: Socket;
  /** The address group of the peer, as limits per caller use it. */
  readonly address: string;
  readonly openedAt = performance.now();
  /** The time at which the first byte of the expected head arrived. */
  headSince: number | undefined;
  /** True once a first request has begun. */
  served = false;
  #exchange: Exchange | undefined;
  /** Gives up the exchange when the connection closes. */
  #leave: (() => void) | undefined;
  readonly #budget: ByteBudget;
  readonly #watch: ConnectionWatch;
  readonly #chunks: Buffer[] = [];
  #held = 0;
  #charged = 0;
  #outCharged = 0;
  /** True when the parser has asked for more input. */
  #wanted = false;
  #inputEnded = false;
  /** True when the connection ends with the response that is being sent. No further request is read. */
  #closing = false;
  /** The request whose body is being read. */
  #reading: IncomingMessage | undefined;
  /** A lower bound of the bytes that a body with Content-Length still needs. */
  #bodyLeft = 0;
  #sliceLength = 0;
  #sliceCut = false;
  #headBytes = 0;
  /** The last bytes of a head that arrived in several slices. */
  #tail: Buffer = NOTHING;
  readonly #waiting: (() => void)[] = [];
  #advancing = false;
  #slices = 0;
  #yielding = false;

  constructor(socket: Socket, address: string, budget: ByteBudget, watch: ConnectionWatch) {
    super({
      allowHalfOpen: true,
      decodeStrings: false,
      readableHighWaterMark: HEAD_SLICE,
      writableHighWaterMark: socket.writableHighWaterMark,
    });
    this.socket = socket;
    this.address = address;
    this.#budget = budget;
    this.#watch = watch;
    // An `error` event without a listener would end the process. Callers' errors are handled elsewhere.
    this.on('error', () => {});
    this.once('close', () => this.#leave?.());
    socket
      .on('data', (chunk: Buffer) => this.#onData(chunk))
      .on('end', () => {
        this.#inputEnded = true;
        this.emit('inputEnd');
        this.#feed();
      })
      .on('timeout', () => this.emit('timeout'))
      .on('error', (error) => this.destroy(error))
      .on('close', () => this.destroy());
  }

  get remoteAddress(): string | undefined {
    return this.socket.remoteAddress;
  }

  /** Returns true when bytes after the current message have certainly arrived. */
  get followed(): boolean {
    const chunked = this.#reading?.headers['transfer-encoding'] !== undefined;
    return !chunked && this.#held > this.#bodyLeft;
  }

  /** Returns true when the current message is only a head, and the parser got no bytes after it. */
  get endsAtHead(): boolean {
    const chunked = this.#reading?.headers['transfer-encoding'] !== undefined;
    return this.#sliceCut && !chunked && this.#bodyLeft === 0;
  }

  /**
   * Returns true once the caller has ended its half of the connection. `inputEnd` is emitted at that moment.
   */
  get inputEnded(): boolean {
    return this.#inputEnded;
  }

  get exchange(): Exchange | undefined {
    return this.#exchange;
  }

  /** Sets the socket's timeout. Node calls it to time idle connections. */
  setTimeout(ms: number): this {
    this.socket.setTimeout(ms);
    return this;
  }

  /** Ends the connection once everything has been written, as a socket's method of this name does. */
  destroySoon(): void {
    // The rest of the body is not needed any more.
    this.#reading = undefined;
    this.closing();
    if (this.writable) this.end();
    if (this.writableFinished) this.destroy();
    else this.once('finish', () => this.destroy());
  }

  /**
   * Stops processing after the last response (RFC 9112, 9.6). Keeps reading input, because closing a socket
   * with unread bytes resets the connection.
   */
  closing(): void {
    this.#closing = true;
    this.#waiting.length = 0;
    this.#feed();
  }

  /**
   * Accepts a request whose head is complete. Runs `begin` now, or after the responses to earlier requests.
   */
  arrived(request: IncomingMessage, begin: () => void): void {
    this.#reading = request;
    this.headSince = undefined;
    this.#headBytes = 0;
    this.#tail = NOTHING;
    const length = Number(request.headers['content-length'] ?? 0);
    this.#bodyLeft = Number.isSafeInteger(length)
      ? Math.max(0, this.#sliceCut ? length : length - this.#sliceLength)
      : 0;
    this.inTurn(begin);
  }

  /** Runs a step after the responses to all earlier requests. */
  inTurn(step: () => void): void {
    if (this.#closing) return;
    if (this.#exchange === undefined && this.#waiting.length === 0) step();
    else this.#waiting.push(step);
  }

  /** @param leave called if the connection closes before the exchange has ended */
  begin(exchange: Exchange, leave: () => void): void {
    this.#exchange = exchange;
    this.#leave = leave;
    this.served = true;
    this.#watch.busy(this);
  }

  /** Records that the response was written to the network. */
  ended(exchange: Exchange): void {
    if (this.#exchange !== exchange) return;
    this.#exchange = this.#leave = undefined;
    if (exchange.message.isLast) {
      // Node closes the connection itself when the response has `Connection: close`. A response without this
      // header may have begun before the request's body broke off.
      this.destroySoon();
      return;
    }
    this.#watch.idle(this);
    if (this.#waiting.length === 0 && this.#held === 0) {
      this.#feed();
      return;
    }
    // Let other connections run between two requests of one connection.
    if (this.#advancing) return;
    this.#advancing = true;
    setImmediate(() => {
      this.#advancing = false;
      if (this.destroyed || this.#closing) return;
      if (this.#exchange === undefined) this.#waiting.shift()?.();
      this.#feed();
    });
  }

  override _read(): void {
    this.#wanted = true;
    this.#feed();
  }

  override _write(
    chunk: Buffer | string,
    encoding: BufferEncoding,
    done: (error?: Error | null) => void,
  ): void {
    this.socket.write(chunk, encoding, (error) => this.#wrote(error, done));
    this.#countOutput();
  }

  override _writev(
    chunks: { chunk: Buffer | string; encoding: BufferEncoding }[],
    done: (error?: Error | null) => void,
  ): void {
    // Node ends each response with an empty write. Only its callback matters.
    const [only, ...more] = chunks.filter(({ chunk }) => chunk.length > 0);
    if (more.length === 0) {
      this._write(only?.chunk ?? NOTHING, only?.encoding ?? 'utf8', done);
      return;
    }
    this.socket.cork();
    chunks.forEach(({ chunk, encoding }, i) =>
      this.socket.write(
        chunk,
        encoding,
        i === chunks.length - 1 ? (error) => this.#wrote(error, done) : undefined,
      ),
    );
    this.socket.uncork();
    this.#countOutput();
  }

  override _final(done: (error?: Error | null) => void): void {
    this.socket.end(() => done());
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#chunks.length = 0;
    this.#waiting.length = 0;
    this.#held = 0;
    this.#headBytes = 0;
    this.#finishInput();
    this.#finishOutput(0);
    this.socket.destroy();
    done(error);
  }

  #onData(chunk: Buffer): void {
    if (this.destroyed) return;
    this.#chunks.push(chunk);
    this.#held += chunk.length;
    if (this.#exchange === undefined && this.#waiting.length === 0) this.headSince ??= performance.now();
    this.#feed();
  }

  /** Passes the parser the bytes that it may read. Pauses the socket while any bytes are left. */
  #feed(): void {
    if (this.destroyed) return;
    if (this.#closing && !this.#readsBody()) {
      this.#chunks.length = 0;
      this.#held = 0;
    }
    while (this.#wanted && this.#held > 0 && !this.#yielding && this.#mayRead()) {
      this.#wanted = false;
      this.push(this.#slice());
      if (this.destroyed) return;
      this.#slices += 1;
      if (this.#slices === SLICES_OF_A_TURN) this.#yield();
    }
    if (this.#wanted && this.#held === 0 && this.#inputEnded && this.#mayRead()) {
      this.#wanted = false;
      this.push(null);
    }
    if (this.#held === 0) {
      if (this.socket.isPaused()) this.socket.resume();
    } else if (!this.socket.isPaused()) {
      this.socket.pause();
    }
    if (!this.#finishInput()) this.destroy();
  }

  /** Pauses after some slices, so that other connections can run. One slice may hold many chunks. */
  #yield(): void {
    this.#slices = 0;
    this.#yielding = true;
    setImmediate(() => {
      this.#yielding = false;
      this.#feed();
    });
  }

  #readsBody(): boolean {
    return this.#reading !== undefined && !this.#reading.complete && !this.#reading.destroyed;
  }

  #mayRead(): boolean {
    return (
      (this.#readsBody() && this.#waiting.length === 0) ||
      (this.#exchange === undefined && this.#waiting.length === 0 && !this.#advancing)
    );
  }

  #slice(): Buffer {
    const [chunk] = this.#chunks as [Buffer];
    const length = this.#sliceLengthOf(chunk);
    this.#sliceLength = length;
    this.#held -= length;
    if (length === chunk.length) {
      this.#chunks.shift();
      return chunk;
    }
    this.#chunks[0] = chunk.subarray(length);
    return chunk.subarray(0, length);
  }

  #sliceLengthOf(chunk: Buffer): number {
    const whole = chunk.length;
    if (this.#readsBody()) {
      this.#sliceCut = false;
      if (this.#reading!.headers['transfer-encoding'] !== undefined) return Math.min(whole, CHUNKED_SLICE);
      if (this.#bodyLeft > 0) {
        const length = Math.min(whole, this.#bodyLeft);
        this.#bodyLeft -= length;
        return length;
      }
    }
    // If a blank line was found but the parser reported no request, the bytes were empty lines before a head.
    const wasCut = this.#sliceCut;
    const start = chunk.subarray(0, HEAD_SLICE);
    const window = this.#tail.length === 0 ? start : Buffer.concat([this.#tail, start]);
    const end = wasCut && this.#headBytes > 0 ? -1 : window.indexOf(HEAD_END);
    const length = end < 0 ? Math.min(whole, HEAD_SLICE) : end + HEAD_END.length - this.#tail.length;
    this.#sliceCut = end >= 0;
    // A copy, because a subarray of three bytes would keep the whole chunk in memory.
    this.#tail =
      end < 0
        ? Buffer.from(
            window.subarray(
              Math.max(0, this.#tail.length + length - (HEAD_END.length - 1)),
              this.#tail.length + length,
            ),
          )
        : NOTHING;
    this.#headBytes += length;
    this.headSince ??= performance.now();
    return length;
  }

  /**
   * Charges the held input to the budget.
   * @returns false when the budget is exceeded
   */
  #finishInput(): boolean {
    const due = Math.max(0, this.#held + this.#headBytes + this.#waiting.length * WAITING_BYTES - FREE_BYTES);
    const more = due - this.#charged;
    if (more > 0 && !this.#budget.takeFree(this.address, more)) return false;
    if (more < 0) this.#budget.giveBack(this.address, -more);
    this.#charged = due;
    return true;
  }

  #wrote(error: Error | null | undefined, done: (error?: Error | null) => void): void {
    this.#countOutput();
    done(error);
  }

  /** Charges the output that has not been written to the network yet. */
  #countOutput(): void {
    if (this.destroyed) return;
    const unsent = this.socket.writableLength;
    if (unsent > 0 || this.#outCharged > 0) this.#watch.unread(this, unsent > 0);
    if (!this.#finishOutput(unsent) && !(this.#watch.roomFor(this, unsent) && this.#finishOutput(unsent)))
      this.destroy();
  }

  #finishOutput(unsent: number): boolean {
    const more = unsent - this.#outCharged;
    if (more > 0 && !this.#budget.takeFree(this.address, more)) return false;
    if (more < 0) this.#budget.giveBack(this.address, -more);
    this.#outCharged = unsent;
    return true;
  }
}
