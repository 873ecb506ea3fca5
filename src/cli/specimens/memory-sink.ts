import type { TraceSink } from '../../witness/capture/index.js';

/** A sink that keeps what is written. */
export class MemorySink implements TraceSink {
  readonly parts: Uint8Array[] = [];
  closed = false;

  async write(bytes: Uint8Array): Promise<void> {
    this.parts.push(Uint8Array.from(bytes));
  }

  async sync(): Promise<void> {}

  async close(): Promise<void> {
    this.closed = true;
  }

  bytes(): Buffer {
    return Buffer.concat(this.parts);
  }
}
