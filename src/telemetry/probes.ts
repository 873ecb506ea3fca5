import { withDeadline } from '../async/deadline.js';
import { DomainError } from '../domain/errors.js';

export interface Probes {
  /** Resolves while the service is ready, for `/readyz`. @throws DomainError `unavailable` */
  readonly ready: () => Promise<void>;
  /** Ends readiness, so that balancers stop sending before the listeners close. */
  readonly stopping: () => void;
}

/**
 * Readiness: the store answers in time, the outbox has room, and the service is not stopping. A bus that is
 * down makes nothing unready until then: what happens meanwhile waits.
 * @param ping resolves when a read and a durable write succeed
 * @param outbox events that wait, and how many may
 */
export function createProbes(
  ping: () => Promise<void>,
  outbox: { readonly waiting: () => number; readonly limit: number },
  timeoutMs = 2000,
): Probes {
  let isStopping = false;
  return {
    ready: async () => {
      if (isStopping)
        throw new DomainError('unavailable', 'The service is stopping.', { reason: 'shutting_down' });
      if (outbox.waiting() >= outbox.limit)
        throw new DomainError('unavailable', 'Too many events wait to be passed on.', {
          reason: 'outbox_full',
        });
      const late = (): void => {
        throw new Error('the store did not answer in time');
      };
      await withDeadline(ping(), timeoutMs, late).catch((cause: unknown) => {
        throw new DomainError('unavailable', 'The store does not answer.', {
          reason: 'store_unavailable',
          cause,
        });
      });
    },
    stopping: () => {
      isStopping = true;
    },
  };
}
