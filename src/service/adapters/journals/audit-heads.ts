import { join } from 'node:path';
import type { AuditHead } from '../../domain/audit.js';
import type { OwnAuditHeads } from '../../ports/journals.js';
import type { Secrets } from '../../ports/secrets.js';
import { SignedLog } from './signed-log.js';

export const AUDIT_HEADS_FILE = 'audit-heads.log';

/** Marks a line whose head holds although a higher one came before. */
const PUT_BACK = 'put back';
/** Lines beyond the heads themselves, until the file is written anew. */
const SURPLUS_LINES = 100_000;

/**
 * Keeps the last head of each partner's audit log in a file, apart from the logs. Each change adds a line. The file
 * is written anew, with one line for each partner, when it is opened and when it has grown. The first call opens it:
 * by then the caller owns the store, and no other process is at work here.
 * @throws JournalOpenError, from that first call
 */
export function createAuditHeads({
  directory,
  secrets,
  surplus = SURPLUS_LINES,
}: {
  readonly directory: string;
  readonly secrets: Secrets;
  readonly surplus?: number;
}): OwnAuditHeads {
  const heads = new Map<string, AuditHead>();
  const keep = (head: AuditHead): boolean => {
    if ((heads.get(head.partnerId)?.sequence ?? 0) >= head.sequence) return false;
    heads.set(head.partnerId, head);
    return true;
  };
  const open = async (): Promise<SignedLog> => {
    let allowed = 0;
    const log = await SignedLog.open({
      path: join(directory, AUDIT_HEADS_FILE),
      purpose: 'audit heads',
      secrets,
      each: (entry) => {
        const { head, isPutBack } = fromLine(entry);
        if (!isPutBack) keep(head);
        else if (head.sequence === 0) heads.delete(head.partnerId);
        else heads.set(head.partnerId, head);
      },
      compact: (lines) => (lines > heads.size + allowed ? [...heads.values()].map(toLine) : undefined),
    });
    allowed = surplus;
    return log;
  };
  let opened: Promise<SignedLog> | undefined;
  const openOnce = (): Promise<SignedLog> => (opened ??= open());
  return {
    async record(head) {
      const log = await openOnce();
      if (keep(head)) await log.append(toLine(head));
      // The higher head that makes this one needless may still be on its way.
      else await log.settled();
    },
    async get(partnerId) {
      await openOnce();
      return heads.get(partnerId);
    },
    async all() {
      await openOnce();
      return [...heads.values()];
    },
    async acceptRestored(partnerId, head) {
      const log = await openOnce();
      const { sequence, mac } = head ?? { sequence: 0, mac: '' };
      await log.append([partnerId, sequence, mac, PUT_BACK]);
      if (head === undefined) heads.delete(partnerId);
      else heads.set(partnerId, { partnerId, sequence, mac });
    },
    async close() {
      // A log that could not be opened has thrown already.
      await (await opened?.catch(() => undefined))?.close();
    },
  };
}

function toLine({ partnerId, sequence, mac }: AuditHead): readonly [string, number, string] {
  return [partnerId, sequence, mac];
}

function fromLine(entry: unknown): { readonly head: AuditHead; readonly isPutBack: boolean } {
  const [partnerId, sequence, mac, mark] = entry as [string, number, string, string?];
  return { head: { partnerId, sequence, mac }, isPutBack: mark === PUT_BACK };
}
