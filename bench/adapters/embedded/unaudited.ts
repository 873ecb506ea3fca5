import { Authenticator } from '../../../src/core/codec/authenticator.js';
import type { AuditHeads } from '../../../src/service/ports/journals.js';

const heads: AuditHeads = { record: async () => {}, get: async () => undefined, close: async () => {} };
const secret = { id: '00000000', key: new Uint8Array(32) };

/**
 * The options of a store in which nothing audited happens. Its rows have their codes, at the usual cost.
 */
export const UNAUDITED = {
  audit: { key: new Uint8Array(32), heads },
  authenticator: new Authenticator({ current: () => secret, find: () => secret }, 'bench'),
};
