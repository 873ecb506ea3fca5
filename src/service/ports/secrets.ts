import type { SecretPurpose } from '../../core/domain/secret-purposes.js';

/**
 * A symmetric secret of the service. The id allows replacing the secret while the former one still verifies.
 */
export interface Secret {
  readonly id: string;
  readonly key: Uint8Array;
}

export interface Secrets {
  /** Returns the secret to use for new values of a purpose. */
  current(purpose: SecretPurpose): Secret;
  /** Returns the secret with an id, or undefined when it is unknown. */
  find(purpose: SecretPurpose, id: string): Secret | undefined;
  /** Returns all known secrets of a purpose, the current one first. */
  all(purpose: SecretPurpose): readonly Secret[];
}
