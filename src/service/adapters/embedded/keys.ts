import type { EvidencePart } from '../../../witness/domain/evidence.js';
import type { AuditEntry, AuditHead } from '../../domain/audit.js';
import type { DigestKind } from '../../domain/digests.js';
import type { ReviewReminder, ServiceEvent } from '../../domain/events.js';
import type { Partner, PartnerKey } from '../../domain/partner.js';
import type { ErasedProof, IssuedProof, PendingProof } from '../../domain/proof.js';
import type { ReviewBindings, ReviewCase } from '../../domain/review.js';
import type { UploadFacts, UploadSlot } from '../../domain/upload.js';
import type { IssuingReplay, ReviewReplay, Rotation, RotationReplay } from '../../ports/stores.js';

/**
 * Key layout. A key is ASCII: a partition's name and its parts, joined by `/`. No part holds a `/`, so
 * everything under `a/b/` is the range [`a/b/`, `a/b0`). Times are unix seconds, and numbers count up; both
 * have 12 digits, so that they sort as text.
 *
 *   meta/format                  format version of the whole store
 *   meta/ping                    what the readiness check writes
 *   partner/{partnerId}          Partner
 *   key/{keyId}                  PartnerKey: the one read of every authenticated request
 *   partner-key/{partnerId}/{time}/{keyId}
 *                                index: a partner's keys by age
 *   rotation/{keyId}             Rotation of this key: its being there is what refuses a second one
 *   rotation-replay/{keyId}      RotationReplay: removed when its time has passed, from the files as well
 *   key-use/{partnerId}/{keyId}  when the key was last used: a row of its own, written without conditions
 *   upload/{uploadId}            slot and, once it was posted, its facts: one row, so that one read answers
 *   proof/{proofId}              Proof: pending, issued (with its overlay), erased
 *   evidence/{proofId}/{part}    body of a part of the proof's evidence
 *   pending/{time}/{proofId}     index: reserved ids by age
 *   proof-time/{partnerId}/{time}/{proofId}
 *                                index: a partner's issued proofs by time; read backwards, newest first
 *   bound/{sha256}/{proofId}     index: by the digest that the credential binds
 *   original/{sha256}/{proofId}  index: by the digest of the audio as it came to be issued
 *   file/{sha256}/{proofId}      index: by the digest of the delivered file
 *   samples/{sha256}/{proofId}   index: by the digest of the samples
 *   digest/{sha256}              HoldersRow: the proofs that have this digest in one of the four indexes above
 *   credential/{sha256}/{proofId}
 *                                index: by the digest of the credential
 *   replay/{key}                 IssuingReplay
 *   proof-replay/{proofId}       the proof's replay key, so that erasing finds it
 *   review/{reviewId}            ReviewCase
 *   review-open/{proofId}/{partnerId}/{creatorId}/{accountId}/{submissionId}/{trackId}
 *                                uniqueness row: the one unresolved review of a partner for these bindings
 *   partner-review/{partnerId}/{time}/{reviewId}
 *                                index: a partner's reviews by age
 *   proof-review/{proofId}/{partnerId}/{time}/{reviewId}
 *                                index: a proof's reviews, those of each partner by age
 *   review-count/{partnerId}, review-count/{partnerId}/{proofId}
 *                                counts of index rows, which the bounds are held against: a transaction
 *                                cannot read ranges
 *   review-replay/{key}          ReviewReplayRow: the review that was created under an Idempotency-Key
 *   erasing/{proofId}            index: erased proofs that may have reviews left
 *   audit/{partnerId}/{sequence} AuditEntry
 *   audit-head/{partnerId}       AuditHead: what the next entry is chained to
 *   usage-month/{partnerId}/{YYYY-MM}
 *                                units of the month, which the quota is held against, and the intervals of
 *                                them that were aggregated
 *   usage-source/{partnerId}/{source}
 *                                the same of another source: the free calls of a process
 *   usage-day/{partnerId}/{YYYY-MM-DD}
 *                                units of the day by operation: aggregated, and on their way; read as one sum
 *   billed/{partnerId}/{dedupeKey}
 *                                what was charged already
 *   outbox/{number}              ServiceEvent that waits to be published, in the order of the operations
 *   notice/{time}/{kind}/{reviewId}
 *                                ReviewReminder, by the time at which it is due
 *   expiry/{time}/{row's key}    index: rows that may be collected from then on. A row that moves its expiry
 *                                moves its entry
 *
 * The life of one proof. `reserveProof` writes proof/P (pending) and pending/T/P. `issueProof` then writes one synced
 * batch: proof/P (issued) over the pending row, its evidence, its index entries with digest/…, and replay/K with its
 * expiry entry. The batch also removes pending/T/P. A kill before the batch leaves a pending row, which
 * `collectReservations` takes back. A kill after it leaves an issued proof. Taking back marks proof/P, so that nothing
 * is issued under it, has the files removed, and then removes proof/P and pending/T/P. If it is interrupted, the rows
 * still name what is left.
 *
 * The life of one review. `createReview` writes review/R, review-open/…, both index entries with their counts, an expiry
 * entry and, under an Idempotency-Key, review-replay/K with an expiry entry. A final resolution removes review-open/…
 * and leaves the rest. Expiry removes all. An erasure writes only the tombstone and erasing/P. Every read or change of
 * a review reads proof/P too, so no review exists from then on, and creating one is refused. The rows are removed
 * afterwards, in steps, and erasing/P with the last of them.
 *
 * The life of one charge. One operation reads billed/…, usage-month/… and usage-day/…, and writes all three,
 * an expiry entry and its event. Charges that arrive while a batch is being synced run against what the
 * charges before them wrote. Such charges share the next batch, in which a month's row and its event appear
 * once. Aggregation moves the event's units within usage-day/… and adds its interval to usage-month/…, in one
 * operation.
 */

