import { AuditWalk } from '../../domain/audit.js';
import { DomainError } from '../../domain/errors.js';
import { SIGNERS_LOG, type SignerRevocation, takeSignerEntry } from '../../domain/signer-revocation.js';
import type { Secrets } from '../../ports/secrets.js';
import type { AuditStore } from '../../ports/stores.js';

/**
 * Greatest age of the knowledge of other processes' revocations: the bound on a revocation's delay in a
 * cluster.
 */
const MAX_AGE_MS = 1000;
const PAGE = 100;

/**
 * The revoked leaves, as the log of signers has them. Each look reads only what the log has grown by, and its
 * chain is checked: an entry that was altered in the store stops every verdict that would need the log,
 * rather than have a thief's leaf believed.
 */
export class SignerRevocations {
  readonly #stores: AuditStore;
  readonly #walk: AuditWalk;
  readonly #revocations = new Map<string, SignerRevocation>();
  #next = 1;
  /** Monotonic milliseconds at which the last whole look began. */
  #readAt = Number.NEGATIVE_INFINITY;
  #reading: Promise<void> | undefined;

  constructor({ stores, secrets }: { readonly stores: AuditStore; readonly secrets: Secrets }) {
    this.#stores = stores;
    this.#walk = new AuditWalk(
      secrets.all('audit').map(({ key }) => key),
      undefined,
    );
  }

  /** @throws DomainError `unavailable` / `store_unavailable` where the log cannot be read, or is not sound */
  async find(kid: string): Promise<SignerRevocation | undefined> {
    if (performance.now() - this.#readAt > MAX_AGE_MS) await this.#look();
    return this.#revocations.get(kid);
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
      const page = await this.#stores.readAudit(SIGNERS_LOG, this.#next, PAGE);
      if (page.length === 0) break;
      for (const entry of page) {
        if (!this.#walk.take(entry)) {
          throw new DomainError('unavailable', 'The registry cannot be asked at the moment.', {
            reason: 'store_unavailable',
            retryAfterSeconds: 60,
            cause: new Error('the log of signers is not sound: see takemark operator audit verify signers'),
          });
        }
        takeSignerEntry(this.#revocations, entry);
        this.#next = entry.sequence + 1;
      }
    }
    this.#readAt = began;
  }
}
