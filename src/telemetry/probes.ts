import { DomainError } from '../domain/errors.js';

export interface Probes {
  /** For `/readyz`. @throws DomainError `unavailable` */
  readonly ready: () => Promise<void>;
  /** From now on the service is not ready, so that balancers stop sending before the listeners close. */
  readonly stopping: () => void;
}

/**
 * Readiness: the store answers in time and the service is not stopping.
 * @param ping resolves when a read and a durable write succeed
 */
export function createProbes(ping: () => Promise<void>, timeoutMs = 2_000): Probes {
  let isStopping = false;
  return {
    ready: async () => {
      if (isStopping) throw new DomainError('unavailable', 'The service is stopping.', { reason: 'shutting_down' });
      let timer: NodeJS.Timeout | undefined;
      const late = new Promise<never>((_, reject) => {
        timer = setTimeout(() => reject(new Error('the store did not answer in time')), timeoutMs);
      });
      try {
        await Promise.race([ping(), late]);
      } catch (cause) {
        throw new DomainError('unavailable', 'The store does not answer.', { reason: 'store_unavailable', cause });
      } finally {
        clearTimeout(timer);
      }
    },
    stopping: () => {
      isStopping = true;
    },
  };
}
