import { createHash, randomUUID } from 'node:crypto';
import type { AuditDraft } from '../../domain/audit.js';
import type { AuditLog } from './audit-log.js';
import type { Blobs } from './blobs.js';
import { type Session, storeUnavailable } from './session.js';

/**
 * An operation that writes more than one partition, which nothing commits together. The order that makes every crash point safe:
 *   1. the intent, with all that is needed to finish the rest
 *   2. the decision: one conditional write of one partition, with the operation's id as witness
 *   3. what follows from it, each write of which can be repeated: indexes, removals, the audit entry
 *   4. the intent is removed, and the caller hears of it
 * A crash before 2 leaves an intent without a decision: it is dropped. A crash after 2 leaves one with it: the sweep of any
 * process does 3 and 4. What readers see between 2 and 3 is the decision: they look at the row it was made in.
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

const MINUTE_MS = 60_000;
const SHARDS = 8;
/** A month: longer than any outage after which a cluster comes back with its data. */
const TTL_SECONDS = 30 * 24 * 3_600;
/** No decision is begun later than this after its intent. */
const DECIDE_WITHIN_MS = 60_000;
/** From then on nobody is still at it: past the last moment to decide, every timeout of driver and server, and some skew of clocks. */
const ABANDONED_MS = 2 * MINUTE_MS;
/** Minutes that are looked at again although they were seen to: processes whose clocks are behind write into them. */
const LOOK_BACK_MINUTES = 10;
const MINUTES_AT_ONCE = 240;

const INSERT = 'INSERT INTO intent (minute, shard, op, data) VALUES (?, ?, ?, ?) USING TTL ?';
const DELETE = 'DELETE FROM intent WHERE minute = ? AND shard = ? AND op = ?';
const OF_MINUTE = 'SELECT op, data FROM intent WHERE minute = ? AND shard = ?';
const POSITION = "SELECT minute FROM intent_position WHERE name = 'swept'";
const SET_POSITION = "INSERT INTO intent_position (name, minute) VALUES ('swept', ?)";

export class Intents {
  readonly #session: Session;
  readonly #blobs: Blobs;
  readonly #log: AuditLog;
  readonly #finishers = new Map<string, Finisher>();

  constructor(session: Session, blobs: Blobs, log: AuditLog) {
    this.#session = session;
    this.#blobs = blobs;
    this.#log = log;
  }

  /** What the sweep calls for intents of this kind. */
  onAbandoned<Target>(kind: string, finish: (intent: Intent<Target>) => Promise<void>): void {
    this.#finishers.set(kind, finish as Finisher);
  }

  async begin<Target>(kind: string, target: Target, audit: AuditDraft): Promise<Intent<Target>> {
    const floor = await this.#log.position(audit.partnerId);
    const intent: Intent<Target> = { op: randomUUID(), kind, target, audit, floor, startedAt: Date.now() };
    const { minute, shard } = placeOf(intent);
    await this.#session.write(INSERT, [minute, shard, intent.op, this.#blobs.encode(`intent/${intent.op}`, intent), TTL_SECONDS]);
    return intent;
  }

  /** To be called right before the decision: a process that was stopped in between must not decide what the sweep has dropped. */
  assertTimely({ startedAt }: Intent): void {
    if (Date.now() - startedAt > DECIDE_WITHIN_MS) throw storeUnavailable();
  }

  /** The last two steps: the audit entry, then the intent goes. */
  async finish(intent: Intent): Promise<void> {
    await this.#log.append(intent.audit, intent.op, intent.floor);
    this.drop(intent);
  }

  /** Not waited for: one that stays is found by the sweep, which sees that there is nothing to do. */
  drop(intent: Intent): void {
    const { minute, shard } = placeOf(intent);
    this.#session.write(DELETE, [minute, shard, intent.op]).catch(() => undefined);
  }

  /** From then on the sweep begins here. */
  async start(now: number): Promise<void> {
    if ((await this.#session.first(POSITION)) === undefined) await this.#session.write(SET_POSITION, [minuteOf(now) - LOOK_BACK_MINUTES]);
  }

  /**
   * Finishes what crashed processes left, of any process. Two processes that sweep at once do the same twice, which is harmless.
   * @returns how many intents were seen to
   */
  async sweep(now: number): Promise<number> {
    const position = (await this.#session.first(POSITION))?.['minute'] as number | undefined;
    const first = position ?? minuteOf(now) - LOOK_BACK_MINUTES;
    const end = Math.min(minuteOf(now - ABANDONED_MS), first + MINUTES_AT_ONCE);
    let finished = 0;
    for (let minute = first; minute < end; minute++) {
      const shards = await Promise.all(Array.from({ length: SHARDS }, (_, shard) => this.#session.rows(OF_MINUTE, [minute, shard])));
      for (const { op, data } of shards.flat() as unknown as { readonly op: string; readonly data: Buffer }[]) {
        const intent = this.#blobs.decode<Intent>(`intent/${op}`, data);
        await this.#finishers.get(intent.kind)?.(intent as Intent<never>);
        this.drop(intent);
        finished += 1;
      }
    }
    // Reached only when everything before was seen to.
    const next = Math.min(end, minuteOf(now) - LOOK_BACK_MINUTES);
    if (next > first) await this.#session.write(SET_POSITION, [next]);
    return finished;
  }
}

function minuteOf(now: number): number {
  return Math.floor(now / MINUTE_MS);
}

function placeOf({ op, startedAt }: Intent): { readonly minute: number; readonly shard: number } {
  return { minute: minuteOf(startedAt), shard: createHash('sha256').update(op).digest()[0]! % SHARDS };
}
