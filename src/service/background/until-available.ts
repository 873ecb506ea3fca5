import { setTimeout as sleep } from 'node:timers/promises';
import { type Backoff, jittered, pauseAfter } from '../../core/async/backoff.js';
import { DomainError, ServerError } from '../../core/domain/errors.js';
import type { Repeat } from '../ports/journals.js';

/**
 * The number of consecutive failures after which an attempt is abandoned. With the pauses between them they
 * take about five minutes.
 */
const MOST_FAILURES = 25;
const PAUSES: Backoff = { firstMs: 500, longestMs: 15_000 };

/**
 * Returns a function that repeats attempts that failed because a server is unavailable. Only consecutive
 * failures of an attempt are counted, not the time, so long work is not interrupted.
 * @throws ServerError after the 25th consecutive failure. An outer attempt is not repeated for this error.
 * Any other error is thrown at once.
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

/**
 * Returns the name, code and status of the original error. The message is omitted, because libraries quote
 * their input in messages and this text is logged.
 */
function causeOf(error: Error): string {
  let cause = error;
  while (cause.cause instanceof Error) cause = cause.cause;
  const { code, $metadata } = cause as { code?: unknown; $metadata?: { httpStatusCode?: number } };
  return [cause.name, code, $metadata?.httpStatusCode].filter((part) => part !== undefined).join(' ');
}