/** A key whose type names the type of its row. The row of an index entry is null. */
export type RowKey<Row> = string & { readonly row: Row };

export interface UploadRow {
  readonly slot: UploadSlot;
  readonly facts?: UploadFacts;
  /** The time from which the row may be collected, in unix seconds. */
  readonly sweepAt: number;
}
/** A reserved id. */
export interface PendingRow extends PendingProof {
  /** Present if its files are being removed. Nothing is issued under it any more. */
  readonly isTakenBack?: true;
}
/** The numbers after `from`, up to and with `to`. */
export type Interval = readonly [from: number, to: number];
/** The counts of a source for a partner. */
export interface SourceRow {
  /** The last number that the source has given. */
  readonly used: number;
  /** The number of the last batch of free calls that was counted, in the row of a process. */
  readonly batch?: number;
  /** The aggregated intervals, in order. They do not touch. */
  readonly folded?: readonly Interval[];
}
export interface DayRow {
  /** The aggregated units by operation. In rows of format 1, all units. */
  readonly operations: Readonly<Record<string, number>>;
  /** The units that were counted and are not aggregated yet, by operation. */
  readonly unfolded?: Readonly<Record<string, number>>;
}
export interface BilledRow {
  readonly until: number;
  /** The digest of the request that the key is bound to. */
  readonly request?: string;
}

/** A proof that has a digest. */
export interface HolderRow {
  readonly proofId: string;
  readonly partnerId: string;
  readonly createdAt: number;
  /** The digests that the proof has: a bit for each kind, from the lowest bit on, in the order of `DIGEST_KINDS`. */
  readonly kinds: number;
  /** The digests of these kinds, 32 bytes each, in the order of `DIGEST_KINDS`. */
  readonly digests: Uint8Array;
  /** Present if another proof has, or had, one of these digests. */
  readonly isShared?: true;
}
/** The proofs that have a digest, or their number where they are many. */
export type HoldersRow = { readonly proofs: readonly HolderRow[] } | { readonly count: number };

export interface KeyUseRow {
  readonly at: number;
}
export interface ReplayLinkRow {
  readonly key: string;
}
export interface ReviewRow {
  readonly review: ReviewCase;
  /** The digest of the Idempotency-Key under which the review was created. */
  readonly replayKey?: string;
}
/** The record of an Idempotency-Key. It ends with its review. */
export interface ReviewReplayRow extends ReviewReplay {
  readonly proofId: string;
  readonly reviewId: string;
}
export interface ReviewLinkRow {
  readonly reviewId: string;
}
export interface ReviewCountRow {
  readonly count: number;
}

