import { MAX_BUFFERED_BYTES, type TraceEvent, TraceFullError } from '../../witness/capture/index.js';

const FLUSH_MS = 1000;

/** A trace to write to, as the capture library opens it. */
export interface TraceOutput {
  append(event: TraceEvent): void;
  flush(): Promise<void>;
  seal(): Promise<void>;
  readonly bufferedBytes: number;
}

/** The end of a capture. A trace is full if it had no room for all events: it is sealed without the others. */
export type Captured = 'absent' | 'sealed' | 'full';

/** The events on their way to a trace. */
export class TraceQueue {
  readonly #events: TraceEvent[] = [];
  #flushedAt = Number.NEGATIVE_INFINITY;

  push(event: TraceEvent): void {
    this.#events.push(event);
  }

  /** Appends the events, and flushes the trace every second. @returns false where the trace is full: seal it */
  async write(trace: TraceOutput): Promise<boolean> {
    for (const event of this.#events.splice(0)) {
      if (trace.bufferedBytes > MAX_BUFFERED_BYTES / 2) await trace.flush();
      try {
        trace.append(event);
      } catch (error) {
        if (error instanceof TraceFullError) return false;
        throw error;
      }
    }
    if (performance.now() - this.#flushedAt >= FLUSH_MS) {
      this.#flushedAt = performance.now();
      await trace.flush();
    }
    return true;
  }
}
