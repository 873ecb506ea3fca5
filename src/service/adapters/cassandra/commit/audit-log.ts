import { randomUUID } from 'node:crypto';
import { defined } from '../../../../core/domain/defined.js';
import { isRecordDamaged } from '../../../../core/domain/errors.js';
import { AUDIT_GENESIS, type AuditDraft, type AuditEntry, chainAudit } from '../../../domain/audit.js';
import type { AuditHeads } from '../../../ports/journals.js';
import type { AuditStore } from '../../../ports/stores.js';
import type { Blobs } from '../driver/blobs.js';
import {
  numberIn,
  type Row,
  type Session,
  type Statement,
  storeUnavailable,
  textIn,
} from '../driver/session.js';

export interface AuditOptions {
  /** The secret that chains the entries. */
  readonly key: Uint8Array;
  /** The heads, kept apart from the store, so that a log that was cut off is found. They are not closed here. */
  readonly heads: AuditHeads;
}

/** The number of entries in one partition of the log. */
const PARTITION_ENTRIES = 10_000;
/** The most entries that one conditional batch chains. */
const GROUP = 25;
const READ_STEP = 500;
/** The number of a partner's latest entries whose operation ids stay when earlier ones are forgotten. */
const REMEMBERED = 2000;
/** The number of partners whose log's end is remembered. */
const PARTNERS = 10_000;
/** The number of waiting entries from which a partner's next operation waits until they are in the log. */
const MOST_WAITING = 1000;
/** The attempts that may be lost to quicker processes before the caller gets 503. */
const ATTEMPTS = 200;
/** The request id of an entry whose cell for it is damaged. */
const DAMAGED = 'damaged';

const COLUMNS = 'sequence, action, happened_at, actor, subjects, request, mac, op';
const RANGE = `SELECT ${COLUMNS} FROM audit_entry WHERE partner_id = ? AND bucket = ? AND sequence >= ? LIMIT ?`;
const LAST = `SELECT ${COLUMNS} FROM audit_entry WHERE partner_id = ? AND bucket = ? ORDER BY sequence DESC LIMIT 1`;
const INSERT =
  'INSERT INTO audit_entry (partner_id, bucket, sequence, action, happened_at, actor, subjects, request, mac, op) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) IF NOT EXISTS';
const GET_PARTITION = 'SELECT bucket FROM audit_position WHERE partner_id = ?';
const SET_PARTITION = 'INSERT INTO audit_position (partner_id, bucket) VALUES (?, ?)';

interface Waiting {
  readonly draft: AuditDraft;
  readonly op: string;
  /** A lower bound of the sequence of the operation's entry: no entry up to this sequence is its own. */
  readonly floor: number;
  readonly done: () => void;
  readonly failed: (error: unknown) => void;
}

/** The end of one partner's log, as far as this process knows it. */
interface LogEnd {
  sequence: number;
  mac: string;
  /** The operation ids of all entries after `opsFrom`, with their sequences. */
  ops: Map<string, number>;
  opsFrom: number;
  waiting: Waiting[];
  draining: Promise<void> | undefined;
}

/**
 * The partners' logs. The next entry is inserted on the condition that its sequence is free, so the log's own
 * end is its lock. An operation is chained once, however often it is appended: before each attempt the
 * process knows the operation ids of all entries since the operation's floor, and appends nothing where its
 * own is among them.
 */
export class AuditLog implements AuditStore {
  readonly #session: Session;
  readonly #blobs: Blobs;
  readonly #key: Uint8Array;
  readonly #heads: AuditHeads;
  readonly #ends = new Map<string, Promise<LogEnd>>();

  constructor(session: Session, blobs: Blobs, { key, heads }: AuditOptions) {
    this.#session = session;
    this.#blobs = blobs;
    this.#key = key;
    this.#heads = heads;
  }

  /** Returns the sequence that the log has reached: the floor of an operation that has not begun yet. */
  async reached(partnerId: string): Promise<number> {
    const end = await this.#logEnd(partnerId);
    // Entries are chained after the responses. A caller that makes more than a log accepts waits here.
    if (end.waiting.length >= MOST_WAITING) await end.draining;
    return end.sequence;
  }

  /**
   * Resolves when the operation's entry is in the log and the head is recorded.
   * @param floor what `reached` said before the operation took effect
   */
  async append(draft: AuditDraft, op: string, floor: number): Promise<void> {
    const end = await this.#logEnd(draft.partnerId);
    await new Promise<void>((done, failed) => {
      end.waiting.push({ draft, op, floor, done, failed });
      end.draining ??= this.#drain(draft.partnerId, end);
    });
  }

