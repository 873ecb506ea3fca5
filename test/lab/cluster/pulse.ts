/**
 * How long the machine keeps processes from running: the time that the simplest answer takes, beyond when it
 * was due.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { Service } from './members.js';

const EVERY_MS = 500;
const PATIENCE_MS = 60_000;
/** Longer than any call. */
const KEPT_MS = 180_000;

interface Beat {
  readonly service: string;
  /** When it was due: a late timer of this process counts as well. */
  readonly from: number;
  /** Undefined while it is waited for. */
  to?: number;
}

/** Asks each service whether it lives, which needs no server and no store, all the time. */
export class Pulse {
  readonly #beats = new Set<Beat>();
  readonly #wasDisturbed: (name: string, since: number) => boolean;
  #stopped = false;

  /** @param wasDisturbed tells of a service that was suspended: no machine's fault */
  constructor(
    services: readonly Service[],
    wasDisturbed: (name: string, since: number) => boolean = () => false,
  ) {
    this.#wasDisturbed = wasDisturbed;
    for (const service of services) void this.#listen(service);
  }

  /**
   * The longest part of the time since `since`, in milliseconds of `performance.now()`, for which another
   * service than this one was waited for: what stands still by its own fault is not excused by it.
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
      // A process that was killed is not slow.
      if (!lives) this.#beats.delete(beat);
      for (const old of this.#beats)
        if (old.to !== undefined && old.to < beat.to - KEPT_MS) this.#beats.delete(old);
      from = beat.to + EVERY_MS;
      await delay(EVERY_MS);
    }
  }
}
