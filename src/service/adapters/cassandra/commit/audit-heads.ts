import type { AuditHeads } from '../../../ports/journals.js';
import { numberIn, type Session, textIn } from '../driver/session.js';

const RECORD = 'INSERT INTO audit_head (partner_id, sequence, mac) VALUES (?, ?, ?) USING TIMESTAMP ?';
const GET = 'SELECT sequence, mac FROM audit_head WHERE partner_id = ?';

/**
 * Returns the heads of a cluster's audit logs, which are the same for every process. The sequence is the write's
 * timestamp, so the highest head stays, whichever process writes last. The heads are stored in the keyspace of the
 * logs. So a truncated log is detected, and a keyspace that was restored as a whole is not.
 */
export function auditHeads(session: Session): AuditHeads {
  return {
    record: ({ partnerId, sequence, mac }) => session.write(RECORD, [partnerId, sequence, mac, sequence]),
    async get(partnerId) {
      const row = await session.first(GET, [partnerId]);
      return row === undefined
        ? undefined
        : { partnerId, sequence: numberIn(row, 'sequence')!, mac: textIn(row, 'mac')! };
    },
    // The session belongs to the store.
    async close() {},
  };
}
