/** Closes what a process has opened, the last one first. (Node 20 has no AsyncDisposableStack.) */
export class Disposer {
  readonly #closings: (() => Promise<unknown>)[] = [];

  add(close: () => Promise<unknown>): void {
    this.#closings.push(close);
  }

  /** Closes everything, whatever fails. @throws the first failure, at the end */
  async dispose(): Promise<void> {
    const failures: unknown[] = [];
    for (const close of this.#closings.splice(0).reverse())
      await close().catch((error: unknown) => failures.push(error));
    if (failures.length > 0) throw failures[0];
  }
}

/** The result of `open`; when it fails, everything that it has opened is closed again. */
export async function disposedOnFailure<Value>(open: (disposer: Disposer) => Promise<Value>): Promise<Value> {
  const disposer = new Disposer();
  try {
    return await open(disposer);
  } catch (error) {
    await disposer.dispose().catch(() => undefined);
    throw error;
  }
}

/**
 * Time for all that a stop waits for, counted from the first who asks: what closes later has what is left.
 * @returns milliseconds that are left
 */
export function sharedGrace(graceMs: number): () => number {
  let until: number | undefined;
  return () => {
    const now = performance.now();
    until ??= now + graceMs;
    return Math.max(0, until - now);
  };
}
