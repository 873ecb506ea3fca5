/** Milliseconds between two questions. */
const EVERY_MS = 5000;
/** Unanswered questions in a row after which a client has lost its brokers. */
const UNANSWERED = 4;

/**
 * Watch over whether a client's brokers still answer. librdkafka can lose all of them for good: it drops the
 * brokers that metadata does not name, and a broker that is starting may name none
 * (confluentinc/librdkafka#5301). It asks nobody from then on; another client finds them.
 */
export class BrokerWatch {
  readonly #ask: () => Promise<unknown>;
  #isAsking = false;
  #askedAt = performance.now();
  #unanswered = 0;

  /** @param ask question that any broker answers, and that fails within a second or so where none does */
  constructor(ask: () => Promise<unknown>) {
    this.#ask = ask;
  }

  /** True once no broker has answered for 20 s. */
  get isLost(): boolean {
    return this.#unanswered >= UNANSWERED;
  }

  /** False while the last question is unanswered. */
  get isAnswered(): boolean {
    return this.#unanswered === 0;
  }

  /** Asks where it is time to; meant to be called often. */
  look(): void {
    if (this.#isAsking || performance.now() - this.#askedAt < EVERY_MS) return;
    this.#isAsking = true;
    this.#askedAt = performance.now();
    this.#ask()
      .then(
        () => (this.#unanswered = 0),
        () => (this.#unanswered += 1),
      )
      .finally(() => (this.#isAsking = false));
  }
}
