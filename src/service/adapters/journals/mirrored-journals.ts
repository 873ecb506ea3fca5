import type { AuditHead } from '../../domain/audit.js';
import type { ErasureJournal, OwnAuditHeads } from '../../ports/journals.js';

type Erasure = Parameters<ErasureJournal['record']>[0];

/** The entries that a journal gets at once while it catches up. */
const BATCH = 1000;

/**
 * Joins two journals of erasures on two disks. An erasure is in both before it is acknowledged. At the call each
 * journal gets the entries that only the other one has: one of them may be new, or may have been absent.
 * @throws DomainError `unavailable` if a journal cannot be written
 */
export async function mirroredErasures(
  first: ErasureJournal,
  second: ErasureJournal,
): Promise<ErasureJournal> {
  const [ofFirst, ofSecond] = await differences(first, second);
  await append(second, ofFirst);
  await append(first, ofSecond);
  return {
    async record(erasure) {
      await Promise.all([first.record(erasure), second.record(erasure)]);
    },
    read: (...args) => first.read(...args),
    async close() {
      await Promise.all([first.close(), second.close()]);
    },
  };
}

/** Joins two records of the heads of audit logs. The higher of two heads counts. */
export function mirroredHeads(first: OwnAuditHeads, second: OwnAuditHeads): OwnAuditHeads {
  const both = [first, second] as const;
  return {
    async record(head) {
      await Promise.all(both.map((heads) => heads.record(head)));
    },
    async get(partnerId) {
      const [one, other] = await Promise.all(both.map((heads) => heads.get(partnerId)));
      return higher(one, other);
    },
    async all() {
      const found = new Map<string, AuditHead>();
      for (const heads of both)
        for (const head of await heads.all())
          found.set(head.partnerId, higher(found.get(head.partnerId), head)!);
      return [...found.values()];
    },
    async acceptRestored(partnerId, head) {
      for (const heads of both) await heads.acceptRestored(partnerId, head);
    },
    async close() {
      await Promise.all(both.map((heads) => heads.close()));
    },
  };
}

function higher(one: AuditHead | undefined, other: AuditHead | undefined): AuditHead | undefined {
  return (one?.sequence ?? 0) >= (other?.sequence ?? 0) ? one : other;
}

/**
 * Returns the entries that only one journal has, for each of both. As long as the journals are equal, only one entry
 * of each is in memory.
 */
async function differences(
  first: ErasureJournal,
  second: ErasureJournal,
): Promise<readonly [onlyFirst: readonly Erasure[], onlySecond: readonly Erasure[]]> {
  const iterators = [first.read(), second.read()].map((entries) => entries[Symbol.asyncIterator]());
  const [ofFirst, ofSecond] = [new Map<string, Erasure>(), new Map<string, Erasure>()];
  const rests = [ofFirst, ofSecond] as const;
  for (let areEqual = true; ; ) {
    const found = await Promise.all(iterators.map((entries) => entries.next()));
    const [one, other] = found.map(({ done, value }) => (done === true ? undefined : (value as Erasure)));
    if (one === undefined && other === undefined) break;
    areEqual &&= one !== undefined && other !== undefined && textOf(one) === textOf(other);
    if (areEqual) continue;
    for (const [index, entry] of [one, other].entries())
      if (entry !== undefined) rests[index]!.set(textOf(entry), entry);
  }
  const missing = (from: ReadonlyMap<string, Erasure>, to: ReadonlyMap<string, Erasure>) =>
    [...from].filter(([text]) => !to.has(text)).map(([, entry]) => entry);
  return [missing(ofFirst, ofSecond), missing(ofSecond, ofFirst)];
}

function textOf({ proofId, partnerId, erasedAt }: Erasure): string {
  return JSON.stringify([proofId, partnerId, erasedAt]);
}

async function append(journal: ErasureJournal, entries: readonly Erasure[]): Promise<void> {
  for (let first = 0; first < entries.length; first += BATCH)
    await Promise.all(entries.slice(first, first + BATCH).map((entry) => journal.record(entry)));
}
