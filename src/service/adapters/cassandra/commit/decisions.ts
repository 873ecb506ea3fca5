import { randomUUID } from 'node:crypto';
import { WorkQueue } from '../../../../core/async/work-queue.js';
import type { AuditDraft } from '../../../domain/audit.js';
import type { ServiceEvent, Topic } from '../../../domain/events.js';
import type { Blobs } from '../driver/blobs.js';
import { aheadOfClocks, type LwtOutcome, type Session, type Statement } from '../driver/session.js';
import type { AuditLog } from './audit-log.js';
import type { Outbox } from './outbox.js';
import { type Pointer, type Pointers, ROW_TTL_SECONDS, type Visited } from './pointers.js';

/** The number of operations whose event is remembered as published. */
const MAX_PUBLISHED = 10_000;

/** The most operations whose act and pointer are removed at once. A connection takes 2,048 requests. */
const CLEARED_AT_ONCE = 256;

/** The parts of a partition that contain acts. */
export const ACT = 'act/';

/**
 * A row that a decided operation leaves beside the rows it changed, in the same conditional batch. It proves that
 * the operation was decided, and has what is left to do.
 */
export interface Act<Data> {
  readonly op: string;
  /** Absent if what follows is audited by operations of its own. */
  readonly audit?: AuditDraft;
  /** The sequence that the audit log had reached before the decision. */
  readonly floor: number;
  /** The facts that the following steps need and that the decided rows no longer contain. */
  readonly data: Data;
}

/** A table whose partitions hold acts: its last clustering column is `part`. */
export interface DecidedTable {
  readonly name: string;
  /** The columns of its primary key before `part`. */
  readonly keyColumns: readonly string[];
  /** Returns the values of these columns. */
  keyValues(key: string): readonly unknown[];
  /**
   * Makes sure that no statement takes effect any more that was built from what was read before: raises
   * `gen`, or takes the place of a head that is not there.
   */
  fence(key: string): Promise<void>;
}

/** How operations of one kind go on once they are decided. All of it is repeatable, by any process. */
export interface DecisionKind<Data> {
  readonly kind: string;
  readonly table: DecidedTable;
  /** Makes what callers must find when they are answered: indexes, removals. */
  readonly follow?: (key: string, act: Act<Data>) => Promise<void>;
  /** The event of the operation. The act stays until the event was published. */
  readonly event?: {
    readonly topic: Topic;
    readonly of: (key: string, act: Act<Data>) => ServiceEvent;
  };
  /**
   * Gives up an operation without a visible act. By default its partition is fenced, and then the act is read once
   * more.
   * @returns `removed` if the operation can no longer be decided
   */
  readonly abandon?: (pointer: Pointer) => Promise<Visited>;
}

export interface Decision<Data> {
  /** The key of the partition. */
  readonly key: string;
  readonly audit?: AuditDraft;
  readonly data: Data;
  /**
   * The conditional statements, which demand the `gen` that was read before this call. The operation's act
   * joins them.
   */
  readonly statements: (op: string) => readonly Statement[];
  /** The pointer, where it was written before. Its `op` is the operation's. */
  readonly pointer?: Pointer;
}

/** The operations of one kind. */
export interface Operations<Data> {
  /**
   * Decides an operation, and does what follows. The audit entry is chained after the answer, in groups.
   * @throws DomainError `unavailable` if it is unknown whether the operation was decided. The sweep will find out
   */
  commit(decision: Decision<Data>): Promise<LwtOutcome>;
  /**
   * Completes a decided operation that its own process may have left, for an answer that builds on it. Does
   * nothing where all is done.
   */
  complete(key: string, op: string): Promise<void>;
}

/**
 * Decisions: the only way to a conditional write that has further steps. The database cannot commit two partitions
 * together, so the order makes every crash point safe:
 *   1. a pointer to the partition
 *   2. the decision: one conditional batch of the partition, with the operation's act
 *   3. audit entry and event, on their way at once; what follows, and then the caller's answer
 *   4. the act is removed, then the pointer
 * The sweep of any process finds pointers that stay. It finishes an operation that has an act. Without an act it
 * raises the partition's `gen` and looks again, by a serial read: a late write that was built before is then
 * refused. A call whose decision is refused, and was sent before without an answer, does the same before it removes
 * its pointer. So no clock takes part in this, and a sweep that is too early costs a running call one refusal. `gen`
 * must be read before the pointer is written. A refused caller reads again and commits another operation.
 */
