import { withDeadline } from '../../core/async/deadline.js';
import { DomainError, type ErrorReason } from '../../core/domain/errors.js';

export interface Probes {
  /** Resolves while the service is ready, for `/readyz`. @throws DomainError `unavailable` */
  readonly ready: () => Promise<void>;
  /** Ends readiness, so that load balancers stop sending requests. */
  readonly stopping: () => void;
}

export interface ProbeParts {
  /** Resolves when a read and a durable write succeed. */
  readonly store: () => Promise<void>;
  /** Resolves when the bus answers. Given only for a process that is useless without the bus. */
  readonly bus?: () => Promise<void>;
  /** The number of waiting events, and its limit. */
  readonly outbox: { readonly waiting: () => number; readonly limit: number };
  /** Returns whether this process's clock is right. Always true if the store has no servers. */
  readonly isClockRight?: () => boolean;
  readonly timeoutMs?: number;
}

/** How long a result of the store and the bus is reused, in milliseconds. A check may cost a write. */
const SERVERS_MS = 1000;

/**
 * Creates the probes. A process is ready if the store answers in time, the outbox has room, its clock agrees
 * with the store's servers, and it is not stopping. A service stays ready while the bus is down, until the
 * outbox is full: events wait in the outbox. Consumers need the bus to be ready.
 */
export function createProbes({
  store,
  bus,
  outbox,
  isClockRight = () => true,
  timeoutMs = 2000,
}: ProbeParts): Probes {
  let isStopping = false;
  const servers = remembered(async () => {
    await inTime(store(), 'The store does not respond.', 'store_unavailable', timeoutMs);
    if (bus !== undefined)
      await inTime(bus(), 'The event bus does not respond.', 'bus_unavailable', timeoutMs);
  }, SERVERS_MS);
  return {
    ready: async () => {
      if (isStopping)
        throw new DomainError('unavailable', 'The service is stopping.', { reason: 'shutting_down' });
      if (outbox.waiting() >= outbox.limit)
        throw new DomainError('unavailable', 'Too many events are waiting to be published.', {
          reason: 'outbox_full',
        });
      if (!isClockRight())
        throw new DomainError('unavailable', "The clock differs from the store's by more than 20 seconds.", {
          reason: 'clock_wrong',
        });
      await servers();
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
    throw new Error('timed out');
  };
  await withDeadline(answer, timeoutMs, late).catch((cause: unknown) => {
    throw new DomainError('unavailable', message, { reason, cause });
  });
}

/** Wraps `ask` so that a result is reused for `ms` milliseconds. Frequent callers cost no extra checks. */
function remembered(ask: () => Promise<void>, ms: number): () => Promise<void> {
  let askedAt = -Infinity;
  let result: Promise<void> | undefined;
  return () => {
    const now = performance.now();
    if (result === undefined || now - askedAt >= ms) {
      askedAt = now;
      result = ask();
    }
    return result;
  };
}
