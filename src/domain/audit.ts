import { createHmac } from 'node:crypto';
import { defined } from './defined.js';

/**
 * Audit log: a hash-chained record for each partner, for the service's own signers, for devices and for plans
 * (rule 15.6). Entries hold ids, closed words and plans' limits only and no content, so an erasure leaves none.
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
] as const;
export type AuditAction = (typeof AUDIT_ACTIONS)[number];

export interface AuditDraft {
  readonly partnerId: string;
  readonly action: AuditAction;
  /** Unix seconds. */
  readonly at: number;
  /** Key id of whoever acted, or `operator`. */
  readonly actor: string;
  /** Ids of what the action was done to. */
  readonly subjects: readonly string[];
}

export interface AuditEntry extends AuditDraft {
  /** Number of the entry, from 1 without gaps. */
  readonly sequence: number;
  /**
   * HMAC-SHA-256 over the entry and the mac before it, lower-case hex: an edit, deletion or reorder breaks
   * the chain.
   */
  readonly mac: string;
}

/** Head of a partner's log, kept apart from the log, so that a truncated log is found. */
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
  /**
   * Sequence number in the head that is kept apart; absent where there is no head, and a cut-off end cannot
   * be seen.
   */
  readonly head?: number;
  /** First entry that does not fit, and the reason. */
  readonly fault?: {
    readonly sequence: number;
    readonly reason: 'sequence_broken' | 'mac_mismatch' | 'truncated' | 'head_mismatch';
  };
}

/**
 * Verifier of a whole log, oldest entry first, against the head that was kept apart. Read the head before the
 * log: a log that is ahead of its head has grown since, or was cut off by a crash between the two writes, and
 * is sound.
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

  /** @returns false from the first entry on that does not fit */
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

  /** Result, to be asked for after the last entry. */
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
