/**
 * The snapshots of a backup and their tables, in the order of the page for operators. The last snapshot has all tables.
 * A table is restored from the first snapshot that has it.
 */
export const SNAPSHOTS = {
  decided: ['record', 'api_key', 'key_revocation', 'partner', 'charge', 'installation', 'audit_head'],
  pointers: ['pointer', 'watermark'],
  all: [],
} as const;
