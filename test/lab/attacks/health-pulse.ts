import { Agent, get } from 'node:http';
import { performance } from 'node:perf_hooks';

/** The sorted latencies of the calls in milliseconds. A call without an answer counts as `timeoutMs`. */
export interface Pulse {
  readonly times: readonly number[];
  readonly unanswered: number;
  readonly p50: number;
  readonly p99: number;
  readonly worst: number;
}

/** Requests the health of a service repeatedly on one kept connection, like the probe of a load balancer. */
export class HealthPulse {
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 });
  readonly #url: string;
  readonly #everyMs: number;
  readonly #timeoutMs: number;
  readonly #times: number[] = [];
  #unanswered = 0;
  #stopped = false;
  readonly #running: Promise<void>;

  constructor(
    partnerUrl: string,
    { everyMs = 20, timeoutMs = 30_000 }: { readonly everyMs?: number; readonly timeoutMs?: number } = {},
  ) {
    this.#url = `${partnerUrl}/v1/health`;
    this.#everyMs = everyMs;
    this.#timeoutMs = timeoutMs;
    this.#running = this.#beat();
  }

  /** Waits for the call in flight. */
  async stop(): Promise<Pulse> {
    this.#stopped = true;
    await this.#running;
    this.#agent.destroy();
    const times = this.#times.toSorted((a, b) => a - b);
    if (times.length === 0) throw new Error('the pulse was never taken');
    const at = (share: number): number =>
      times[Math.min(times.length - 1, Math.floor(times.length * share))]!;
    return { times, unanswered: this.#unanswered, p50: at(0.5), p99: at(0.99), worst: times.at(-1)! };
  }

  async #beat(): Promise<void> {
    while (!this.#stopped) {
      const began = performance.now();
      const answered = await this.#ask();
      const took = performance.now() - began;
      this.#times.push(answered ? took : this.#timeoutMs);
      if (!answered) this.#unanswered += 1;
      await new Promise((resolve) => setTimeout(resolve, Math.max(0, this.#everyMs - took)));
    }
  }

  #ask(): Promise<boolean> {
    return new Promise((resolve) => {
      const request = get(this.#url, { agent: this.#agent, timeout: this.#timeoutMs }, (response) => {
        response
          .resume()
          .once('end', () => resolve(response.statusCode === 200))
          .once('error', () => resolve(false));
      });
      request
        .once('error', () => resolve(false))
        .once('timeout', () => request.destroy(new Error('timeout')));
    });
  }
}
