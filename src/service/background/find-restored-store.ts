import { createHash } from 'node:crypto';
import { isRecordDamaged } from '../../core/domain/errors.js';
import type { AuditEntry, AuditHead } from '../domain/audit.js';
import type { OwnAuditHeads } from '../ports/journals.js';
import type { AuditStore } from '../ports/stores.js';

/** A partner's log that ends before its head. `last` is undefined when the store has no entry of the log. */
interface ShortLog {
  readonly head: AuditHead;
  readonly last: AuditHead | undefined;
}

/** A store that is older than the heads of its audit logs. */
export interface RestoredStore {
  readonly short: readonly ShortLog[];
  /** The identifier of exactly this state, 16 hexadecimal digits. */
  readonly code: string;
}

/**
 * Finds logs that end before their heads, at the start of a process with its own store. An entry is stored
 * before its head is recorded. So a shorter log was restored from a backup, or changed.
 * @returns undefined when every log contains its head
 */
export async function findRestoredStore({
  stores,
  heads,
}: {
  readonly stores: AuditStore;
  readonly heads: OwnAuditHeads;
}): Promise<RestoredStore | undefined> {
  const short: ShortLog[] = [];
  for (const head of await heads.all()) {
    const entry = await entryAt(stores, head.partnerId, head.sequence).catch((error: unknown) => {
      if (isRecordDamaged(error)) return 'damaged' as const;
      throw error;
    });
    // A damaged entry exists. `audit verify` reports it, and the other partners need not wait for its repair.
    if (entry === 'damaged' || entry?.mac === head.mac) continue;
    short.push({ head, last: entry ?? (await lastBefore(stores, head)) });
  }
  if (short.length === 0) return undefined;
  const state = short
    .map(({ head, last }) => [head.partnerId, head.sequence, head.mac, last?.sequence ?? 0, last?.mac ?? ''])
    .sort();
  return { short, code: createHash('sha256').update(JSON.stringify(state)).digest('hex').slice(0, 16) };
}

/** Records the ends of the stored logs as their new heads. */
export async function acceptRestoredStore(heads: OwnAuditHeads, { short }: RestoredStore): Promise<void> {
  for (const { head, last } of short) await heads.acceptRestored(head.partnerId, last);
}

/** Returns the last entry before a head. Entries are numbered without gaps, so a binary search finds it. */
async function lastBefore(
  stores: AuditStore,
  { partnerId, sequence }: AuditHead,
): Promise<AuditEntry | undefined> {
  let there = 0;
  for (let missing = sequence; missing - there > 1; ) {
    const middle = Math.floor((there + missing) / 2);
    if ((await entryAt(stores, partnerId, middle)) === undefined) missing = middle;
    else there = middle;
  }
  return there === 0 ? undefined : entryAt(stores, partnerId, there);
}

async function entryAt(
  stores: AuditStore,
  partnerId: string,
  sequence: number,
): Promise<AuditEntry | undefined> {
  const [entry] = await stores.readAudit(partnerId, sequence, 1);
  return entry?.sequence === sequence ? entry : undefined;
}
