import { GIVE_UP_MS, storeUnavailable } from './session.js';

/**
 * Calls of this process on one row, one after another: they would otherwise contend for it in Paxos, which
 * costs round trips and decides nothing better. Other processes are kept apart by conditions alone.
 */
export class Lanes {
  readonly #tails = new Map<string, Promise<void>>();

  async run<Value>(key: string, task: () => Promise<Value>): Promise<Value> {
    const before = this.#tails.get(key);
    const since = Date.now();
    const result =
      before === undefined
        ? task()
        : before.then(() => (Date.now() - since > GIVE_UP_MS ? Promise.reject(storeUnavailable()) : task()));
    const tail = result.then(
      () => undefined,
      () => undefined,
    );
    this.#tails.set(key, tail);
    try {
      return await result;
    } finally {
      if (this.#tails.get(key) === tail) this.#tails.delete(key);
    }
  }
}
