import { type AuditEntry, AuditWalk } from '../../domain/audit.js';
import { DomainError } from '../../domain/errors.js';
import type { Secrets } from '../../ports/secrets.js';
import type { AuditStore } from '../../ports/stores.js';

/** Greatest age of the knowledge of what other processes appended: the bound on its delay in a cluster. */
const MAX_AGE_MS = 1000;
const PAGE = 500;

/** A log with an entry that was altered, or that lacks one. What stands before the fault was taken. */
export class UnsoundLog extends Error {
  constructor(log: string) {
    super(`the log of ${log} is not sound: see takemark operator audit verify ${log}`);
    this.name = 'UnsoundLog';
  }
}

/**
 * Follower of one of the service's own logs. Each look reads only what the log has grown by, and its chain is
 * checked: an entry that was altered in the store stops every call that would need the log, rather than have
 * it believed.
 */
export class LogFollower {
  readonly #stores: AuditStore;
  readonly #walk: AuditWalk;
  readonly #log: string;
  readonly #take: (entry: AuditEntry) => void;
  #next = 1;
  /** Monotonic milliseconds at which the last whole look began. */
  #readAt = Number.NEGATIVE_INFINITY;
  #reading: Promise<void> | undefined;

  /** @param take called with each entry once, oldest first */
  constructor(
    { stores, secrets }: { readonly stores: AuditStore; readonly secrets: Secrets },
    log: string,
    take: (entry: AuditEntry) => void,
  ) {
    this.#stores = stores;
    this.#walk = new AuditWalk(
      secrets.all('audit').map(({ key }) => key),
      undefined,
    );
    this.#log = log;
    this.#take = take;
  }

  /**
   * Reads what the log has grown by, unless that was done less than a second ago.
   * @throws DomainError `unavailable` / `store_unavailable` where the log cannot be read, or is not sound
   */
  async keepUp(): Promise<void> {
    if (performance.now() - this.#readAt > MAX_AGE_MS) await this.#look();
  }

  /** Reads at least what the log held at the call. */
  async refresh(): Promise<void> {
    // A look that has begun before may have missed the newest entry.
    await this.#reading?.catch(() => undefined);
    await this.#look();
  }

  #look(): Promise<void> {
    this.#reading ??= this.#read().finally(() => (this.#reading = undefined));
    return this.#reading;
  }

  async #read(): Promise<void> {
    const began = performance.now();
    for (;;) {
      const page = await this.#stores.readAudit(this.#log, this.#next, PAGE);
      if (page.length === 0) break;
      for (const entry of page) {
        if (!this.#walk.take(entry)) {
          throw new DomainError('unavailable', 'The registry cannot be asked at the moment.', {
            reason: 'store_unavailable',
            retryAfterSeconds: 60,
            cause: new UnsoundLog(this.#log),
          });
        }
        this.#take(entry);
        this.#next = entry.sequence + 1;
      }
    }
    this.#readAt = began;
  }
}
