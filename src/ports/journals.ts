import type { AuditHead } from '../domain/audit.js';

/**
 * Erasures, kept apart from the store and replayed at start, because a restored backup brings erased proofs
 * back. Proof ids and times only.
 */
export interface ErasureJournal {
  /**
   * Durable when it resolves; called before the store's tombstone is acknowledged. Repeating it is harmless.
   */
  record(erasure: {
    readonly proofId: string;
    readonly partnerId: string;
    readonly erasedAt: number;
  }): Promise<void>;
  read(): AsyncIterable<{ readonly proofId: string; readonly partnerId: string; readonly erasedAt: number }>;
  close(): Promise<void>;
}

/** Signed head counts of the audit logs, kept apart from them, so that a log that was cut off is found. */
export interface AuditHeads {
  /** Durable when it resolves. A lower sequence than the recorded one is ignored. */
  record(head: AuditHead): Promise<void>;
  get(partnerId: string): Promise<AuditHead | undefined>;
  close(): Promise<void>;
}

/** Heads of a store that belongs to this process alone, and can be put back while they stay. */
export interface OwnAuditHeads extends AuditHeads {
  all(): Promise<readonly AuditHead[]>;
  /**
   * Durable when it resolves. The log ends there from now on, although its head was higher; undefined where
   * it is gone.
   */
  acceptRestored(partnerId: string, head: AuditHead | undefined): Promise<void>;
}
