import { withDeadline } from '../../core/async/deadline.js';
import type { Dependency } from '../../core/domain/errors.js';

/** The time in milliseconds in which a dependency must answer. */
const ANSWER_MS = 5000;

export interface DependencyReports {
  /** Reports that a dependency has stopped answering. */
  missing(dependency: Dependency, error: unknown): void;
  /** Reports that the dependency answers again. */
  back(dependency: Dependency): void;
}

/**
 * Watches the dependencies without which a process still serves most calls, such as the bucket. They do not
 * end readiness, because then one outage would take all processes out of the load balancer.
 */
export class DependencyWatch {
  readonly #asks: ReadonlyMap<Dependency, () => Promise<void>>;
  readonly #reports: DependencyReports;
  readonly #answerMs: number;
  readonly #missing = new Set<Dependency>();

  /** @param asks for each dependency, a function that resolves when the dependency answers */
  constructor(
    asks: ReadonlyMap<Dependency, () => Promise<void>>,
    reports: DependencyReports,
    answerMs = ANSWER_MS,
  ) {
    this.#asks = asks;
    this.#reports = reports;
    this.#answerMs = answerMs;
  }

  /** Returns the watched dependencies, each with whether it is missing. */
  get states(): ReadonlyMap<Dependency, boolean> {
    return new Map([...this.#asks.keys()].map((dependency) => [dependency, this.#missing.has(dependency)]));
  }

  get missing(): readonly Dependency[] {
    return [...this.#missing];
  }

  /** Asks every dependency once. */
  async look(): Promise<void> {
    await Promise.all([...this.#asks].map(([dependency, ask]) => this.#look(dependency, ask)));
  }

  async #look(dependency: Dependency, ask: () => Promise<void>): Promise<void> {
    try {
      await withDeadline(ask(), this.#answerMs, () => {
        throw new Error('timed out');
      });
    } catch (error) {
      if (!this.#missing.has(dependency)) this.#reports.missing(dependency, error);
      this.#missing.add(dependency);
      return;
    }
    if (this.#missing.delete(dependency)) this.#reports.back(dependency);
  }
}
