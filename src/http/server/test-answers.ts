import { DomainError, limited } from '../../domain/errors.js';
import type { TestAnswer } from '../../domain/test-key.js';
import type { Exchange } from '../exchange.js';
import { ConcurrencyLimit } from './concurrency-limit.js';
import type { CallerConnection } from './connection.js';

/** Slow answers that one listener holds back at once. */
const PLACES = 64;
/** Seconds of the `Retry-After` that is forced: more than the pause of a caller who does not read it. */
const RETRY_SECONDS = 2;

/**
 * Refuses as a full rate or an absent store would, where the key forces it (rule 19.2).
 * @throws DomainError `rate_limited` / `rate_exceeded`, or `unavailable` / `store_unavailable`
 */
export function refuseForTest(answer: TestAnswer | undefined): void {
  if (answer === 'rate_limited')
    throw limited('This test key is always over its rate.', {
      reason: 'rate_exceeded',
      now: Date.now() / 1000,
      retryAfterSeconds: RETRY_SECONDS,
    });
  if (answer === 'unavailable')
    throw new DomainError('unavailable', 'For this test key the service is always unavailable.', {
      reason: 'store_unavailable',
      retryAfterSeconds: RETRY_SECONDS,
    });
}

/** The calls of slow test keys that wait in one listener. */
export class SlowAnswers {
  readonly #places = new ConcurrencyLimit(PLACES);

  /**
   * Waits for `slowMs`, or until the caller leaves, be it by ending its half of the connection alone. The call
   * then goes on as any call whose caller has left.
   * @throws DomainError `unavailable` / `concurrency_exceeded` where too many wait
   */
  wait({ request, limits }: Exchange): Promise<void> {
    return this.#places.admit(
      () =>
        new Promise((resolve) => {
          const connection = request.socket as unknown as CallerConnection;
          const done = (): void => {
            clearTimeout(timer);
            connection.off('close', done);
            connection.off('inputEnd', done);
            resolve();
          };
          const timer = setTimeout(done, limits.slowMs);
          connection.once('close', done);
          connection.once('inputEnd', done);
          if (connection.destroyed || connection.inputEnded) done();
        }),
    );
  }
}
