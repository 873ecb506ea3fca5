import { createHash } from 'node:crypto';
import type { AuditEntry, AuditHead } from '../domain/audit.js';
import { isRecordDamaged } from '../domain/errors.js';
import type { OwnAuditHeads } from '../ports/journals.js';
import type { AuditStore } from '../ports/stores.js';

/** Where a partner's log ends in the store: undefined where it is not there at all. */
interface Behind {
  readonly head: AuditHead;
  readonly last: AuditHead | undefined;
}

/** A store that is older than the heads of its audit logs. */
export interface RestoredStore {
  readonly behind: readonly Behind[];
  /** Names this state alone: 16 hexadecimal digits. */
  readonly code: string;
}

/**
 * At start, of a store that is this process's own: an entry is in the store before its head is recorded, so a
 * log that does not hold its head's entry was put back from a backup, or changed.
 * @returns undefined where every log holds its head
 */
export async function findRestoredStore({
  stores,
  heads,
}: {
  readonly stores: AuditStore;
  readonly heads: OwnAuditHeads;
}): Promise<RestoredStore | undefined> {
  const behind: Behind[] = [];
  for (const head of await heads.all()) {
    const entry = await entryAt(stores, head.partnerId, head.sequence).catch((error: unknown) => {
      if (isRecordDamaged(error)) return 'damaged' as const;
      throw error;
    });
    // It is there: `audit verify` tells of it, and the other partners need not wait for that.
    if (entry === 'damaged' || entry?.mac === head.mac) continue;
    behind.push({ head, last: entry ?? (await lastBefore(stores, head)) });
  }
  if (behind.length === 0) return undefined;
  const state = behind
    .map(({ head, last }) => [head.partnerId, head.sequence, head.mac, last?.sequence ?? 0, last?.mac ?? ''])
    .sort();
  return { behind, code: createHash('sha256').update(JSON.stringify(state)).digest('hex').slice(0, 16) };
}

/** From now on the logs are held against where they end in the store. */
export async function acceptRestoredStore(heads: OwnAuditHeads, { behind }: RestoredStore): Promise<void> {
  for (const { head, last } of behind) await heads.acceptRestored(head.partnerId, last);
}

/** Entries are numbered without gaps, so the last one is found by halving. */
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
