import { randomUUID } from 'node:crypto';
import { type Session, textIn } from './session.js';

const TAKE = 'INSERT INTO lease (name, holder) VALUES (?, ?) IF NOT EXISTS USING TTL ?';
const KEEP = 'UPDATE lease USING TTL ? SET holder = ? WHERE name = ? IF holder = ?';

/**
 * A lease of work that one process at a time does, so that it costs once. It ends by the servers' time to live.
 * Correctness must not depend on it: a process that was stopped goes on after its lease has ended.
 */
export class Lease {
  readonly #session: Session;
  readonly #name: string;
  readonly #seconds: number;
  readonly #holder = randomUUID();

  /** @param seconds the time until a lease ends that is not kept */
  constructor(session: Session, name: string, seconds: number) {
    this.#session = session;
    this.#name = name;
    this.#seconds = seconds;
  }

  /** Takes the lease, or keeps it. @returns whether this process has it */
  async hold(): Promise<boolean> {
    const taken = await this.#session.lightweightTransaction({
      query: TAKE,
      params: [this.#name, this.#holder, this.#seconds],
    });
    if (taken.applied) return true;
    if (taken.current === undefined || textIn(taken.current, 'holder') !== this.#holder) return false;
    const kept = await this.#session.lightweightTransaction({
      query: KEEP,
      params: [this.#seconds, this.#holder, this.#name, this.#holder],
    });
    return kept.applied;
  }
}
