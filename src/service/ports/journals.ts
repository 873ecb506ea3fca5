import type { AuditHead } from '../domain/audit.js';

/** Runs an attempt, and repeats it if its caller waits for an unavailable server. */
export type Repeat = <Value>(attempt: () => Promise<Value>) => Promise<Value>;

/**
 * Records erasures apart from the store. Erasures are replayed after a restore, because a restored backup
 * contains erased proofs again. Entries have only ids and times. Entries are never deleted, because a backup
 * of any age may be restored.
 */
export interface ErasureJournal {
  /**
   * Records an erasure, durable when the promise resolves. Called before an erasure is acknowledged or
   * confirmed. Repeating the call is harmless.
   */
  record(erasure: {
    readonly proofId: string;
    readonly partnerId: string;
    readonly erasedAt: number;
  }): Promise<void>;
  /**
   * Reads all erasures.
   * @param repeat runs each request to a server. Without it each request is made once.
   * @param isHeld returns true when the store holds anything of a proof. An invalid entry is skipped when the
   * store holds nothing, because nothing has to be erased.
   * @throws ServerError at the end, with the names of the other invalid entries
   */
  read(
    repeat?: Repeat,
    isHeld?: (proofId: string) => Promise<boolean>,
  ): AsyncIterable<{ readonly proofId: string; readonly partnerId: string; readonly erasedAt: number }>;
  close(): Promise<void>;
}

/** The progress of a cluster's installation. `beat` rises while processes run, `epoch` with each restore. */
export interface InstallationState {
  readonly epoch: number;
  readonly beat: number;
}

/**
 * Records the state of an installation apart from the store. A store with a lower state was restored from a
 * backup.
 */
export interface InstallationMarks {
  /** Returns the recorded state, or zeros when none was recorded. */
  read(): Promise<InstallationState>;
  setBeat(beat: number): Promise<void>;
  setEpoch(epoch: number): Promise<void>;
}

/** The state of an installation in the store itself. */
export interface InstallationRow {
  read(): Promise<InstallationState>;
  /**
   * Raises the beat by one.
   * @returns the state, or undefined when another process was faster
   */
  beat(): Promise<InstallationState | undefined>;
  /** Raises the state to at least the given one. */
  accept(state: InstallationState): Promise<void>;
  /**
   * Starts the units of a later epoch in every partner's quota, for the current month and its neighbours.
   * @param at the time in unix seconds
   */
  beginEpoch(epoch: number, at: number): Promise<void>;
}

/**
 * Records signed head counts of the audit logs, apart from the logs. A truncated log is detected by its head.
 */
export interface AuditHeads {
  /** Records a head, durable when the promise resolves. A sequence lower than the recorded one is ignored. */
  record(head: AuditHead): Promise<void>;
  get(partnerId: string): Promise<AuditHead | undefined>;
  close(): Promise<void>;
}

/** Records heads of a store that only this process uses. The store can be restored while the heads stay. */
export interface OwnAuditHeads extends AuditHeads {
  all(): Promise<readonly AuditHead[]>;
  /**
   * Records that the restored log ends at this head, although its recorded head was higher. Undefined records
   * that the log no longer exists. Durable when the promise resolves.
   */
  acceptRestored(partnerId: string, head: AuditHead | undefined): Promise<void>;
}
