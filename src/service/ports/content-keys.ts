/**
 * Stores one content key per proof. All stored content of the proof is encrypted with this key. The keys are
 * stored apart from the stores and their backups. An erasure overwrites the key, and from then on no copy can
 * be decrypted. Failures are DomainError `unavailable` / `store_unavailable`.
 */
export interface ContentKeys {
  /**
   * Returns the key of a proof, 32 bytes, and creates it if it does not exist. The key is durable when the
   * promise resolves.
   * @throws DomainError `conflict` when the store reports that the key of this id was destroyed
   */
  obtain(proofId: string): Promise<Uint8Array>;
  /** Returns the key, or undefined when it was never created or was destroyed. */
  read(proofId: string): Promise<Uint8Array | undefined>;
  /**
   * Overwrites the key. The loss is final when the promise resolves: no concurrent `obtain` restores the key.
   * Repeating the call is harmless.
   */
  destroy(proofId: string): Promise<void>;
  /** Removes the key of an id under which nothing was issued. A new key may be created later. */
  release(proofId: string): Promise<void>;
}
