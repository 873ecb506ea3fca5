import type { AuditHeads } from '../../../src/ports/journals.js';

const heads: AuditHeads = { record: async () => {}, get: async () => undefined, close: async () => {} };

/** For a store in which nothing that is audited happens. */
export const UNAUDITED = { key: new Uint8Array(32), heads };
