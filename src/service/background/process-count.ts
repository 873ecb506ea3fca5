import type { ServingProcesses } from '../ports/serving-processes.js';

/**
 * The number of last reads whose highest count applies. After an outage that outlasts the entries, this many reads
 * pass until a lower count applies, and by then all processes have renewed their entries.
 */
const READS = 6;

export interface ProcessCountOptions {
  /** The number that the operator has set. It applies in place of the count. */
  readonly fixed?: number;
  /** Absent if the store belongs to one process. */
  readonly serving?: ServingProcesses;
  onChange(count: number, former: number): void;
}

/**
 * The number of processes among which the limits of plans are divided. A higher count applies at the next look, and a
 * lower one only after six looks. A process that cannot read keeps its last count.
 */
export class ProcessCount {
  readonly #options: ProcessCountOptions;
  /** The last counts that were read, the oldest first. */
  readonly #counts: number[] = [];
  #value: number;

  constructor(options: ProcessCountOptions) {
    this.#options = options;
    this.#value = options.fixed ?? 1;
  }

  get value(): number {
    return this.#value;
  }

  /**
   * Renews the entry of this process and reads the count. A process with a fixed number does so too, because the
   * others count it.
   */
  async look(): Promise<void> {
    const { fixed, serving, onChange } = this.#options;
    if (serving === undefined) return;
    this.#counts.push(await serving.renew());
    if (this.#counts.length > READS) this.#counts.shift();
    const former = this.#value;
    this.#value = fixed ?? Math.max(...this.#counts);
    if (this.#value !== former) onChange(this.#value, former);
  }

  /** Ends the entry of this process, so that the others count one process less. */
  async leave(): Promise<void> {
    await this.#options.serving?.leave();
  }
}