export class Decisions {
  readonly #session: Session;
  readonly #serialReads: Session;
  readonly #blobs: Blobs;
  readonly #log: AuditLog;
  readonly #pointers: Pointers;
  readonly #outbox: Outbox;
  /** The decided operations that this process is completing. Each ends when it is done or has failed. */
  readonly #underWay = new Map<string, Promise<void>>();
  /** The operations whose event waits in this process. Each ends when it was published. */
  readonly #publishing = new Map<string, Promise<void>>();
  /**
   * The latest operations whose event this process has published: not again, while something else is stuck, nor
   * for a reader that saw the act just before it was removed.
   */
  readonly #published = new Set<string>();
  /** Thousands end at once where events waited for the bus: their removals leave calls a place on the connection. */
  readonly #clearing = new WorkQueue(CLEARED_AT_ONCE);

  constructor({
    session,
    blobs,
    log,
    pointers,
    outbox,
  }: {
    readonly session: Session;
    readonly blobs: Blobs;
    readonly log: AuditLog;
    readonly pointers: Pointers;
    readonly outbox: Outbox;
  }) {
    this.#session = session;
    this.#serialReads = session.serialReads();
    this.#blobs = blobs;
    this.#log = log;
    this.#pointers = pointers;
    this.#outbox = outbox;
  }

  /** Registers a kind of operations, for calls and for the sweep. */
  operations<Data>(kind: DecisionKind<Data>): Operations<Data> {
    this.#pointers.onVisit(kind.kind, (pointer) => this.#recover(kind, pointer));
    return {
      commit: (decision) => this.#commit(kind, decision),
      complete: async (key, op) => {
        // Serial: a decision that a quorum has shown may still lack its act in another one.
        const act = await this.#read<Data>(kind.table, key, op);
        // Without a pointer: the one that the operation was begun with is found by the sweep.
        if (act !== undefined) await this.#finish(kind, key, act, undefined);
      },
    };
  }

  /** Resolves when no operation is under way, except for events that the bus does not accept. */
  async settle(): Promise<void> {
    await Promise.all(
      [...this.#underWay].filter(([op]) => !this.#publishing.has(op)).map(([, ended]) => ended),
    );
  }

  async #commit<Data>(
    kind: DecisionKind<Data>,
    { key, audit, data, statements, pointer: known }: Decision<Data>,
  ): Promise<LwtOutcome> {
    const floor = audit === undefined ? 0 : await this.#log.reached(audit.partnerId);
    const pointer = known ?? (await this.#pointers.put(randomUUID(), kind.kind, key));
    const { op } = pointer;
    const act: Act<Data> = { op, ...(audit && { audit }), floor, data };
    const outcome = await this.#session.lightweightTransaction(
      ...statements(op),
      this.#insertion(kind.table, key, act),
    );
    if (outcome.applied) await this.#finish(kind, key, act, pointer);
    // A pointer that was there before stays: it covers more.
    else if (known === undefined) {
      if (outcome.isUncertain && (await this.#isDecidedLate(kind.table, pointer))) {
        await this.#finish(kind, key, act, pointer);
        return { ...outcome, applied: true };
      }
      // Not waited for: the sweep finds a pointer that stays.
      this.#pointers.remove(pointer).catch(() => undefined);
    }
    return outcome;
  }

  /**
   * Returns whether an operation was decided although its last sending was refused. Makes sure that it is not decided
   * afterwards: the row that caused the refusal may disappear, and an earlier sending may arrive after that.
   */
  async #isDecidedLate(table: DecidedTable, { key, op }: Pointer): Promise<boolean> {
    await table.fence(key);
    return (await this.#read(table, key, op)) !== undefined;
  }

  async #recover<Data>(kind: DecisionKind<Data>, pointer: Pointer): Promise<Visited> {
    const { key, op } = pointer;
    if (this.#underWay.has(op)) return 'stays';
    if (kind.event !== undefined && !this.#outbox.hasCapacityForOthers(kind.event.topic)) return 'stays';
    let act = await this.#read<Data>(kind.table, key, op);
    if (act === undefined) {
      if (kind.abandon === undefined) await kind.table.fence(key);
      else if ((await kind.abandon(pointer)) === 'stays') return 'stays';
      // A decision may have come between the look and the fence.
      act = await this.#read<Data>(kind.table, key, op);
      if (act === undefined) return 'removed';
    }
    await this.#finish(kind, key, act, pointer);
    return 'stays';
  }

  /** Does what follows, and has the rest be done: the audit entry, the event, the removal of act and pointer. */
  async #finish<Data>(
    kind: DecisionKind<Data>,
    key: string,
    act: Act<Data>,
    pointer: Pointer | undefined,
  ): Promise<void> {
    const { op, audit, floor } = act;
    const chained = audit && this.#log.append(audit, op, floor);
    const published = kind.event && this.#publish(op, kind.event.of(key, act));
    // Only the response waits for it. If it fails, the operation is still audited and published.
    const followed = kind.follow?.(key, act);
    const ended = Promise.all([chained, published, followed])
      .then(() =>
        this.#clearing.run(async () => {
          await this.#clear(kind.table, key, op);
          if (pointer !== undefined) await this.#pointers.remove(pointer);
        }),
      )
      // The sweep goes on with what stays.
      .catch(() => undefined)
      .finally(() => {
        if (this.#underWay.get(op) === ended) this.#underWay.delete(op);
      });
    this.#underWay.set(op, ended);
    await followed;
  }

