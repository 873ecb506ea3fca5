/** Closes everything that a process has opened, in reverse order. (Node 20 has no AsyncDisposableStack.) */
export class Disposer {
  readonly #closings: (() => Promise<unknown>)[] = [];

  add(close: () => Promise<unknown>): void {
    this.#closings.push(close);
  }

  /** Closes everything, even after failures. @throws the first failure, at the end */
  async dispose(): Promise<void> {
    const failures: unknown[] = [];
    for (const close of this.#closings.splice(0).reverse())
      await close().catch((error: unknown) => failures.push(error));
    if (failures.length > 0) throw failures[0];
  }
}

/** Returns the result of `open`. If `open` fails, everything that it has opened is closed again. */
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
 * Returns a function for the remaining grace time of a stop. The time starts at its first call and is shared
 * by all later closings.
 * @returns the remaining time in milliseconds
 */
export function sharedGrace(graceMs: number): () => number {
  let until: number | undefined;
  return () => {
    const now = performance.now();
    until ??= now + graceMs;
    return Math.max(0, until - now);
  };
}