  /** Resolves when what waits now is in the logs, or could not be written there. @param partnerId all by default */
  async settle(partnerId?: string): Promise<void> {
    const ends = partnerId === undefined ? [...this.#ends.values()] : [this.#ends.get(partnerId)];
    await Promise.all(ends.map(async (pending) => (await pending?.catch(() => undefined))?.draining));
  }

  async appendAudit(draft: AuditDraft): Promise<void> {
    await this.append(draft, randomUUID(), await this.reached(draft.partnerId));
  }

  async readAudit(partnerId: string, fromSequence: number, limit: number): Promise<readonly AuditEntry[]> {
    // A caller that has its response finds the entry, although it is chained afterwards.
    await this.settle(partnerId);
    const entries: AuditEntry[] = [];
    let next = Math.max(1, fromSequence);
    while (entries.length < limit) {
      const asked = limit - entries.length;
      const rows = await this.#session.rows(RANGE, [partnerId, partitionOf(next), next, asked]);
      entries.push(...rows.map((row) => this.#entryOf(partnerId, row)));
      // A partition that is not full is the last one.
      const last = entries.at(-1)?.sequence ?? 0;
      if (rows.length < asked && (rows.length === 0 || last % PARTITION_ENTRIES !== 0)) break;
      next = last + 1;
    }
    return entries;
  }

  /**
   * Inserts entries of another store that follow each other, in one partition. Entries that exist stay. The log must be
   * appended to by nothing else meanwhile.
   */
  async insert(entries: readonly AuditEntry[]): Promise<void> {
    const { partnerId, sequence } = entries[0]!;
    const partition = partitionOf(sequence);
    if (partition > 0) await this.#session.write(SET_PARTITION, [partnerId, partition]);
    await this.#session.lightweightTransaction(
      ...entries.map((entry) => this.#insertion(entry, partition, randomUUID())),
    );
  }

  #logEnd(partnerId: string): Promise<LogEnd> {
    let end = this.#ends.get(partnerId);
    if (end === undefined) {
      end = this.#findEnd(partnerId);
      this.#ends.set(partnerId, end);
      end.catch(() => this.#ends.delete(partnerId));
      if (this.#ends.size > PARTNERS) void this.#forgetOne();
    }
    return end;
  }

  async #forgetOne(): Promise<void> {
    for (const [partnerId, pending] of this.#ends) {
      const end = await pending.catch(() => undefined);
      if (end === undefined || end.draining !== undefined || end.waiting.length > 0) continue;
      this.#ends.delete(partnerId);
      return;
    }
  }

  async #findEnd(partnerId: string): Promise<LogEnd> {
    let partition =
      ((await this.#session.first(GET_PARTITION, [partnerId]))?.['bucket'] as number | undefined) ?? 0;
    let last: Row | undefined;
    for (;;) {
      const row = await this.#session.first(LAST, [partnerId, partition]);
      if (row === undefined) break;
      last = row;
      if (numberIn(row, 'sequence')! % PARTITION_ENTRIES !== 0) break;
      partition += 1;
    }
    // The partition was set before its first entry was written, so the partition before is complete.
    if (last === undefined && partition > 0)
      last = await this.#session.first(LAST, [partnerId, partition - 1]);
    const sequence = last === undefined ? 0 : numberIn(last, 'sequence')!;
    return {
      sequence,
      mac: last === undefined ? AUDIT_GENESIS : textIn(last, 'mac')!,
      ops: new Map(),
      opsFrom: sequence,
      waiting: [],
      draining: undefined,
    };
  }

  async #drain(partnerId: string, end: LogEnd): Promise<void> {
    // Appends of the same turn of the event loop join this group.
    await Promise.resolve();
    while (end.waiting.length > 0) {
      const group = end.waiting.splice(0, GROUP);
      try {
        await this.#chain(partnerId, end, group);
        await this.#heads
          .record({ partnerId, sequence: end.sequence, mac: end.mac })
          .catch((error: unknown) => {
            throw storeUnavailable(error);
          });
        for (const { done } of group) done();
      } catch (error) {
        for (const { failed } of group) failed(error);
      }
    }
    end.draining = undefined;
  }

  async #chain(partnerId: string, end: LogEnd, group: readonly Waiting[]): Promise<void> {
    await this.#readFrom(partnerId, end, Math.min(...group.map(({ floor }) => floor)));
    const missing = new Map(group.map((waiting) => [waiting.op, waiting]));
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      // An operation that was found is done for good: remembered ids are forgotten while this goes on.
      for (const op of missing.keys()) if (end.ops.has(op)) missing.delete(op);
      if (missing.size === 0) return;
      const partition = partitionOf(end.sequence + 1);
      const entries: { readonly entry: AuditEntry; readonly op: string }[] = [];
      let head = end.sequence === 0 ? undefined : { partnerId, sequence: end.sequence, mac: end.mac };
      for (const { draft, op } of missing.values()) {
        // A batch has one partition; the rest comes with the next batch.
        if (partitionOf((head?.sequence ?? 0) + 1) !== partition) break;
        const entry = chainAudit(this.#key, head, draft);
        entries.push({ entry, op });
        head = { partnerId, sequence: entry.sequence, mac: entry.mac };
      }
      // Written before the first entry, so that no search begins in a partition after a gap.
      if (entries[0]!.entry.sequence % PARTITION_ENTRIES === 1 && partition > 0)
        await this.#session.write(SET_PARTITION, [partnerId, partition]);
      const { applied } = await this.#session.lightweightTransaction(
        ...entries.map(({ entry, op }) => this.#insertion(entry, partition, op)),
      );
      if (applied) for (const { entry, op } of entries) advance(end, entry.sequence, entry.mac, op);
      // The refusal comes from another process's entries, or from these, of a sending whose outcome was lost.
      else await this.#catchUp(partnerId, end);
    }
    throw storeUnavailable();
  }

  /** Reads until the operation ids of all entries after `floor` are known. */
  async #readFrom(partnerId: string, end: LogEnd, floor: number): Promise<void> {
    let next = floor + 1;
    while (next <= end.opsFrom) {
      const rows = await this.#session.rows(RANGE, [partnerId, partitionOf(next), next, READ_STEP]);
      if (rows.length === 0) throw storeUnavailable();
      for (const row of rows) end.ops.set(textIn(row, 'op')!, numberIn(row, 'sequence')!);
      next = numberIn(rows.at(-1)!, 'sequence')! + 1;
    }
    end.opsFrom = Math.min(end.opsFrom, floor);
  }

  /** Reads the entries that other processes have appended. */
  async #catchUp(partnerId: string, end: LogEnd): Promise<void> {
    const rows = await this.#session.rows(RANGE, [
      partnerId,
      partitionOf(end.sequence + 1),
      end.sequence + 1,
      READ_STEP,
    ]);
    for (const row of rows) advance(end, numberIn(row, 'sequence')!, textIn(row, 'mac')!, textIn(row, 'op')!);
  }

  #insertion(entry: AuditEntry, partition: number, op: string): Statement {
    const { partnerId, sequence, action, at, actor, subjects, requestId, mac } = entry;
    const request =
      requestId === undefined ? undefined : this.#blobs.encode(requestKey(partnerId, sequence), requestId);
    return {
      query: INSERT,
      params: [partnerId, partition, sequence, action, at, actor, subjects, request, mac, op],
    };
  }

  #entryOf(partnerId: string, row: Row): AuditEntry {
    const sequence = numberIn(row, 'sequence')!;
    return {
      partnerId,
      action: textIn(row, 'action') as AuditEntry['action'],
      at: numberIn(row, 'happened_at')!,
      actor: textIn(row, 'actor')!,
      subjects: (row['subjects'] as string[] | null) ?? [],
      ...defined({ requestId: this.#requestIdOf(requestKey(partnerId, sequence), row['request']) }),
      sequence,
      mac: textIn(row, 'mac')!,
    };
  }

  /**
   * Returns the request id in a cell, or `damaged` if the cell does not decode. The chain does not cover the id, so the
   * entry is sound without it, and the reads that need the entry must not fail.
   */
  #requestIdOf(key: string, cell: unknown): string | undefined {
    if (cell === null || cell === undefined) return undefined;
    try {
      return this.#blobs.decode<string>(key, cell);
    } catch (error) {
      if (!isRecordDamaged(error)) throw error;
      return DAMAGED;
    }
  }
}

function advance(end: LogEnd, sequence: number, mac: string, op: string): void {
  end.sequence = sequence;
  end.mac = mac;
  end.ops.set(op, sequence);
  if (end.ops.size <= 2 * REMEMBERED) return;
  end.opsFrom = sequence - REMEMBERED;
  for (const [known, at] of end.ops) if (at <= end.opsFrom) end.ops.delete(known);
}

function partitionOf(sequence: number): number {
  return Math.floor((sequence - 1) / PARTITION_ENTRIES);
}

/** Returns what the code of a request id covers, so that no id is taken for that of another entry. */
function requestKey(partnerId: string, sequence: number): string {
  return `audit/${partnerId}/${sequence}`;
}
