import { DomainError, limited } from '../../../core/domain/errors.js';
import type { TestAnswer } from '../../domain/test-key.js';
import type { Exchange } from '../exchange.js';
import type { CallerConnection } from './connection.js';
import { PartnerLimit } from './partner-limit.js';

/** The most slow responses of one partner that a listener delays at the same time. */
const PLACES = 64;
/**
 * The `Retry-After` of forced errors, in seconds, longer than the default pause of callers that ignore the
 * header.
 */
const RETRY_SECONDS = 2;

/**
 * Throws the error that the test key forces (rule 19.2), as an exceeded rate or an unavailable store would.
 * @throws DomainError `rate_limited` / `rate_exceeded`, or `unavailable` / `store_unavailable`
 */
export function refuseForTest(answer: TestAnswer | undefined): void {
  if (answer === 'rate_limited')
    throw limited('This test key always exceeds its rate limit.', {
      reason: 'rate_exceeded',
      limit: 'request_rate',
      now: Date.now() / 1000,
      retryAfterSeconds: RETRY_SECONDS,
    });
  if (answer === 'unavailable')
    throw new DomainError('unavailable', 'The service is always unavailable for this test key.', {
      reason: 'store_unavailable',
      retryAfterSeconds: RETRY_SECONDS,
    });
}

/** Delays the calls of slow test keys in one listener. */
export class SlowAnswers {
  readonly #places = new PartnerLimit(
    PLACES,
    () =>
      new DomainError('unavailable', `A partner may have ${PLACES} slow calls at a time.`, {
        reason: 'concurrency_exceeded',
        retryAfterSeconds: RETRY_SECONDS,
      }),
  );

  /**
   * Waits for `slowMs`, or until the caller leaves or ends its half of the connection. The call then
   * continues as any call whose caller has left.
   * @throws DomainError `unavailable` / `concurrency_exceeded` when too many calls of the partner wait
   */
  async wait({ request, limits }: Exchange, partnerId: string): Promise<void> {
    const leave = this.#places.take(partnerId);
    await new Promise<void>((resolve) => {
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
    });
    leave();
  }
}
