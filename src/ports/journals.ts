import type { AuditHead } from '../domain/audit.js';

/** Makes an attempt, and makes it again where its caller waits for a server that is away. */
export type Repeat = <Value>(attempt: () => Promise<Value>) => Promise<Value>;

/**
 * Erasures, kept apart from the store and replayed, because a restored backup brings erased proofs back. Ids
 * and times only. Entries stay for good: a backup of any age may come back.
 */
export interface ErasureJournal {
  /**
   * Durable when it resolves; called before an erasure is acknowledged or confirmed. Repeating it is harmless.
   */
  record(erasure: {
    readonly proofId: string;
    readonly partnerId: string;
    readonly erasedAt: number;
  }): Promise<void>;
  /**
   * @param repeat makes each request to a server; absent: each is made once
   * @param isHeld tells whether the store holds anything of a proof; an entry that cannot be believed is passed over
   * where it does not, as there is nothing to erase
   * @throws ServerError at the end, with the names of other entries that cannot be believed
   */
  read(
    repeat?: Repeat,
    isHeld?: (proofId: string) => Promise<boolean>,
  ): AsyncIterable<{ readonly proofId: string; readonly partnerId: string; readonly erasedAt: number }>;
  close(): Promise<void>;
}

/**
 * How far a cluster's installation has come. `beat` rises while processes are at work, `epoch` with each restore.
 */
export interface InstallationState {
  readonly epoch: number;
  readonly beat: number;
}

/** The state of an installation as it is noted apart from the store: a store that lags behind was put back. */
export interface InstallationMarks {
  /** Zeros where nothing was noted. */
  read(): Promise<InstallationState>;
  setBeat(beat: number): Promise<void>;
  setEpoch(epoch: number): Promise<void>;
}

/** The state of an installation in the store itself. */
export interface InstallationRow {
  read(): Promise<InstallationState>;
  /** Raises the beat by one. @returns the state; undefined where another process was quicker */
  beat(): Promise<InstallationState | undefined>;
  /** Raises the state to at least this. */
  accept(state: InstallationState): Promise<void>;
  /**
   * Begins the units of a later epoch in every partner's quota of the present month and those beside it.
   * @param at unix seconds
   */
  beginEpoch(epoch: number, at: number): Promise<void>;
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
