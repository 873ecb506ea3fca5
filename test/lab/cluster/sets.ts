/**
 * Compares what a client read of a changing collection with what it had to contain and what it may contain.
 */

export interface Member {
  readonly name: string;
  /** The time of the acknowledgement, in milliseconds. All times here are of one clock. */
  readonly addedAt: number;
  /** The time of the first request for its removal, answered or not. */
  readonly removeAskedAt?: number | undefined;
  /** The time at which the removal was acknowledged. */
  readonly removedAt?: number | undefined;
}

export interface SetRead {
  readonly sentAt: number;
  readonly at: number;
  readonly seen: readonly string[];
}

/** @param members everything that was acknowledged by the end of the read */
export function* faultsOfSet({ sentAt, at, seen }: SetRead, members: Iterable<Member>): Generator<string> {
  const counts = new Map<string, number>();
  for (const name of seen) counts.set(name, (counts.get(name) ?? 0) + 1);
  for (const [name, count] of counts) if (count > 1) yield `${name} is there ${count} times`;
  for (const { name, addedAt, removeAskedAt = Infinity, removedAt = Infinity } of members) {
    if (addedAt < sentAt && removeAskedAt > at && !counts.has(name)) yield `${name} is missing`;
    if (removedAt < sentAt && counts.has(name)) yield `${name} is there after its removal`;
  }
}

/** Returns the names that no answer contained yet. By the end each must have been acknowledged. */
export function strangersIn({ seen }: SetRead, members: Iterable<Member>): readonly string[] {
  const known = new Set(Array.from(members, ({ name }) => name));
  return [...new Set(seen)].filter((name) => !known.has(name));
}

/** A part of an append-only log, as one client read it. */
export interface LogRead {
  readonly sentAt: number;
  readonly at: number;
  /** The index of the first entry. */
  readonly from: number;
  readonly entries: readonly string[];
  /** Whether the part reaches the end of the log. */
  readonly whole: boolean;
  /** The process that answered. */
  readonly process?: string | undefined;
  /** The end of the last fault of a server, seen from the time of the answer. Infinity during a fault. */
  readonly serversQuietSince: number;
  /** The end of the last fault of any kind. Infinity during a fault. */
  readonly quietSince: number;
}

/** An audit entry that an answer promises. */
export interface Logged {
  /** The action and the first subject. */
  readonly entry: string;
  readonly at: number;
  /** The process that decided and answered, if it was one process. */
  readonly process?: string | undefined;
}

/**
 * The time after which every process must see an acknowledged entry, in milliseconds, even if the
 * acknowledging process died.
 */
const LOGGED_MS = 60_000;
/**
 * The time after a fault in which a store may still refuse writes, in milliseconds. An answer may have left
 * such writes to do.
 */
const SETTLED_MS = 20_000;

/**
 * @param log the final log. Every read must be a part of it.
 * @param logged in the order of their answers
 */
export function* faultsOfLog(
  reads: readonly LogRead[],
  log: readonly string[],
  logged: readonly Logged[] = [],
): Generator<string> {
  for (const { from, entries } of reads)
    for (const [index, entry] of entries.entries())
      if (log[from + index] !== entry) {
        yield `entry ${from + index} was ${entry} and is ${log[from + index] ?? 'not there'}`;
        break;
      }
  // A read that is sent after another answer must be at least as long.
  const byAnswer = reads.filter(({ entries }) => entries.length > 0).toSorted((a, b) => a.at - b.at);
  const bySending = reads.filter(({ whole }) => whole).toSorted((a, b) => a.sentAt - b.sentAt);
  let longest = 0;
  let next = 0;
  for (const { sentAt, from, entries } of bySending) {
    for (; next < byAnswer.length && byAnswer[next]!.at < sentAt; next += 1)
      longest = Math.max(longest, byAnswer[next]!.from + byAnswer[next]!.entries.length);
    const length = from + entries.length;
    if (length < longest) yield `it had ${longest} entries and then ${length}`;
  }
  const places = new Map(log.map((entry, index) => [entry.split(' ', 2).join(' '), index]));
  for (const read of bySending) {
    const length = read.from + read.entries.length;
    for (const { entry, at, process } of logged) {
      if (at >= read.sentAt) break;
      // A missing entry at the end is a separate fault.
      if ((places.get(entry) ?? 0) < length || !isDue(read, at, process)) continue;
      yield `${entry} was answered at ${Math.round(at)} ms and is missing in a read of ${Math.round(read.sentAt)} ms`;
    }
  }
}

/**
 * Returns whether a read must have an entry (decision 0044). The process that answered must see the entry at
 * once. Other processes must see it after a minute without faults.
 */
function isDue(read: LogRead, at: number, process: string | undefined): boolean {
  if (process !== undefined && process === read.process) return read.serversQuietSince + SETTLED_MS < at;
  return Math.max(at, read.quietSince) + LOGGED_MS < read.sentAt;
}
