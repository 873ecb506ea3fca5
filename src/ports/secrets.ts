import type { SecretPurpose } from '../domain/secret-purposes.js';

/**
 * The service's own symmetric secrets. Each has an id, so that it can be replaced while the former one still
 * verifies.
 */
export interface Secret {
  readonly id: string;
  readonly key: Uint8Array;
}

export interface Secrets {
  /** Secret to make new things with. */
  current(purpose: SecretPurpose): Secret;
  /** Known secret of an id. */
  find(purpose: SecretPurpose, id: string): Secret | undefined;
  /** Known secrets of a purpose, the current one first. */
  all(purpose: SecretPurpose): readonly Secret[];
}
