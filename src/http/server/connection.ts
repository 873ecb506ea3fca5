import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import type { ByteBudget } from '../byte-budget.js';
import type { Exchange } from '../exchange.js';

const HEAD_END = Buffer.from('\r\n\r\n');
const NOTHING = Buffer.alloc(0);
/** Bytes of an unfinished head that the parser gets at once. */
const HEAD_SLICE = 1024;
/**
 * State of a chunked body, whose end only the parser knows; further messages in the same slice become
 * requests that wait.
 */
const CHUNKED_SLICE = 4096;
const SLICES_OF_A_TURN = 4;
/** Assumed cost of a request that waits for its turn. */
const WAITING_BYTES = 4096;
/** Input that a connection may hold without asking: a request with a small body. */
const FREE_BYTES = 8192;

/** State of a connection, by which the table chooses the one that gives way. */
export interface ConnectionWatch {
  /** A request has begun. */
  busy(connection: CallerConnection): void;
  /** The network has taken the response, and no other request has begun. */
  idle(connection: CallerConnection): void;
  /** The caller takes nothing, or has begun to again; called with every step that its reading makes. */
  unread(connection: CallerConnection, waits: boolean): void;
  /**
   * Asks for memory for output that the caller does not read.
   * @returns false where no other connection is left to be cut for it
   */
  roomFor(connection: CallerConnection, bytes: number): boolean;
}

/**
 * A caller's connection, between the socket and the HTTP parser. One request of a connection is carried out
 * at a time (RFC 9112, 9.3.2: only safe methods may run beside one another, and responses keep their order).
 * The parser gets the bytes up to the end of one message, and the bytes of the next when the network has
 * taken the response. Pipelined bytes stay with the caller meanwhile.
 */
export class CallerConnection extends Duplex {
  readonly socket: Socket;
  /** The peer, as bounds for each caller count it. */
  readonly address: string;
  readonly openedAt = performance.now();
  /** Time of the first byte of the awaited head. */
  headSince: number | undefined;
  /** True once a request was begun. */
  served = false;
  #exchange: Exchange | undefined;
  readonly #budget: ByteBudget;
  readonly #watch: ConnectionWatch;
  readonly #chunks: Buffer[] = [];
  #held = 0;
  #charged = 0;
  #outCharged = 0;
  /** The parser asks for more. */
  #wanted = false;
  #inputEnded = false;
  /** Stops reading: the connection ends with the response that is on its way. */
  #closing = false;
  /** The request whose body is being read. */
  #reading: IncomingMessage | undefined;
  /** State of a body with a length: bytes that surely belong to the body. */
  #bodyLeft = 0;
  #sliceLength = 0;
  #sliceCut = false;
  #headBytes = 0;
  /** The last bytes of a head that came in several slices. */
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
    // Other listeners hear of the error too; without any, the error is no fault of this process.
    this.on('error', () => {});
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

  /** True where bytes have come in that are surely behind the message whose head was read last. */
  get followed(): boolean {
    const chunked = this.#reading?.headers['transfer-encoding'] !== undefined;
    return !chunked && this.#held > this.#bodyLeft;
  }

  /** True where the message that was read last is a head alone, and the parser got nothing behind it. */
  get endsAtHead(): boolean {
    const chunked = this.#reading?.headers['transfer-encoding'] !== undefined;
    return this.#sliceCut && !chunked && this.#bodyLeft === 0;
  }

  /** True once the caller sends nothing more; `inputEnd` is emitted at that moment. */
  get inputEnded(): boolean {
    return this.#inputEnded;
  }

  get exchange(): Exchange | undefined {
    return this.#exchange;
  }

  /** As of a socket: Node times idle connections with it. */
  setTimeout(ms: number): this {
    this.socket.setTimeout(ms);
    return this;
  }

  /** As of a socket: ends it when everything written has gone out. */
  destroySoon(): void {
    // Nobody waits for the rest of the body any more.
    this.#reading = undefined;
    this.closing();
    if (this.writable) this.end();
    if (this.writableFinished) this.destroy();
    else this.once('finish', () => this.destroy());
  }

  /**
   * Stops processing after the last response (RFC 9112, 9.6). Further bytes are still read, because a close
   * with unread bytes resets the connection.
   */
  closing(): void {
    this.#closing = true;
    this.#waiting.length = 0;
    this.#feed();
  }

  /**
   * Takes a request whose head is complete: runs `begin` now, or after the responses to the requests before
   * it.
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

  /** Runs a step after the responses to the requests before it. */
  inTurn(step: () => void): void {
    if (this.#closing) return;
    if (this.#exchange === undefined && this.#waiting.length === 0) step();
    else this.#waiting.push(step);
  }

  begin(exchange: Exchange): void {
    this.#exchange = exchange;
    this.served = true;
    this.#watch.busy(this);
  }

  /** Notes that the network has taken the response. */
  ended(exchange: Exchange): void {
    if (this.#exchange !== exchange) return;
    this.#exchange = undefined;
    if (exchange.connectionClose) {
      // Node does so by itself where the response said `Connection: close`; a body may break off after
      // another response has begun.
      this.destroySoon();
      return;
    }
    this.#watch.idle(this);
    if (this.#waiting.length === 0 && this.#held === 0) {
      this.#feed();
      return;
    }
    // Other connections get their turn between two requests of one connection.
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
    // Node ends each response with a write of nothing, whose callback alone counts.
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

  /** Gives the parser what it may have, and holds the rest back in the network. */
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

  /** Slices may hold many chunks each: others get their turn between some of them. */
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
    // A head that ended before the parser said so was none: empty lines before one.
    const wasCut = this.#sliceCut;
    const start = chunk.subarray(0, HEAD_SLICE);
    const window = this.#tail.length === 0 ? start : Buffer.concat([this.#tail, start]);
    const end = wasCut && this.#headBytes > 0 ? -1 : window.indexOf(HEAD_END);
    const length = end < 0 ? Math.min(whole, HEAD_SLICE) : end + HEAD_END.length - this.#tail.length;
    this.#sliceCut = end >= 0;
    // A copy: three bytes are not worth the memory that holds them.
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

  /** @returns false where more is held than the budget has */
  #finishInput(): boolean {
    const due = Math.max(0, this.#held + this.#headBytes + this.#waiting.length * WAITING_BYTES - FREE_BYTES);
    const more = due - this.#charged;
    if (more > 0 && !this.#budget.take(this.address, more)) return false;
    if (more < 0) this.#budget.giveBack(this.address, -more);
    this.#charged = due;
    return true;
  }

  #wrote(error: Error | null | undefined, done: (error?: Error | null) => void): void {
    this.#countOutput();
    done(error);
  }

  /** Counts what the network has not taken. */
  #countOutput(): void {
    if (this.destroyed) return;
    const unsent = this.socket.writableLength;
    if (unsent > 0 || this.#outCharged > 0) this.#watch.unread(this, unsent > 0);
    if (!this.#finishOutput(unsent) && !(this.#watch.roomFor(this, unsent) && this.#finishOutput(unsent)))
      this.destroy();
  }

  #finishOutput(unsent: number): boolean {
    const more = unsent - this.#outCharged;
    if (more > 0 && !this.#budget.take(this.address, more)) return false;
    if (more < 0) this.#budget.giveBack(this.address, -more);
    this.#outCharged = unsent;
    return true;
  }
}
