/**
 * Keys of what was issued, one a proof, with which everything that lies of its content is encrypted. They are kept
 * apart from the stores and their backups, and overwritten by the erasure: from then on no copy can be opened.
 * Failures are DomainError `unavailable` / `store_unavailable`.
 */
export interface ContentKeys {
  /**
   * The key of a proof, 32 bytes; made where there is none. Durable when it resolves.
   * @throws DomainError `conflict` where the store tells that the key of this id was destroyed
   */
  obtain(proofId: string): Promise<Uint8Array>;
  /** The key; undefined where none was made, or it is destroyed. */
  read(proofId: string): Promise<Uint8Array | undefined>;
  /**
   * Overwrites the key. Gone for good when it resolves: no `obtain` that is still on its way brings it back.
   * Repeating it is harmless.
   */
  destroy(proofId: string): Promise<void>;
  /** Removes the key of an id under which nothing was issued: another one may be made. */
  release(proofId: string): Promise<void>;
}
