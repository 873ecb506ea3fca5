/** A log of the service's own in memory, chained as a store chains it. */

import { DomainError, recordDamaged } from '../../src/core/domain/errors.js';
import { type AuditDraft, type AuditEntry, chainAudit } from '../../src/service/domain/audit.js';
import type { Secrets } from '../../src/service/ports/secrets.js';
import type { AuditStore } from '../../src/service/ports/stores.js';

const KEY = new Uint8Array(32).fill(7);

/** The one secret that logs are chained with. */
export const AUDIT_SECRETS: Secrets = {
  current: () => ({ id: 'audit-1', key: KEY }),
  find: () => undefined,
  all: () => [{ id: 'audit-1', key: KEY }],
};

export class MemoryLog {
  readonly entries: AuditEntry[] = [];
  /** Reads of the log so far. */
  reads = 0;
  /** True while the log cannot be read. */
  isAway = false;
  /** The entry whose row is damaged. None by default. */
  damagedSequence = 0;

  readonly stores: AuditStore = {
    readAudit: async (partnerId, fromSequence, limit) => {
      this.reads += 1;
      if (partnerId !== this.name) throw new Error(`${partnerId} is another log`);
      if (this.isAway) throw new DomainError('unavailable', 'Away.', { reason: 'store_unavailable' });
      const page = this.entries.slice(fromSequence - 1, fromSequence - 1 + limit);
      if (page.some(({ sequence }) => sequence === this.damagedSequence)) throw recordDamaged(undefined);
      return page;
    },
    appendAudit: async (draft: AuditDraft) => {
      this.entries.push(chainAudit(KEY, this.entries.at(-1), draft));
    },
  };

  constructor(readonly name: string) {}
}
