import { randomUUID } from 'node:crypto';
import { AUDIT_GENESIS, type AuditDraft, type AuditEntry, chainAudit } from '../../../domain/audit.js';
import type { AuditHeads } from '../../../ports/journals.js';
import type { AuditStore } from '../../../ports/stores.js';
import {
  numberIn,
  type Row,
  type Session,
  type Statement,
  storeUnavailable,
  textIn,
} from '../driver/session.js';

export interface AuditOptions {
  /** What entries are chained with. */
  readonly key: Uint8Array;
  /** Kept apart from the store, so that a log that was cut off is found. Not closed by the store. */
  readonly heads: AuditHeads;
}

const BUCKET_ENTRIES = 10_000;
/** Entries chained in one conditional batch. */
const GROUP = 25;
const WALK_STEP = 500;
/** Operations of the latest entries that are remembered for each partner, and partners remembered. */
const REMEMBERED = 2000;
const PARTNERS = 10_000;
/** Times that other processes may be quicker before the caller is told to come back. */
const ATTEMPTS = 200;

const COLUMNS = 'sequence, action, happened_at, actor, subjects, mac, op';
const RANGE = `SELECT ${COLUMNS} FROM audit_entry WHERE partner_id = ? AND bucket = ? AND sequence >= ? LIMIT ?`;
const LAST = `SELECT ${COLUMNS} FROM audit_entry WHERE partner_id = ? AND bucket = ? ORDER BY sequence DESC LIMIT 1`;
const INSERT =
  'INSERT INTO audit_entry (partner_id, bucket, sequence, action, happened_at, actor, subjects, mac, op) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) IF NOT EXISTS';
const POSITION = 'SELECT bucket FROM audit_position WHERE partner_id = ?';
const SET_POSITION = 'INSERT INTO audit_position (partner_id, bucket) VALUES (?, ?)';

interface Waiting {
  readonly draft: AuditDraft;
  readonly op: string;
  /** No entry up to this sequence is of this operation. */
  readonly floor: number;
  readonly done: () => void;
  readonly failed: (error: unknown) => void;
}

/** What this process knows of one partner's log. */
interface Tail {
  sequence: number;
  mac: string;
  /** Operations of all entries after `knownFrom`. */
  ops: Map<string, number>;
  knownFrom: number;
  waiting: Waiting[];
  draining: boolean;
}

/**
 * The partners' logs. The next entry is inserted on the condition that its sequence is free, so the log's own
 * end is its lock. An operation is chained once, however often it is asked for: whoever appends has looked at
 * every entry since the operation's floor, sequence by sequence, and the one that finds the operation there
 * is done.
 */
export class AuditLog implements AuditStore {
  readonly #session: Session;
  readonly #key: Uint8Array;
  readonly #heads: AuditHeads;
  readonly #tails = new Map<string, Promise<Tail>>();

  constructor(session: Session, { key, heads }: AuditOptions) {
    this.#session = session;
    this.#key = key;
    this.#heads = heads;
  }

