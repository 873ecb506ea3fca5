import { CALL_DEADLINE_MS, storeUnavailable } from './session.js';

/**
 * Calls of this process on one row, run one after another. Side by side they would contend for the row in
 * Paxos, which costs round trips and decides nothing better. Calls of other processes are kept apart by
 * conditions alone.
 */
export class KeyedMutex {
  readonly #last = new Map<string, Promise<void>>();

  /** @throws DomainError `unavailable` when the turn comes after the call's deadline */
  async run<Value>(key: string, task: () => Promise<Value>): Promise<Value> {
    const before = this.#last.get(key);
    const since = performance.now();
    const result =
      before === undefined
        ? task()
        : before.then(() =>
            performance.now() - since > CALL_DEADLINE_MS ? Promise.reject(storeUnavailable()) : task(),
          );
    const ended = result.then(
      () => undefined,
      () => undefined,
    );
    this.#last.set(key, ended);
    try {
      return await result;
    } finally {
      if (this.#last.get(key) === ended) this.#last.delete(key);
    }
  }
}
