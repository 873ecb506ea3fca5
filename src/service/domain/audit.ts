import { createHmac } from 'node:crypto';
import { defined } from '../../core/domain/defined.js';

/**
 * The audit log: a hash-chained record for each partner, for the service's signers, for devices and for plans
 * (rule 15.6). Entries contain only ids, closed words and plan limits. They contain no content, so an erasure
 * leaves none.
 */

export const AUDIT_ACTIONS = [
  'partner_created',
  'key_created',
  'key_revoked',
  'key_rotated',
  'proof_issued',
  'proof_imported',
  'proof_erased',
  'review_created',
  'review_evidence_opened',
  'review_evidence_supplied',
  'review_evidence_closed',
  'review_resolved',
  'declaration_recorded',
  'signer_revoked',
  'signer_reinstated',
  'device_enrolled',
  'device_revoked',
  'source_detail_approved',
  'source_detail_withdrawn',
  'consent_granted',
  'consent_revoked',
  'plan_created',
  'plan_changed',
  'plan_assigned',
  'content_keys_recorded',
  'dead_letter_discarded',
] as const;
export type AuditAction = (typeof AUDIT_ACTIONS)[number];

export interface AuditDraft {
  readonly partnerId: string;
  readonly action: AuditAction;
  /** The time of the action in unix seconds. */
  readonly at: number;
  /** The id of the key that acted, `operator`, or `operator:` and the name of the operator's token. */
  readonly actor: string;
  /** Ids and closed words that identify what the action changed. */
  readonly subjects: readonly string[];
  /**
   * The id of the request that made the change, which leads to its line in the log. Absent if no request made it. The
   * MAC of the entry leaves it out, so that versions without it verify the log. A store authenticates it as its own.
   */
  readonly requestId?: string;
}

export interface AuditEntry extends AuditDraft {
  /** The number of the entry, from 1 without gaps. */
  readonly sequence: number;
  /**
   * The HMAC-SHA-256 over the entry and the previous MAC, in lower-case hex. An edit, deletion or reordering
   * breaks the chain.
   */
  readonly mac: string;
}

/** The head of a partner's log. It is stored apart from the log, so that a truncated log is detected. */
export interface AuditHead {
  readonly partnerId: string;
  readonly sequence: number;
  readonly mac: string;
}

export const AUDIT_GENESIS = '0'.repeat(64);

export function chainAudit(key: Uint8Array, previous: AuditHead | undefined, draft: AuditDraft): AuditEntry {
  const sequence = (previous?.sequence ?? 0) + 1;
  return { ...draft, sequence, mac: auditMac(key, previous?.mac ?? AUDIT_GENESIS, { ...draft, sequence }) };
}

export function auditMac(key: Uint8Array, previousMac: string, entry: Omit<AuditEntry, 'mac'>): string {
  const { partnerId, action, at, actor, subjects, sequence } = entry;
  return createHmac('sha256', key)
    .update(JSON.stringify(['takemark audit', previousMac, sequence, partnerId, action, at, actor, subjects]))
    .digest('hex');
}

export interface AuditVerification {
  readonly ok: boolean;
  readonly entries: number;
  /** The sequence number in the separate head. Absent without a head. Truncation cannot then be detected. */
  readonly head?: number;
  /** The first faulty entry, and the reason. */
  readonly fault?: {
    readonly sequence: number;
    readonly reason: 'sequence_broken' | 'mac_mismatch' | 'truncated' | 'head_mismatch';
  };
}

/**
 * Verifies a whole log, oldest entry first, against the separate head. Read the head before the log. A log
 * that is ahead of its head is valid: it has grown since, or a crash happened between the two writes.
 */
export class AuditWalk {
  readonly #keys: readonly Uint8Array[];
  readonly #head: AuditHead | undefined;
  #sequence = 0;
  #mac = AUDIT_GENESIS;
  #fault: AuditVerification['fault'];

  /** @param keys every audit secret that may have signed an entry */
  constructor(keys: readonly Uint8Array[], head: AuditHead | undefined) {
    this.#keys = keys;
    this.#head = head;
  }

  /** Checks the next entry. @returns false from the first faulty entry on */
  take(entry: AuditEntry): boolean {
    if (this.#fault !== undefined) return false;
    this.#sequence += 1;
    if (entry.sequence !== this.#sequence) return this.#found('sequence_broken');
    if (!this.#keys.some((key) => entry.mac === auditMac(key, this.#mac, entry)))
      return this.#found('mac_mismatch');
    this.#mac = entry.mac;
    if (this.#head?.sequence === this.#sequence && this.#head.mac !== this.#mac)
      return this.#found('head_mismatch');
    return true;
  }

  /** Returns the result. Call it after the last entry. */
  end(): AuditVerification {
    if (this.#fault === undefined && this.#head !== undefined && this.#head.sequence > this.#sequence)
      this.#found('truncated');
    return {
      ok: this.#fault === undefined,
      entries: this.#sequence,
      ...defined({ head: this.#head?.sequence, fault: this.#fault }),
    };
  }

  #found(reason: NonNullable<AuditVerification['fault']>['reason']): false {
    this.#fault = { sequence: this.#sequence, reason };
    return false;
  }
}
