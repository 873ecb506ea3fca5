import { defined } from '../../core/domain/defined.js';
import type { AuditDraft } from './audit.js';
import { DEVICES_LOG } from './device.js';
import type { Topic } from './events.js';
import { PLANS_LOG } from './plan-log.js';
import { SIGNERS_LOG } from './signers-log.js';

/** The log that records which content keys belong to the store. */
export const CONTENT_KEYS_LOG = 'content-keys';
/** The log of events that the operator discarded. */
export const DEAD_LETTERS_LOG = 'dead-letters';

/** The audit logs of the service itself, which belong to no partner. */
export const SERVICE_LOGS: readonly string[] = [
  SIGNERS_LOG,
  DEVICES_LOG,
  PLANS_LOG,
  CONTENT_KEYS_LOG,
  DEAD_LETTERS_LOG,
];

export function isServiceLog(name: string): boolean {
  return SERVICE_LOGS.includes(name);
}

/** @param digest the SHA-256 of the canary, in lower-case hex */
export function contentKeysEntry(digest: string, at: number): AuditDraft {
  return {
    partnerId: CONTENT_KEYS_LOG,
    action: 'content_keys_recorded',
    at,
    actor: 'operator',
    subjects: [digest],
  };
}

export function discardEntry(
  { topic, position, id }: { readonly topic: Topic; readonly position: string; readonly id?: string },
  at: number,
): AuditDraft {
  return {
    partnerId: DEAD_LETTERS_LOG,
    action: 'dead_letter_discarded',
    at,
    actor: 'operator',
    subjects: Object.values(defined({ topic, position, id })),
  };
}
