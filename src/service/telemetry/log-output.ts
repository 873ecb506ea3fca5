import { write, writeSync } from 'node:fs';

/** The most characters that wait while the output accepts none. Beyond it, further lines are dropped. */
const MOST_WAITING = 8_388_608;
/** The delay in milliseconds before a failed write is retried. */
const AGAIN_MS = 250;
/**
 * The most retries at the end of the process if the output is busy, ten milliseconds apart. Then lines are
 * dropped.
 */
const LAST_LOOKS = 100;

/**
 * Buffers log lines for an open file. The lines of one event loop turn are written together, because one
 * write per line costs more than the line. A process that exits writes its lines. A killed process loses the
 * lines of the current turn. If the output accepts nothing, for example on a full disk, the process
 * continues. The lines wait and are written completely and in order when there is room.
 */
export class LogOutput {
  readonly #fd: number;
  #lines = '';
  /** The unwritten rest of the lines being written. */
  #rest: Uint8Array = Buffer.alloc(0);
  #isWriting = false;
  #again: NodeJS.Timeout | undefined;
  #isClosed = false;

  /** @param fd the descriptor of an open file, a pipe or a terminal */
  constructor(fd: number) {
    this.#fd = fd;
  }

  write(line: string): void {
    if (this.#isClosed || this.#lines.length + line.length > MOST_WAITING) return;
    if (this.#lines === '') setImmediate(() => this.#writeLines());
    this.#lines += line;
  }

  /** Writes waiting lines, or drops them if the output does not accept them now. */
  flushSync(): void {
    clearTimeout(this.#again);
    this.#again = undefined;
    // Bytes of a running write belong to that write.
    const rest = this.#isWriting ? Buffer.alloc(0) : this.#rest;
    let bytes: Uint8Array = Buffer.concat([rest, Buffer.from(this.#lines)]);
    if (!this.#isWriting) this.#rest = Buffer.alloc(0);
    this.#lines = '';
    for (let looks = 0; !this.#isClosed && bytes.length > 0 && looks < LAST_LOOKS; )
      try {
        bytes = bytes.subarray(writeSync(this.#fd, bytes));
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') return;
        looks += 1;
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10);
      }
  }

  #writeLines(): void {
    if (this.#isWriting || this.#again !== undefined) return;
    if (this.#rest.length === 0) {
      this.#rest = Buffer.from(this.#lines);
      this.#lines = '';
    }
    if (this.#rest.length === 0) return;
    this.#isWriting = true;
    write(this.#fd, this.#rest, (error, written) => {
      this.#isWriting = false;
      if (error === null) {
        this.#rest = this.#rest.subarray(written);
        this.#writeLines();
      } else if (error.code === 'EPIPE') {
        // The reader of the log has closed the pipe.
        this.#isClosed = true;
        this.#lines = '';
        this.#rest = Buffer.alloc(0);
      } else {
        this.#again = setTimeout(() => {
          this.#again = undefined;
          this.#writeLines();
        }, AGAIN_MS);
        this.#again.unref();
      }
    });
  }
}