const DIGITS = 12;
const MAX_NUMBER = 10 ** DIGITS - 1;
const BILLED = 'billed/';
const PLAIN_PART = /^[A-Za-z0-9._:-]+$/;

export const formatKey = key<{ readonly format: number }>('meta', 'format');
export const pingKey = key<{ readonly at: number }>('meta', 'ping');
export const partnerKey = (partnerId: string) => key<Partner>('partner', partnerId);
export const keyKey = (keyId: string) => key<PartnerKey>('key', keyId);
export const partnerKeyKey = (partnerId: string, createdAt: number, keyId: string) =>
  key<null>('partner-key', partnerId, digits(createdAt), keyId);
export const uploadKey = (uploadId: string) => key<UploadRow>('upload', uploadId);
export const proofKey = (proofId: string) => key<IssuedProof | ErasedProof | PendingRow>('proof', proofId);
export const evidenceKey = (proofId: string, part: EvidencePart) =>
  key<Uint8Array>('evidence', proofId, part);
export const pendingKey = (reservedAt: number, proofId: string) =>
  key<null>('pending', digits(reservedAt), proofId);
export const proofTimeKey = (partnerId: string, createdAt: number, proofId: string) =>
  key<null>('proof-time', partnerId, digits(createdAt), proofId);
export const digestKey = (kind: DigestKind | 'credential', sha256: string, proofId: string) =>
  key<null>(kind, sha256, proofId);
export const holdersKey = (sha256: string) => key<HoldersRow>('digest', sha256);
export const replayKey = (replay: string) => key<IssuingReplay>('replay', replay);
export const replayLinkKey = (proofId: string) => key<ReplayLinkRow>('proof-replay', proofId);
export const rotationKey = (keyId: string) => key<Rotation>('rotation', keyId);
export const rotationReplayKey = (keyId: string) => key<RotationReplay>('rotation-replay', keyId);
export const keyUseKey = (partnerId: string, keyId: string) => key<KeyUseRow>('key-use', partnerId, keyId);
export const reviewKey = (reviewId: string) => key<ReviewRow>('review', reviewId);
export const reviewOpenKey = (
  proofId: string,
  partnerId: string,
  { creatorId, accountId, submissionId, trackId }: ReviewBindings,
) => key<ReviewLinkRow>('review-open', proofId, partnerId, creatorId, accountId, submissionId, trackId);
export const partnerReviewKey = ({
  partnerId,
  createdAt,
  reviewId,
}: Pick<ReviewCase, 'partnerId' | 'createdAt' | 'reviewId'>) =>
  key<null>('partner-review', partnerId, digits(createdAt), reviewId);
export const proofReviewKey = ({
  proofId,
  partnerId,
  createdAt,
  reviewId,
}: Pick<ReviewCase, 'proofId' | 'partnerId' | 'createdAt' | 'reviewId'>) =>
  key<null>('proof-review', proofId, partnerId, digits(createdAt), reviewId);
/** @param proofId proof whose reviews alone are counted */
export const reviewCountKey = (partnerId: string, proofId?: string) =>
  key<ReviewCountRow>('review-count', partnerId, ...(proofId === undefined ? [] : [proofId]));
export const reviewReplayKey = (replay: string) => key<ReviewReplayRow>('review-replay', replay);
export const erasingKey = (proofId: string) => key<null>('erasing', proofId);
export const auditKey = (partnerId: string, sequence: number) =>
  key<AuditEntry>('audit', partnerId, digits(sequence));
export const auditHeadKey = (partnerId: string) => key<AuditHead>('audit-head', partnerId);
export const monthKey = (partnerId: string, month: string) => key<SourceRow>('usage-month', partnerId, month);
/** @param source source of usage events; the numbers of a billed one are the units of the month's row */
export const sourceKey = (partnerId: string, source: string) =>
  source.startsWith(BILLED)
    ? monthKey(partnerId, source.slice(BILLED.length))
    : key<SourceRow>('usage-source', partnerId, source);
