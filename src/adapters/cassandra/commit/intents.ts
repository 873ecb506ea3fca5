import { randomUUID } from 'node:crypto';
import type { AuditDraft } from '../../../domain/audit.js';
import type { Blobs } from '../driver/blobs.js';
import { type Session, storeUnavailable } from '../driver/session.js';
import type { AuditLog } from './audit-log.js';
import { isTimely, MinuteRows, minuteOf } from './time-buckets.js';

/**
 * An operation that writes more than one partition, which nothing commits together. The order that makes
 * every crash point safe:
 *   1. the intent, with all that is needed to finish the rest
 *   2. the decision: one conditional write of one partition, with the operation's id as witness
 *   3. what follows from it, each write of which can be repeated: indexes, removals, the audit entry
 *   4. the intent is removed, and the caller hears of it
 * A crash before 2 leaves an intent without a decision: it is dropped. A crash after 2 leaves one with it:
 * the sweep of any process does 3 and 4. What readers see between 2 and 3 is the decision: they look at the
 * row it was made in.
 */
export interface Intent<Target = unknown> {
  /** Witness of the decision. */
  readonly op: string;
  readonly kind: string;
  readonly target: Target;
  readonly audit: AuditDraft;
  /** What the audit log had reached before the decision. */
  readonly floor: number;
  /** Milliseconds since the epoch, of the process's own clock. */
  readonly startedAt: number;
}

/** Does 3 where 2 holds. Must be repeatable, and may run beside the operation itself. */
export type Finisher = (intent: Intent<never>) => Promise<void>;

export class Intents {
  readonly #rows: MinuteRows;
  readonly #blobs: Blobs;
  readonly #log: AuditLog;
  readonly #finishers = new Map<string, Finisher>();

  constructor(session: Session, blobs: Blobs, log: AuditLog) {
    this.#rows = new MinuteRows(session, { table: 'intent', key: 'op', position: 'swept' });
    this.#blobs = blobs;
    this.#log = log;
  }

  /**
   * What the sweep calls for intents of this kind. Whether the decision was taken is to be read by a settled
   * session: the intent is dropped afterwards.
   */
  onAbandoned<Target>(kind: string, finish: (intent: Intent<Target>) => Promise<void>): void {
    this.#finishers.set(kind, finish as Finisher);
  }

  async begin<Target>(kind: string, target: Target, audit: AuditDraft): Promise<Intent<Target>> {
    const floor = await this.#log.position(audit.partnerId);
    const intent: Intent<Target> = { op: randomUUID(), kind, target, audit, floor, startedAt: Date.now() };
    await this.#rows.put(
      minuteOf(intent.startedAt),
      intent.op,
      this.#blobs.encode(`intent/${intent.op}`, intent),
    );
    return intent;
  }

  /**
   * To be called right before the decision: a process that was stopped in between must not decide what the
   * sweep has dropped.
   */
  assertTimely({ startedAt }: Intent): void {
    if (!isTimely(startedAt)) throw storeUnavailable();
  }

  /** The last two steps: the audit entry, then the intent goes. */
  async finish(intent: Intent): Promise<void> {
    await this.#log.append(intent.audit, intent.op, intent.floor);
    this.drop(intent);
  }

  /** Not waited for: one that stays is found by the sweep, which sees that there is nothing to do. */
  drop(intent: Intent): void {
    this.#rows.remove(minuteOf(intent.startedAt), intent.op).catch(() => undefined);
  }

  /** From then on the sweep begins here. */
  async start(now: number): Promise<void> {
    await this.#rows.start(now);
  }

  /**
   * Finishes what crashed processes left, of any process. Two processes that sweep at once do the same twice,
   * which is harmless.
   * @returns how many intents were seen to
   */
  sweep(now: number): Promise<number> {
    return this.#rows.sweep(now, async ({ minute, id, data }) => {
      const intent = this.#blobs.decode<Intent>(`intent/${id}`, data);
      const finish = this.#finishers.get(intent.kind);
      // A newer version's: it will see to it.
      if (finish === undefined) return 'kept';
      await finish(intent as Intent<never>);
      // Waited for: behind the position nobody would look again.
      await this.#rows.remove(minute, id);
      return 'gone';
    });
  }
}
