import { withDeadline } from '../async/deadline.js';
import { DomainError, type ErrorReason } from '../domain/errors.js';

export interface Probes {
  /** Resolves while the service is ready, for `/readyz`. @throws DomainError `unavailable` */
  readonly ready: () => Promise<void>;
  /** Ends readiness, so that balancers stop sending before the listeners close. */
  readonly stopping: () => void;
}

export interface ProbeParts {
  /** Resolves when a read and a durable write succeed. */
  readonly store: () => Promise<void>;
  /** Resolves when the bus answers; for a process that is of no use without it. */
  readonly bus?: () => Promise<void>;
  /** Events that wait, and how many may. */
  readonly outbox: { readonly waiting: () => number; readonly limit: number };
  /** Always where the store has no servers of its own. */
  readonly isClockRight?: () => boolean;
  readonly timeoutMs?: number;
}

/**
 * Readiness: the store answers in time, the outbox has room, this process's clock is that of the store's
 * servers, and the service is not stopping. A bus that is down makes no service unready until then: what
 * happens meanwhile waits. Consumers do nothing without it.
 */
export function createProbes({
  store,
  bus,
  outbox,
  isClockRight = () => true,
  timeoutMs = 2000,
}: ProbeParts): Probes {
  let isStopping = false;
  return {
    ready: async () => {
      if (isStopping)
        throw new DomainError('unavailable', 'The service is stopping.', { reason: 'shutting_down' });
      if (outbox.waiting() >= outbox.limit)
        throw new DomainError('unavailable', 'Too many events wait to be passed on.', {
          reason: 'outbox_full',
        });
      if (!isClockRight())
        throw new DomainError('unavailable', "The clock differs from the store's by more than 20 seconds.", {
          reason: 'clock_wrong',
        });
      await inTime(store(), 'The store does not answer.', 'store_unavailable', timeoutMs);
      if (bus !== undefined) await inTime(bus(), 'The bus does not answer.', 'bus_unavailable', timeoutMs);
    },
    stopping: () => {
      isStopping = true;
    },
  };
}

async function inTime(
  answer: Promise<void>,
  message: string,
  reason: ErrorReason,
  timeoutMs: number,
): Promise<void> {
  const late = (): void => {
    throw new Error('there was no answer in time');
  };
  await withDeadline(answer, timeoutMs, late).catch((cause: unknown) => {
    throw new DomainError('unavailable', message, { reason, cause });
  });
}
