import { Authenticator } from '../../../src/core/codec/authenticator.js';
import type { AuditHeads } from '../../../src/service/ports/journals.js';

const heads: AuditHeads = { record: async () => {}, get: async () => undefined, close: async () => {} };
const secret = { id: '00000000', key: new Uint8Array(32) };

/**
 * For a store in which nothing that is audited happens. Its rows have their codes, which cost what they cost.
 */
export const UNAUDITED = {
  audit: { key: new Uint8Array(32), heads },
  authenticator: new Authenticator({ current: () => secret, find: () => secret }, 'bench'),
};
