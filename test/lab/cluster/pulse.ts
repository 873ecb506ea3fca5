/** Measures how long the machine stalls processes: the delay of the simplest answer. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Service } from './members.js';

const EVERY_MS = 500;
const PATIENCE_MS = 60_000;
/** The time for which measurements are kept, in milliseconds. It is longer than any call. */
const KEPT_MS = 180_000;

interface Beat {
  readonly service: string;
  /** The time at which the answer was due. So a late timer of this process counts too. */
  readonly from: number;
  /** Undefined until the answer arrives. */
  to?: number;
}

/** Polls the liveness of each service continuously. A liveness probe needs no server and no store. */
export class Pulse {
  readonly #beats = new Set<Beat>();
  readonly #wasDisturbed: (name: string, since: number) => boolean;
  #stopped = false;

  /** @param wasDisturbed returns whether the run suspended a service, which is not the machine's fault */
  constructor(
    services: readonly Service[],
    wasDisturbed: (name: string, since: number) => boolean = () => false,
  ) {
    this.#wasDisturbed = wasDisturbed;
    for (const service of services) void this.#listen(service);
  }

  /**
   * Returns the longest stall of another service since `since`, in milliseconds of `performance.now()`. The
   * service's own stalls are not an excuse.
   */
  longestStall({ name }: Service, since: number): number {
    const now = performance.now();
    return Math.max(
      0,
      ...Array.from(this.#beats, ({ service, from, to = now }) =>
        service === name || this.#wasDisturbed(service, from) ? 0 : to - Math.max(from, since),
      ),
    );
  }

  stop(): void {
    this.#stopped = true;
  }

  async #listen({ name, operator }: Service): Promise<void> {
    for (let from = performance.now(); !this.#stopped; ) {
      const beat: Beat = { service: name, from };
      this.#beats.add(beat);
      const lives = await fetch(`${operator}/livez`, { signal: AbortSignal.timeout(PATIENCE_MS) })
        .then((answer) => answer.text())
        .then(
          () => true,
          () => false,
        );
      beat.to = performance.now();
      // A killed process does not count as slow.
      if (!lives) this.#beats.delete(beat);
      for (const old of this.#beats)
        if (old.to !== undefined && old.to < beat.to - KEPT_MS) this.#beats.delete(old);
      from = beat.to + EVERY_MS;
      await delay(EVERY_MS);
    }
  }
}
