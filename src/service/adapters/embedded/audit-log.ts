import { type AuditDraft, type AuditEntry, type AuditHead, chainAudit } from '../../domain/audit.js';
import type { AuditHeads } from '../../ports/journals.js';
import type { AuditStore } from '../../ports/stores.js';
import type { Transaction } from './commit-queue.js';
import { storeUnavailable } from './database.js';
import { auditHeadKey, auditKey, under, within } from './keys.js';
import type { Rows } from './rows.js';

export interface AuditOptions {
  /** The secret that chains the entries. */
  readonly key: Uint8Array;
  /** The heads, kept apart from the store, so that a log that was cut off is found. They are not closed here. */
  readonly heads: AuditHeads;
}

/**
 * The partners' logs. An entry is written in one transaction with the change that it records, and its head is
 * recorded before the caller hears of the change.
 */
export class AuditLog implements AuditStore {
  readonly #rows: Rows;
  readonly #key: Uint8Array;
  readonly #heads: AuditHeads;

  constructor(rows: Rows, { key, heads }: AuditOptions) {
    this.#rows = rows;
    this.#key = key;
    this.#heads = heads;
  }

  /**
   * Runs an operation as `Rows.run` does. The operation calls `append` for each change that it makes.
   * @throws DomainError `unavailable` also where the head cannot be recorded: the operation took effect, and
   * repeating it shows the outcome
   */
  async run<Value>(
    operation: (tx: Transaction, append: (draft: AuditDraft) => void) => Value,
  ): Promise<Value> {
    let head: AuditHead | undefined;
    const value = await this.#rows.run((tx) => operation(tx, (draft) => (head = this.#append(tx, draft))));
    if (head === undefined) return value;
    try {
      await this.#heads.record(head);
    } catch (error) {
      throw storeUnavailable(error);
    }
    return value;
  }

  /**
   * Records the heads that a crash or a failure between the two writes left unrecorded: without them a log
   * that was cut off there would not be found.
   */
  async catchUp(): Promise<void> {
    for (const [, head] of await this.#rows.soundEntries<AuditHead>(
      under('audit-head'),
      Number.POSITIVE_INFINITY,
    )) {
      const recorded = await this.#heads.get(head.partnerId);
      if (recorded === undefined || recorded.sequence < head.sequence) await this.#heads.record(head);
    }
  }

  appendAudit(draft: AuditDraft): Promise<void> {
    return this.run((_tx, append) => append(draft));
  }

  async readAudit(partnerId: string, fromSequence: number, limit: number): Promise<readonly AuditEntry[]> {
    const found = await this.#rows.entries<AuditEntry>(
      within({ from: fromSequence }, 'audit', partnerId),
      limit,
    );
    return found.map(([, entry]) => entry);
  }

  #append(tx: Transaction, draft: AuditDraft): AuditHead {
    const { partnerId } = draft;
    const entry = chainAudit(this.#key, tx.get(auditHeadKey(partnerId)), draft);
    const head = { partnerId, sequence: entry.sequence, mac: entry.mac };
    tx.put(auditKey(partnerId, entry.sequence), entry);
    tx.put(auditHeadKey(partnerId), head);
    return head;
  }
}
