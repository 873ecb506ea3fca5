import { DomainError, isRecordDamaged } from '../../../core/domain/errors.js';
import { type AuditEntry, AuditWalk } from '../../domain/audit.js';
import type { Secrets } from '../../ports/secrets.js';
import type { AuditStore } from '../../ports/stores.js';

/**
 * The largest age of the last read in milliseconds. Entries that other processes append are seen within this
 * time.
 */
const MAX_AGE_MS = 1000;
const PAGE = 500;

/** An error for a log with an altered, damaged or missing entry. The entries before that one were processed. */
export class UnsoundLog extends Error {
  constructor(log: string) {
    super(`the audit log ${log} is damaged: run takemark operator audit verify ${log}`);
    this.name = 'UnsoundLog';
  }
}

/**
 * Follows one of the service's own logs. Each read continues after the last entry and checks the chain of
 * MACs. An altered entry stops every call that needs the log, so that no call relies on it.
 */
export class LogFollower {
  readonly #stores: AuditStore;
  readonly #walk: AuditWalk;
  readonly #log: string;
  readonly #take: (entry: AuditEntry) => void;
  #next = 1;
  /** The start of the last complete read, in monotonic milliseconds. */
  #readAt = Number.NEGATIVE_INFINITY;
  #reading: Promise<void> | undefined;

  /** @param take called once with each entry, oldest first */
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
   * Reads new entries of the log, unless the last read is less than a second old.
   * @throws DomainError `unavailable` / `store_unavailable` when the log cannot be read, or is damaged
   */
  async keepUp(): Promise<void> {
    if (performance.now() - this.#readAt > MAX_AGE_MS) await this.#look();
  }

  /** Reads the log at least up to its end at the time of the call. */
  async refresh(): Promise<void> {
    // A read that began before this call may have missed the newest entry.
    await this.#reading?.catch(() => undefined);
    await this.#look();
  }

  #look(): Promise<void> {
    this.#reading ??= this.#read().finally(() => (this.#reading = undefined));
    return this.#reading;
  }

  async #read(): Promise<void> {
    const began = performance.now();
    for (let limit = PAGE; ; ) {
      const page = await this.#page(limit);
      if (page === undefined) {
        // The page has a damaged row. The entries before it are read one by one.
        if (limit === 1) throw unsound(this.#log);
        limit = 1;
        continue;
      }
      if (page.length === 0) break;
      for (const entry of page) {
        if (!this.#walk.take(entry)) throw unsound(this.#log);
        this.#take(entry);
        this.#next = entry.sequence + 1;
      }
    }
    this.#readAt = began;
  }

  /** Reads the next entries. Returns undefined if a row among them is damaged. */
  async #page(limit: number): Promise<readonly AuditEntry[] | undefined> {
    try {
      return await this.#stores.readAudit(this.#log, this.#next, limit);
    } catch (error) {
      if (!isRecordDamaged(error)) throw error;
      return undefined;
    }
  }
}

function unsound(log: string): DomainError {
  return new DomainError('unavailable', 'The registry is temporarily unavailable.', {
    reason: 'store_unavailable',
    retryAfterSeconds: 60,
    cause: new UnsoundLog(log),
  });
}
