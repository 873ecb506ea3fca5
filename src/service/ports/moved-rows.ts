import type { EvidencePart } from '../../witness/domain/evidence.js';
import type { AuditEntry, AuditHead } from '../domain/audit.js';
import type { ReviewReminderKind } from '../domain/events.js';
import type { Partner, PartnerKey } from '../domain/partner.js';
import type { ErasedProof, IssuedProof } from '../domain/proof.js';
import type { ReviewCase } from '../domain/review.js';
import type { UploadFacts, UploadSlot } from '../domain/upload.js';
import type { EvidenceBody, IssuingReplay, ReviewReplay, Rotation } from './stores.js';

/** What one store hands to another store of the same environment, in a form that both know. */
export type MovedRow =
  | { readonly kind: 'tombstone'; readonly proof: ErasedProof }
  | { readonly kind: 'partner'; readonly partner: Partner }
  | {
      readonly kind: 'key';
      readonly key: PartnerKey;
      /** The rotation of the key without its replay, and the successor as it is stored. */
      readonly rotated?: { readonly rotation: Rotation; readonly successor: PartnerKey };
      /** The last use, in unix seconds. */
      readonly usedAt?: number;
    }
  /** At most `AUDIT_ROW_ENTRIES` entries of one log. The first sequence number follows a multiple of this count. */
  | { readonly kind: 'audit'; readonly entries: readonly AuditEntry[] }
  | { readonly kind: 'head'; readonly head: AuditHead }
  /** The record and the evidence as they are stored, with their content encrypted. */
  | { readonly kind: 'proof'; readonly proof: IssuedProof; readonly evidence: readonly EvidenceBody[] }
  | { readonly kind: 'replay'; readonly replay: IssuingReplay }
  | {
      readonly kind: 'review';
      readonly review: ReviewCase;
      /** True if the review holds the place of its bindings. */
      readonly isOpen: boolean;
      readonly replay?: ReviewReplay;
      readonly reminders: readonly ReviewReminderKind[];
    }
  | { readonly kind: 'upload'; readonly slot: UploadSlot; readonly facts?: UploadFacts }
  | {
      readonly kind: 'month';
      readonly partnerId: string;
      /** The month as `YYYY-MM`. */
      readonly month: string;
      /** The units that the quota is held against. */
      readonly used: number;
      /** The units that are in the sums of the days, as ends of intervals, ascending. */
      readonly folded: readonly number[];
      readonly days: readonly {
        readonly day: string;
        readonly operations: Readonly<Record<string, number>>;
      }[];
    }
  | {
      readonly kind: 'charge';
      readonly partnerId: string;
      readonly dedupeKey: string;
      readonly until: number;
      readonly request?: string;
    };

/** The most entries of an audit log in one row. */
export const AUDIT_ROW_ENTRIES = 25;

/** A store of one machine, read while nothing writes to it. */
export interface MoveSource {
  /**
   * Yields all rows that have not expired at `now` (unix seconds), tombstones first and then by kind. Reserved ids and
   * replays of rotations are left out.
   * @throws Error with a message for the operator while units are missing in the sums of the days
   */
  moved(now: number): AsyncIterable<MovedRow>;
}

/** A store of a cluster that receives the rows of another store, before it serves. */
export interface MoveTarget {
  /** Reports whether the store has no row of any kind that moves. */
  isEmpty(): Promise<boolean>;
  /** Returns the number of an export's blocks that are stored durably. Undefined for an export that never began. */
  progress(exportId: string): Promise<number | undefined>;
  setProgress(exportId: string, blocks: number): Promise<void>;
  /** Inserts a row if it does not exist. What exists stays. Repeating the call is harmless. */
  put(row: MovedRow, now: number): Promise<void>;
  /** Reads what the store has in the place of a row, in the same form. */
  find(row: MovedRow, now: number): Promise<MovedRow | undefined>;
}

/** A file of a proof as the asset store holds it: encrypted with the proof's content key. */
export interface MovedFile {
  readonly kind: 'file';
  readonly proofId: string;
  readonly part?: EvidencePart;
  readonly bytes: number;
  /** The whole content of a small file. The content of another file follows in rows of kind `chunk`. */
  readonly content?: Uint8Array;
}

/** A row of an archive, which holds the installation first, then rows, content keys and files. */
export type ArchiveRow =
  | MovedRow
  | MovedFile
  | { readonly kind: 'chunk'; readonly bytes: Uint8Array }
  | { readonly kind: 'content-key'; readonly proofId: string; readonly key: Uint8Array }
  | {
      readonly kind: 'installation';
      readonly exportId: string;
      readonly environment: string;
      /** The time of the export, in unix seconds. */
      readonly exportedAt: number;
      /** The text of the bundle of secrets that the cluster needs. */
      readonly bundle: string;
    };
