/** Holds what a client was given of a growing and shrinking collection against what it must and may have held. */

export interface Member {
  readonly name: string;
  /** Acknowledged at; milliseconds of one clock, as all times here. */
  readonly addedAt: number;
  /** Somebody has asked for its removal, answered or not. */
  readonly removeAskedAt?: number | undefined;
  /** The removal was acknowledged. */
  readonly removedAt?: number | undefined;
}

export interface SetRead {
  readonly sentAt: number;
  readonly at: number;
  readonly seen: readonly string[];
}

/** @param members all that were ever acknowledged by the end of the read */
export function* faultsOfSet({ sentAt, at, seen }: SetRead, members: Iterable<Member>): Generator<string> {
  const counts = new Map<string, number>();
  for (const name of seen) counts.set(name, (counts.get(name) ?? 0) + 1);
  for (const [name, count] of counts) if (count > 1) yield `${name} is there ${count} times`;
  for (const { name, addedAt, removeAskedAt = Infinity, removedAt = Infinity } of members) {
    if (addedAt < sentAt && removeAskedAt > at && !counts.has(name)) yield `${name} is missing`;
    if (removedAt < sentAt && counts.has(name)) yield `${name} is there after its removal`;
  }
}

/** Names that nobody was told of yet: by the end somebody must have been. */
export function strangersIn({ seen }: SetRead, members: Iterable<Member>): readonly string[] {
  const known = new Set(Array.from(members, ({ name }) => name));
  return [...new Set(seen)].filter((name) => !known.has(name));
}

/** Part of a log that only grows, as one client was given it. */
export interface LogRead {
  readonly sentAt: number;
  readonly at: number;
  /** Place of the first of the entries. */
  readonly from: number;
  readonly entries: readonly string[];
  /** No more followed. */
  readonly whole: boolean;
  /** The process that answered. */
  readonly process?: string | undefined;
  /** When the last fault of a server was over by the time of the answer; Infinity while there is one. */
  readonly serversQuietSince: number;
  /** When the last fault of any kind was over, likewise. */
  readonly quietSince: number;
}

/** Entry of which a client was told, by the answer to what it tells of. */
export interface Logged {
  /** Action and first subject. */
  readonly entry: string;
  readonly at: number;
  /** The process that decided and answered, where it was one. */
  readonly process?: string | undefined;
}

/** Within this time whatever process reads a log has what others have answered, whoever of them died. */
const LOGGED_MS = 60_000;
/** A store that has just come back may refuse what an answer left to be written. */
const SETTLED_MS = 20_000;

/**
 * @param log as it is at the end: every read was of the same log when it was shorter
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
  // Whoever asks after an answer is given no less.
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
      // An entry that is not there at the end is another fault.
      if ((places.get(entry) ?? 0) < length || !isDue(read, at, process)) continue;
      yield `${entry} was answered at ${Math.round(at)} ms and is missing in a read of ${Math.round(read.sentAt)} ms`;
    }
  }
}

/**
 * Tells whether a read must have an entry (decision 0044): at once where the process that answered reads, and in a
 * minute without faults where any other one does.
 */
function isDue(read: LogRead, at: number, process: string | undefined): boolean {
  if (process !== undefined && process === read.process) return read.serversQuietSince + SETTLED_MS < at;
  return Math.max(at, read.quietSince) + LOGGED_MS < read.sentAt;
}