  /**
   * Publishes an event, once by this process. The publisher waits for no later step: a log that is stuck would delay
   * the events of all others.
   */
  async #publish(op: string, event: ServiceEvent): Promise<void> {
    if (this.#published.has(op)) return;
    let publishing = this.#publishing.get(op);
    if (publishing === undefined) {
      publishing = new Promise((resolve, reject) => {
        const onPublished = async (): Promise<void> => {
          this.#publishing.delete(op);
          this.#published.add(op);
          if (this.#published.size > MAX_PUBLISHED)
            this.#published.delete(this.#published.values().next().value!);
          resolve();
        };
        // An event that waits already is of an operation before, under the same id.
        if (!this.#outbox.hold({ event, onPublished }))
          reject(new Error('the event of an earlier operation is still waiting'));
      });
      this.#publishing.set(op, publishing);
      publishing.catch(() => this.#publishing.delete(op));
    }
    await publishing;
  }

  #insertion({ name, keyColumns, keyValues }: DecidedTable, key: string, act: Act<unknown>): Statement {
    const part = ACT + act.op;
    return {
      query: `INSERT INTO ${name} (${keyColumns.join(', ')}, part, act) VALUES (${keyColumns.map(() => '?').join(', ')}, ?, ?) IF NOT EXISTS USING TTL ${ROW_TTL_SECONDS}`,
      params: [...keyValues(key), part, this.#blobs.encode(labelOf(name, key, act.op), act)],
      operation: { column: 'part', id: part },
    };
  }

  async #read<Data>(
    { name, keyColumns, keyValues }: DecidedTable,
    key: string,
    op: string,
  ): Promise<Act<Data> | undefined> {
    const row = await this.#serialReads.first(
      `SELECT act FROM ${name} WHERE ${keyColumns.map((column) => `${column} = ?`).join(' AND ')} AND part = ?`,
      [...keyValues(key), ACT + op],
    );
    return row && this.#blobs.decode<Act<Data>>(labelOf(name, key, op), row['act']);
  }

  /** Removes an act: its name never comes again, so the removal is ahead of every clock. */
  async #clear({ name, keyColumns, keyValues }: DecidedTable, key: string, op: string): Promise<void> {
    await this.#session.write(
      `DELETE FROM ${name} USING TIMESTAMP ? WHERE ${keyColumns.map((column) => `${column} = ?`).join(' AND ')} AND part = ?`,
      [aheadOfClocks(), ...keyValues(key), ACT + op],
    );
  }
}

function labelOf(table: string, key: string, op: string): string {
  return `act/${table}/${key}/${op}`;
}
