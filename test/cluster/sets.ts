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
}

/** @param log as it is at the end: every read was of the same log when it was shorter */
export function* faultsOfLog(reads: readonly LogRead[], log: readonly string[]): Generator<string> {
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
}
