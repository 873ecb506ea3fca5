import { write, writeSync } from 'node:fs';

/** Characters that may wait for a place that takes none; further lines are lost. */
const MOST_WAITING = 8_388_608;
/** Milliseconds until a place that took nothing is tried again. */
const AGAIN_MS = 250;
/** Looks at a place that is only busy, ten milliseconds apart, before a process that ends gives its last lines up. */
const LAST_LOOKS = 100;

/**
 * Lines of a log on their way to an open file. Those of one turn of the event loop are written together: many calls end
 * in one turn, and a write for each line costs more than the line. A process that exits writes them, one that is killed
 * loses those of the turn. Where the place takes nothing, on a full disk for example, the process goes on: lines wait
 * and are written when there is room, whole and in their order.
 */
export class LogOutput {
  readonly #fd: number;
  #lines = '';
  /** Rest of the lines that are written now. */
  #rest: Uint8Array = Buffer.alloc(0);
  #isWriting = false;
  #again: NodeJS.Timeout | undefined;
  #isClosed = false;

  /** @param fd number of an open file, a pipe or a terminal */
  constructor(fd: number) {
    this.#fd = fd;
  }

  write(line: string): void {
    if (this.#isClosed || this.#lines.length + line.length > MOST_WAITING) return;
    if (this.#lines === '') setImmediate(() => this.#writeLines());
    this.#lines += line;
  }

  /** Writes what waits, or gives it up where the place does not take it now. */
  flushSync(): void {
    clearTimeout(this.#again);
    this.#again = undefined;
    // The bytes that a thread is writing are its own.
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
        // Nobody reads the log any more.
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
