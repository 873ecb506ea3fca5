import { setTimeout as sleep } from 'node:timers/promises';
import { type Backoff, jittered, pauseAfter } from '../async/backoff.js';
import { DomainError, ServerError } from '../domain/errors.js';
import type { Repeat } from '../ports/journals.js';

/** Failures in a row after which a server is given up, and the pauses between the attempts: five minutes in all. */
const MOST_FAILURES = 25;
const PAUSES: Backoff = { firstMs: 500, longestMs: 15_000 };

/**
 * Makes attempts again that failed because a server is away, and those alone. Failures in a row are counted for each
 * attempt, and not the time: long work is not given up for its length.
 * @throws ServerError after the 25th failure in a row, which no attempt around it is made again for; any other error at once
 */
export function untilAvailable(pauses = PAUSES): Repeat {
  return async (attempt) => {
    for (let failures = 1; ; failures += 1) {
      try {
        return await attempt();
      } catch (error) {
        if (!(error instanceof DomainError) || error.code !== 'unavailable') throw error;
        if (failures === MOST_FAILURES)
          throw new ServerError(
            `${error.message} ${failures} attempts in a row failed, the last with ${causeOf(error)}.`,
            { cause: error },
          );
        await sleep(jittered(pauseAfter(failures, pauses)));
      }
    }
  };
}

/** Name, code and status of what a failure came from; libraries' words quote what they failed on, and the log has this. */
function causeOf(error: Error): string {
  let cause = error;
  while (cause.cause instanceof Error) cause = cause.cause;
  const { code, $metadata } = cause as { code?: unknown; $metadata?: { httpStatusCode?: number } };
  return [cause.name, code, $metadata?.httpStatusCode].filter((part) => part !== undefined).join(' ');
}
