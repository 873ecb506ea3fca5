import { randomUUID } from 'node:crypto';
import type { AuditDraft } from '../../../domain/audit.js';
import type { Blobs } from '../driver/blobs.js';
import { type LwtOutcome, type Session, type Statement, storeUnavailable } from '../driver/session.js';
import type { AuditLog } from './audit-log.js';
import { isTimely, minuteOf } from './time-bucket.js';
import { TimeBucketedTable } from './time-bucketed-table.js';

/**
 * Redo record of an operation that writes more than one partition, which nothing commits together. The order
 * that makes every crash point safe:
 *   1. the intent, with all that is needed to finish the rest
 *   2. the decision: one lightweight transaction of one partition, which leaves the operation's id in its row
 *   3. what follows from the decision: indexes, removals, events, the audit entry, all of them repeatable
 *   4. the intent is removed; the caller hears of the operation without waiting for the removal
 * A crash before 2 leaves an intent without a decision: the sweep drops it. A crash after 2 leaves an intent
 * with its decision: the sweep of any process does 3 and 4. Between 2 and 3 readers see the decision, because
 * they look at the row in which it was made.
 */
export interface Intent<Target = unknown> {
  /** Operation id, which the decision leaves in its row. */
  readonly op: string;
  readonly kind: string;
  readonly target: Target;
  readonly audit: AuditDraft;
  /** Sequence that the audit log had reached before the decision. */
  readonly floor: number;
  /** Milliseconds since the epoch, of the process's own clock. */
  readonly startedAt: number;
}

/**
 * A lightweight transaction of an operation that began in time; refused once the sweep may have dropped it.
 */
export type Transact = (...statements: readonly Statement[]) => Promise<LwtOutcome>;

/** How operations of one kind are found decided, and what follows from their decision. */
export interface OperationKind<Target> {
  readonly kind: string;
  /**
   * Tells whether the decision stands. Only a serial read can say so, because the sweep drops the intent
   * afterwards. Where a decision has two steps and the first was taken, this function takes the second.
   */
  readonly isDecided: (intent: Intent<Target>) => Promise<boolean>;
  /** Does all that follows but the audit entry. Repeatable; may run beside the operation itself. */
  readonly follow?: (intent: Intent<Target>) => Promise<void>;
}

/** Operations of one kind, which all go through the steps of `Intent`. */
export interface Operations<Target> {
  /**
   * Carries an operation out, from its intent to the end.
   * @param decide makes the decision under the id `intent.op`, by `transact` alone; nothing follows from an
   * outcome that was not applied
   * @returns what `decide` returned
   */
  commit<Outcome extends { readonly applied: boolean }>(
    target: Target,
    audit: AuditDraft,
    decide: (transact: Transact, intent: Intent<Target>) => Promise<Outcome>,
  ): Promise<Outcome>;
  /**
   * Finishes an operation that its own process may have left, where its decision stands.
   * @returns whether the decision stands
   */
  resume(intent: Intent<Target>): Promise<boolean>;
}

export class Intents {
  readonly #session: Session;
  readonly #table: TimeBucketedTable;
  readonly #blobs: Blobs;
  readonly #log: AuditLog;
  readonly #kinds = new Map<string, (intent: Intent<never>) => Promise<boolean>>();

  constructor(session: Session, blobs: Blobs, log: AuditLog) {
    this.#session = session;
    this.#table = new TimeBucketedTable(session, { table: 'intent', key: 'op', watermark: 'swept' });
    this.#blobs = blobs;
    this.#log = log;
  }

  /** Registers a kind of operations, for calls and for the sweep. */
  operations<Target>({
    kind,
    isDecided,
    follow = async () => undefined,
  }: OperationKind<Target>): Operations<Target> {
    const complete = async (intent: Intent<Target>): Promise<void> => {
      await follow(intent);
      await this.#log.append(intent.audit, intent.op, intent.floor);
      this.#drop(intent);
    };
    const resume = async (intent: Intent<Target>): Promise<boolean> => {
      const decided = await isDecided(intent);
      if (decided) await complete(intent);
      return decided;
    };
    this.#kinds.set(kind, resume);
    return {
      resume,
      commit: async (target, audit, decide) => {
        const intent = await this.#begin(kind, target, audit);
        const outcome = await decide((...statements) => this.#transact(intent, statements), intent);
        if (outcome.applied) await complete(intent);
        else this.#drop(intent);
        return outcome;
      },
    };
  }

  /** Sets where the first sweep of all begins. */
  async start(now: number): Promise<void> {
    await this.#table.start(now);
  }

  /**
   * Finishes what crashed processes left, of any process. Two processes that sweep at once do the same twice,
   * which is harmless.
   * @returns how many intents were removed
   */
  sweep(now: number): Promise<number> {
    return this.#table.visitRows(now, async ({ timeBucket, id, data }) => {
      const intent = this.#blobs.decode<Intent>(`intent/${id}`, data);
      const resume = this.#kinds.get(intent.kind);
      // A kind of a newer version is left to a process of that version.
      if (resume === undefined) return 'stays';
      await resume(intent as Intent<never>);
      // The removal is waited for: behind the watermark nobody would look again.
      await this.#table.remove(timeBucket, id);
      return 'removed';
    });
  }

  async #begin<Target>(kind: string, target: Target, audit: AuditDraft): Promise<Intent<Target>> {
    const floor = await this.#log.reached(audit.partnerId);
    const intent: Intent<Target> = { op: randomUUID(), kind, target, audit, floor, startedAt: Date.now() };
    const data = this.#blobs.encode(`intent/${intent.op}`, intent);
    await this.#table.put(minuteOf(intent.startedAt), intent.op, data);
    return intent;
  }

  /**
   * Decides in time or not at all: a process that was stopped between intent and decision must not decide
   * what the sweep has dropped.
   */
  async #transact({ startedAt }: Intent, statements: readonly Statement[]): Promise<LwtOutcome> {
    if (!isTimely(startedAt)) throw storeUnavailable();
    return this.#session.lightweightTransaction(...statements);
  }

  /** Not waited for: the sweep finds an intent that stays, and sees that there is nothing to do. */
  #drop({ startedAt, op }: Intent): void {
    this.#table.remove(minuteOf(startedAt), op).catch(() => undefined);
  }
}
