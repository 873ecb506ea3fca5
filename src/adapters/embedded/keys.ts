import type { Partner, PartnerKey } from '../../domain/partner.js';
import type { Proof } from '../../domain/proof.js';
import type { UploadFacts, UploadSlot } from '../../domain/upload.js';
import type { IssuingReplay } from '../../ports/stores.js';

/**
 * Key layout. A key is ASCII: a partition's name and its parts, joined by `/`. No part holds a `/`, so everything under
 * `a/b/` is the range [`a/b/`, `a/b0`). Times are unix seconds in 12 digits, so that they sort as text.
 *
 *   meta/format                            format version of the whole store
 *   meta/ping                              what the readiness check writes
 *   partner/{partnerId}                    Partner
 *   key/{keyId}                            PartnerKey: the one read of every authenticated request
 *   partner-key/{partnerId}/{time}/{keyId} index: a partner's keys by age
 *   upload/{uploadId}                      slot and, once it was posted, its facts: one row, so that one read answers
 *   proof/{proofId}                        Proof: pending, issued, erased
 *   pending/{time}/{proofId}               index: reserved ids by age
 *   proof-time/{partnerId}/{time}/{proofId} index: a partner's issued proofs by time; newest first is the range read backwards
 *   bound/{sha256}/{proofId}               index: by the digest that the credential binds
 *   original/{sha256}/{proofId}            index: by the digest of the audio as it came to be issued
 *   credential/{sha256}/{proofId}          index: by the digest of the credential
 *   replay/{key}                           IssuingReplay
 *   usage-month/{partnerId}/{YYYY-MM}      units of the month: what the quota is held against
 *   usage-day/{partnerId}/{YYYY-MM-DD}     units of the day, by operation
 *   billed/{partnerId}/{dedupeKey}         what was charged already
 *   expiry/{time}/{row's key}              index: what may be swept from then on. A row that moves its expiry moves its entry
 *
 * The life of one proof. `reserveProof` writes proof/P (pending) and pending/T/P. `issueProof` then writes, in one synced
 * batch: proof/P (issued) over the pending row, proof-time, bound, original and credential entries, replay/K with its expiry
 * entry, and removes pending/T/P. A kill before that batch leaves a pending row that `sweepPending` takes back; a kill after
 * it leaves an issued proof: there is nothing between.
 *
 * The life of one charge. One operation reads billed/…, usage-month/… and usage-day/…, and writes all three and an expiry
 * entry. Charges that arrive while a batch is being synced run against what the ones before them wrote and share the next
 * batch, in which a month's row appears once.
 */

/** A key that says what its row is. Index entries hold null. */
export type RowKey<Row> = string & { readonly row: Row };

export interface UploadRow {
  readonly slot: UploadSlot;
  readonly facts?: UploadFacts;
  /** Unix seconds from which the row may be swept. */
  readonly sweepAt: number;
}
export interface MonthRow {
  readonly used: number;
}
export interface DayRow {
  readonly operations: Readonly<Record<string, number>>;
}
export interface BilledRow {
  readonly until: number;
}

const TIME_DIGITS = 12;
const PLAIN_PART = /^[A-Za-z0-9._:-]+$/;

export const formatKey = key<{ readonly format: number }>('meta', 'format');
export const pingKey = key<{ readonly at: number }>('meta', 'ping');
export const partnerKey = (partnerId: string) => key<Partner>('partner', partnerId);
export const keyKey = (keyId: string) => key<PartnerKey>('key', keyId);
export const partnerKeyKey = (partnerId: string, createdAt: number, keyId: string) => key<null>('partner-key', partnerId, seconds(createdAt), keyId);
export const uploadKey = (uploadId: string) => key<UploadRow>('upload', uploadId);
export const proofKey = (proofId: string) => key<Proof>('proof', proofId);
export const pendingKey = (reservedAt: number, proofId: string) => key<null>('pending', seconds(reservedAt), proofId);
export const proofTimeKey = (partnerId: string, createdAt: number, proofId: string) => key<null>('proof-time', partnerId, seconds(createdAt), proofId);
export const digestKey = (kind: 'bound' | 'original' | 'credential', sha256: string, proofId: string) => key<null>(kind, sha256, proofId);
export const replayKey = (replay: string) => key<IssuingReplay>('replay', replay);
export const monthKey = (partnerId: string, month: string) => key<MonthRow>('usage-month', partnerId, month);
export const dayKey = (partnerId: string, day: string) => key<DayRow>('usage-day', partnerId, day);
export const billedKey = (partnerId: string, dedupeKey: string) => key<BilledRow>('billed', partnerId, dedupeKey);
export const expiryKey = (at: number, row: RowKey<unknown>) => `expiry/${seconds(at)}/${row}` as RowKey<null>;
/** The row that an expiry entry speaks of. */
export const expiringRow = (entry: string) => entry.slice('expiry/'.length + TIME_DIGITS + 1) as RowKey<unknown>;
/** The last part of a key. */
export const lastPart = (text: string) => decodeURIComponent(text.slice(text.lastIndexOf('/') + 1));

/** Half-open range of keys. */
export interface KeyRange {
  readonly gte: string;
  readonly lt: string;
}
/** Everything under these parts. */
export function under(...parts: readonly string[]): KeyRange {
  const prefix = parts.map(part).join('/');
  return { gte: `${prefix}/`, lt: `${prefix}0` };
}
/** Everything under `parts` whose next part is a time before `end`. */
export function before(end: number, ...parts: readonly string[]): KeyRange {
  const { gte } = under(...parts);
  return { gte, lt: gte + seconds(end) };
}

function key<Row>(...parts: readonly string[]): RowKey<Row> {
  return parts.map(part).join('/') as RowKey<Row>;
}

/** Identifiers, digests and dates stand as they are; anything else is percent-encoded, so that two texts never share a key. */
function part(text: string): string {
  return PLAIN_PART.test(text) ? text : encodeURIComponent(text);
}

function seconds(time: number): string {
  if (!Number.isSafeInteger(time) || time < 0 || time >= 10 ** TIME_DIGITS) throw new RangeError('not a time in unix seconds');
  return String(time).padStart(TIME_DIGITS, '0');
}
