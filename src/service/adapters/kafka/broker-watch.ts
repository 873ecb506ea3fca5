/** The default time between two questions, in milliseconds. */
const EVERY_MS = 5000;
/** The number of failed questions in a row after which a client has lost its brokers. */
const FAILED = 4;

/**
 * The outcome of a question. It is `late` if a connected broker does not answer in time. It has `failed` if no
 * broker is connected, or if the broker names none.
 */
export type Asked = 'answered' | 'late' | 'failed';

/**
 * Watches whether a client's brokers still answer. librdkafka can lose all of them for good: it drops the
 * brokers that metadata does not name, and a broker that is starting may name none
 * (confluentinc/librdkafka#5301). From then on it asks no broker, while another client finds them. A late broker
 * is not lost: it answers the requests of a connection in their order, so an append that waits for replicas
 * delays the next question. Another client would send that append twice.
 */
export class BrokerWatch {
  readonly #ask: () => Promise<Asked>;
  readonly #everyMs: number;
  #isAsking = false;
  #askedAt = performance.now();
  #isAnswered = true;
  #failed = 0;

  /** @param ask asks any broker, and returns the outcome within about a second. It never rejects */
  constructor(ask: () => Promise<Asked>, everyMs = EVERY_MS) {
    this.#ask = ask;
    this.#everyMs = everyMs;
  }

  /** True once four questions in a row have failed, by default for 20 s. */
  get isLost(): boolean {
    return this.#failed >= FAILED;
  }

  /** False while the last question is unanswered. */
  get isAnswered(): boolean {
    return this.#isAnswered;
  }

  /** Asks where it is time to; meant to be called often. */
  look(): void {
    if (this.#isAsking || performance.now() - this.#askedAt < this.#everyMs) return;
    this.#isAsking = true;
    this.#askedAt = performance.now();
    void this.#ask().then((asked) => {
      this.#isAsking = false;
      this.#isAnswered = asked === 'answered';
      this.#failed = asked === 'failed' ? this.#failed + 1 : 0;
    });
  }
}