export const dayKey = (partnerId: string, day: string) => key<DayRow>('usage-day', partnerId, day);
export const billedKey = (partnerId: string, dedupeKey: string) =>
  key<BilledRow>('billed', partnerId, dedupeKey);
export const outboxKey = (number: number) => key<ServiceEvent>('outbox', digits(number));
export const reminderKey = ({ dueAt, kind, reviewId }: ReviewReminder) =>
  key<ReviewReminder>('notice', digits(dueAt), kind, reviewId);
export const expiryKey = (at: number, row: RowKey<unknown>) => `expiry/${digits(at)}/${row}` as RowKey<null>;
/** Returns the key of the row that an expiry entry is for. */
export const expiringRow = (entry: string) => entry.slice('expiry/'.length + DIGITS + 1) as RowKey<unknown>;
export const isReviewKey = (row: RowKey<unknown>): row is RowKey<ReviewRow> => row.startsWith('review/');
export const isRotationReplayKey = (row: RowKey<unknown>): row is RowKey<RotationReplay> =>
  row.startsWith('rotation-replay/');
/** Returns the decoded last part of a key. */
export const lastPart = (text: string) => decodeURIComponent(text.slice(text.lastIndexOf('/') + 1));
/** Returns the time, in unix seconds, in an entry that ends with a time and an id. */
export const timeBefore = (text: string) => Number(text.split('/').at(-2));

/** A half-open range of keys. */
export interface KeyRange {
  readonly gte: string;
  readonly lt: string;
}
/** Returns the range of everything under these parts. */
export function under(...parts: readonly string[]): KeyRange {
  const prefix = parts.map(part).join('/');
  return { gte: `${prefix}/`, lt: `${prefix}0` };
}
/** Returns the range under `parts` in which the next part is a time before `end`, in unix seconds. */
export function before(end: number, ...parts: readonly string[]): KeyRange {
  const { gte } = under(...parts);
  return { gte, lt: gte + digits(end) };
}
/** Returns the range under `parts` in which the next part is a number (or a time) in these bounds, both inclusive. */
export function within(
  { from, to }: { readonly from?: number | undefined; readonly to?: number | undefined },
  ...parts: readonly string[]
): KeyRange {
  const { gte, lt } = under(...parts);
  // The caller's bounds may lie where no row can be.
  return {
    gte: from === undefined ? gte : from > MAX_NUMBER ? lt : gte + digits(Math.max(0, from)),
    lt: to === undefined || to >= MAX_NUMBER ? lt : gte + digits(Math.max(-1, to) + 1),
  };
}
/** Returns the range of the days of a partner's month, which is given as `YYYY-MM`. */
export const withinDays = (partnerId: string, month: string): KeyRange => ({
  gte: dayKey(partnerId, `${month}-`),
  lt: dayKey(partnerId, `${month}.`),
});
/** Returns the part of a range after an entry. */
export const following = (range: KeyRange, entry: string): KeyRange => ({ gte: `${entry}\0`, lt: range.lt });
/** Returns the part of a range before an entry. */
export const preceding = (range: KeyRange, entry: string): KeyRange => ({
  gte: range.gte,
  lt: entry < range.lt ? entry : range.lt,
});

function key<Row>(partition: string, ...parts: readonly string[]): RowKey<Row> {
  let text = partition;
  for (const each of parts) text += `/${part(each)}`;
  return text as RowKey<Row>;
}

/**
 * Returns a text as a part of a key. Identifiers, digests and dates are kept as they are. Any other text is
 * percent-encoded, so that two texts never share a key.
 */
function part(text: string): string {
  return PLAIN_PART.test(text) ? text : encodeURIComponent(text);
}

function digits(number: number): string {
  if (!Number.isSafeInteger(number) || number < 0 || number > MAX_NUMBER)
    throw new RangeError('a key part is neither a time in unix seconds nor a sequence number');
  return String(number).padStart(DIGITS, '0');
}
