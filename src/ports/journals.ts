import type { AuditHead } from '../domain/audit.js';

/**
 * Erasures, kept apart from the store: "a restored backup brings erased proofs back", and at start the journal is replayed.
 * Proof ids and times only.
 */
export interface ErasureJournal {
  /** Durable when it resolves; called before the store's tombstone is acknowledged. Repeating it is harmless. */
  record(erasure: { readonly proofId: string; readonly partnerId: string; readonly erasedAt: number }): Promise<void>;
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
