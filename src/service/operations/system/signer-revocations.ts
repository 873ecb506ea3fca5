import type { SignerRevocation } from '../../../core/domain/signer-revocation.js';
import { SIGNERS_LOG, takeSignerEntry } from '../../domain/signers-log.js';
import type { Secrets } from '../../ports/secrets.js';
import type { AuditStore } from '../../ports/stores.js';
import { LogFollower } from './log-follower.js';

/** The revoked signing certificates, as the log of signers records them. */
export class SignerRevocations {
  readonly #log: LogFollower;
  readonly #revocations = new Map<string, SignerRevocation>();

  constructor(deps: { readonly stores: AuditStore; readonly secrets: Secrets }) {
    this.#log = new LogFollower(deps, SIGNERS_LOG, (entry) => takeSignerEntry(this.#revocations, entry));
  }

  /**
   * Returns the revocation of a signing certificate, or undefined.
   * @throws DomainError `unavailable` / `store_unavailable` when the log cannot be read, or is damaged
   */
  async find(kid: string): Promise<SignerRevocation | undefined> {
    await this.#log.keepUp();
    return this.#revocations.get(kid);
  }

  /** Reads the log at least up to its end at the time of the call. */
  refresh(): Promise<void> {
    return this.#log.refresh();
  }
}
