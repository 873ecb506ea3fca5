import type { AuditHeads } from '../../../ports/journals.js';
import { numberIn, type Session, textIn } from '../driver/session.js';

const RECORD = 'INSERT INTO audit_head (partner_id, sequence, mac) VALUES (?, ?, ?) USING TIMESTAMP ?';
const GET = 'SELECT sequence, mac FROM audit_head WHERE partner_id = ?';

/**
 * Heads of a cluster's audit logs, the same for every process. The sequence is the write's timestamp, so the
 * highest head stays, whichever process is the last to write. The heads lie in the keyspace of the logs: a
 * log that was cut off by itself is found, a keyspace that was put back as a whole is not.
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