  /** A sequence that the log has reached: the floor of an operation that has not begun yet. */
  async position(partnerId: string): Promise<number> {
    return (await this.#tail(partnerId)).sequence;
  }

  /**
   * Resolves when the operation's entry is in the log and the head is recorded.
   * @param floor what `position` said before the operation took effect
   */
  async append(draft: AuditDraft, op: string, floor: number): Promise<void> {
    const tail = await this.#tail(draft.partnerId);
    await new Promise<void>((done, failed) => {
      tail.waiting.push({ draft, op, floor, done, failed });
      if (!tail.draining) void this.#drain(draft.partnerId, tail);
    });
  }

  async appendAudit(draft: AuditDraft): Promise<void> {
    await this.append(draft, randomUUID(), await this.position(draft.partnerId));
  }

  async readAudit(partnerId: string, fromSequence: number, limit: number): Promise<readonly AuditEntry[]> {
    const entries: AuditEntry[] = [];
    let next = Math.max(1, fromSequence);
    while (entries.length < limit) {
      const asked = limit - entries.length;
      const rows = await this.#session.rows(RANGE, [partnerId, bucketOf(next), next, asked]);
      entries.push(...rows.map((row) => entryOf(partnerId, row)));
      // A bucket that is not full is the last one.
      const last = entries.at(-1)?.sequence ?? 0;
      if (rows.length < asked && (rows.length === 0 || last % BUCKET_ENTRIES !== 0)) break;
      next = last + 1;
    }
    return entries;
  }

  #tail(partnerId: string): Promise<Tail> {
    let tail = this.#tails.get(partnerId);
    if (tail === undefined) {
      tail = this.#findTail(partnerId);
      this.#tails.set(partnerId, tail);
      tail.catch(() => this.#tails.delete(partnerId));
      if (this.#tails.size > PARTNERS) void this.#forgetOne();
    }
    return tail;
  }

  async #forgetOne(): Promise<void> {
    for (const [partnerId, pending] of this.#tails) {
      const tail = await pending.catch(() => undefined);
      if (tail === undefined || tail.draining || tail.waiting.length > 0) continue;
      this.#tails.delete(partnerId);
      return;
    }
  }

  async #findTail(partnerId: string): Promise<Tail> {
    let bucket = ((await this.#session.first(POSITION, [partnerId]))?.['bucket'] as number | undefined) ?? 0;
    let last: Row | undefined;
    for (;;) {
      const row = await this.#session.first(LAST, [partnerId, bucket]);
      if (row === undefined) break;
      last = row;
      if (numberIn(row, 'sequence')! % BUCKET_ENTRIES !== 0) break;
      bucket += 1;
    }
    // The position was set before the bucket's first entry was kept: what comes before it is complete.
    if (last === undefined && bucket > 0) last = await this.#session.first(LAST, [partnerId, bucket - 1]);
    const sequence = last === undefined ? 0 : numberIn(last, 'sequence')!;
    return {
      sequence,
      mac: last === undefined ? AUDIT_GENESIS : textIn(last, 'mac')!,
      ops: new Map(),
      knownFrom: sequence,
      waiting: [],
      draining: false,
    };
  }

  async #drain(partnerId: string, tail: Tail): Promise<void> {
    tail.draining = true;
    // The rest of the current turn joins this group.
    await Promise.resolve();
    while (tail.waiting.length > 0) {
      const group = tail.waiting.splice(0, GROUP);
      try {
        await this.#chain(partnerId, tail, group);
        await this.#heads
          .record({ partnerId, sequence: tail.sequence, mac: tail.mac })
          .catch((error: unknown) => {
            throw storeUnavailable(error);
          });
        for (const { done } of group) done();
      } catch (error) {
        for (const { failed } of group) failed(error);
      }
    }
    tail.draining = false;
  }

  async #chain(partnerId: string, tail: Tail, group: readonly Waiting[]): Promise<void> {
    await this.#lookBack(partnerId, tail, Math.min(...group.map(({ floor }) => floor)));
    const missing = new Map(group.map((waiting) => [waiting.op, waiting]));
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      // Once found, found: what is remembered of the log is cut while this goes on.
      for (const op of missing.keys()) if (tail.ops.has(op)) missing.delete(op);
      if (missing.size === 0) return;
      const bucket = bucketOf(tail.sequence + 1);
      const entries: { readonly entry: AuditEntry; readonly op: string }[] = [];
      let head = tail.sequence === 0 ? undefined : { partnerId, sequence: tail.sequence, mac: tail.mac };
      for (const { draft, op } of missing.values()) {
        // A batch is of one partition; the rest comes with the next.
        if (bucketOf((head?.sequence ?? 0) + 1) !== bucket) break;
        const entry = chainAudit(this.#key, head, draft);
        entries.push({ entry, op });
        head = { partnerId, sequence: entry.sequence, mac: entry.mac };
      }
      // Before the first entry, so that no search begins in a bucket after a gap.
      if (entries[0]!.entry.sequence % BUCKET_ENTRIES === 1 && bucket > 0)
        await this.#session.write(SET_POSITION, [partnerId, bucket]);
      const { applied } = await this.#session.decide(
        ...entries.map(({ entry, op }) => insertion(entry, bucket, op)),
      );
      if (applied) for (const { entry, op } of entries) advance(tail, entry.sequence, entry.mac, op);
      // Refused: by another process's entries, or by these, of an attempt whose answer was lost.
      else await this.#walk(partnerId, tail);
    }
    throw storeUnavailable();
  }

  /** Makes sure that all entries after `floor` are known. */
  async #lookBack(partnerId: string, tail: Tail, floor: number): Promise<void> {
    let next = floor + 1;
    while (next <= tail.knownFrom) {
      const rows = await this.#session.rows(RANGE, [partnerId, bucketOf(next), next, WALK_STEP]);
      if (rows.length === 0) throw storeUnavailable();
      for (const row of rows) tail.ops.set(textIn(row, 'op')!, numberIn(row, 'sequence')!);
      next = numberIn(rows.at(-1)!, 'sequence')! + 1;
    }
    tail.knownFrom = Math.min(tail.knownFrom, floor);
  }

  async #walk(partnerId: string, tail: Tail): Promise<void> {
    const rows = await this.#session.rows(RANGE, [
      partnerId,
      bucketOf(tail.sequence + 1),
      tail.sequence + 1,
      WALK_STEP,
    ]);
    for (const row of rows)
      advance(tail, numberIn(row, 'sequence')!, textIn(row, 'mac')!, textIn(row, 'op')!);
  }
}

function advance(tail: Tail, sequence: number, mac: string, op: string): void {
  tail.sequence = sequence;
  tail.mac = mac;
  tail.ops.set(op, sequence);
  if (tail.ops.size <= 2 * REMEMBERED) return;
  tail.knownFrom = sequence - REMEMBERED;
  for (const [known, at] of tail.ops) if (at <= tail.knownFrom) tail.ops.delete(known);
}

function bucketOf(sequence: number): number {
  return Math.floor((sequence - 1) / BUCKET_ENTRIES);
}

function insertion(
  { partnerId, sequence, action, at, actor, subjects, mac }: AuditEntry,
  bucket: number,
  op: string,
): Statement {
  return { query: INSERT, params: [partnerId, bucket, sequence, action, at, actor, subjects, mac, op] };
}

function entryOf(partnerId: string, row: Row): AuditEntry {
  return {
    partnerId,
    action: textIn(row, 'action') as AuditEntry['action'],
    at: numberIn(row, 'happened_at')!,
    actor: textIn(row, 'actor')!,
    subjects: (row['subjects'] as string[] | null) ?? [],
    sequence: numberIn(row, 'sequence')!,
    mac: textIn(row, 'mac')!,
  };
}
