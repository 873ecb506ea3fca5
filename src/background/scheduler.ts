import { withDeadline } from '../async/deadline.js';
import type { Observer } from '../ports/observer.js';

/** Something that is done now and then for as long as the process runs. */
export interface Chore {
  /** What a fault of it is reported as. */
  readonly where: string;
  readonly everyMs: number;
  /** Also at once, not only after the first interval. */
  readonly atStart?: boolean;
  run(): Promise<unknown>;
}

/**
 * Does each chore at its interval, never the same one twice at once. What fails is reported and done again
 * the next time.
 * @returns ends it: begins nothing more, and waits for what is under way, at most `graceMs`
 */
export function startChores(
  chores: readonly Chore[],
  observer: Pick<Observer, 'fault'>,
  graceMs: number,
): () => Promise<void> {
  const running = new Map<Chore, Promise<void>>();
  const begin = (chore: Chore): void => {
    if (running.has(chore)) return;
    const done = chore
      .run()
      .catch((error: unknown) => observer.fault(chore.where, error))
      .then(() => void running.delete(chore));
    running.set(chore, done);
  };
  const timers = chores.map((chore) => setInterval(() => begin(chore), chore.everyMs));
  for (const chore of chores) if (chore.atStart === true) begin(chore);
  return async () => {
    timers.forEach(clearInterval);
    await withDeadline(
      Promise.all(running.values()).then(() => undefined),
      graceMs,
      () => undefined,
    );
  };
}
