import { SIGNERS_LOG, type SignerRevocation, takeSignerEntry } from '../../domain/signer-revocation.js';
import type { Secrets } from '../../ports/secrets.js';
import type { AuditStore } from '../../ports/stores.js';
import { LogFollower } from './log-follower.js';

/** The revoked leaves, as the log of signers has them. */
export class SignerRevocations {
  readonly #log: LogFollower;
  readonly #revocations = new Map<string, SignerRevocation>();

  constructor(deps: { readonly stores: AuditStore; readonly secrets: Secrets }) {
    this.#log = new LogFollower(deps, SIGNERS_LOG, (entry) => takeSignerEntry(this.#revocations, entry));
  }

  /** @throws DomainError `unavailable` / `store_unavailable` where the log cannot be read, or is not sound */
  async find(kid: string): Promise<SignerRevocation | undefined> {
    await this.#log.keepUp();
    return this.#revocations.get(kid);
  }

  /** Reads at least what the log held at the call. */
  refresh(): Promise<void> {
    return this.#log.refresh();
  }
}
