import { DomainError, limited } from '../../../core/domain/errors.js';
import type { Exchange } from '../exchange.js';
import type { KeyCheck, Run } from './checks.js';
import type { CallerConnection } from './connection.js';
import { PartnerLimit } from './partner-limit.js';

/** The most slow responses of one partner that a listener delays at the same time. */
const PLACES = 64;
/**
 * The `Retry-After` of forced errors, in seconds, longer than the default pause of callers that ignore the
 * header.
 */
const RETRY_SECONDS = 2;

/** What test keys change about the calls of a listener (rule 19.2). */
export interface TestAnswers {
  /** Throws the error that the test key forces. It follows the checks of rate and signature. */
  readonly refuse: KeyCheck;
  /** Returns a function that runs a call, after a delay if its key is slow. */
  delayed(run: Run): Run;
}

/** Creates the behaviour of test keys for one listener. Only an environment with test keys has it. */
export function createTestAnswers(): TestAnswers {
  const places = new PartnerLimit(
    PLACES,
    () =>
      new DomainError('unavailable', `A partner may have ${PLACES} slow calls at a time.`, {
        reason: 'concurrency_exceeded',
        retryAfterSeconds: RETRY_SECONDS,
      }),
  );
  return {
    refuse: ({ caller: { testAnswer } }) => {
      // The errors are those of an exceeded rate and of an unavailable store.
      if (testAnswer === 'rate_limited')
        throw limited('This test key always exceeds its rate limit.', {
          reason: 'rate_exceeded',
          limit: 'request_rate',
          now: Date.now() / 1000,
          retryAfterSeconds: RETRY_SECONDS,
        });
      if (testAnswer === 'unavailable')
        throw new DomainError('unavailable', 'The service is always unavailable for this test key.', {
          reason: 'store_unavailable',
          retryAfterSeconds: RETRY_SECONDS,
        });
    },
    delayed: (run) => (call) => {
      const { caller, exchange } = call;
      if (caller?.testAnswer !== 'slow') return run(call);
      return slowMsOver(exchange, places.take(caller.partnerId)).then(() => run(call));
    },
  };
}

/**
 * Waits for `slowMs`, or until the caller leaves or ends its half of the connection. The call then continues as any
 * call whose caller has left.
 * @param leave frees the place of the waiting call
 */
function slowMsOver({ request, limits }: Exchange, leave: () => void): Promise<void> {
  return new Promise((resolve) => {
    const connection = request.socket as unknown as CallerConnection;
    const done = (): void => {
      clearTimeout(timer);
      connection.off('close', done);
      connection.off('inputEnd', done);
      leave();
      resolve();
    };
    const timer = setTimeout(done, limits.slowMs);
    connection.once('close', done);
    connection.once('inputEnd', done);
    if (connection.destroyed || connection.inputEnded) done();
  });
}
