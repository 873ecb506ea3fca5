/**
 * Compares the acknowledgements before and after the restore of a backup with the state at the end. A pure
 * function, like `judge`.
 */
import type { Observed, ObservedProof } from './judge.js';
import type { ErasedEntry, IssuedEntry, KnownPartner } from './ledger.js';

/** A verify that was sent once. All times are of the ledger's clock. */
export interface VerifiedEntry {
  readonly partnerId: string;
  readonly sentAt: number;
  /** Absent if the outcome is unknown. */
  readonly at?: number;
  readonly proofId?: string;
  readonly verdict?: string;
}

/** The answers of a run, and the times of its backup and its restore. */
export interface Acknowledged {
  readonly partners: readonly KnownPartner[];
  readonly issued: readonly IssuedEntry[];
  readonly erased: readonly ErasedEntry[];
  /** The time of the first request to erase each proof. */
  readonly erasing: ReadonlyMap<string, number>;
  /** Erasures that were answered 404. */
  readonly notFound: readonly { readonly proofId: string; readonly sentAt: number }[];
  readonly verified: readonly VerifiedEntry[];
  readonly backup: { readonly began: number; readonly ended: number };
  /** The time at which all processes had stopped. */
  readonly closedAt: number;
  /** The time at which processes started on the restored backup. */
  readonly openedAt: number;
}

export type ObservedRestored = Pick<Observed, 'proofs' | 'partners' | 'verdicts' | 'rows'> & {
  /** The ids of proofs that have files in the bucket. */
  readonly files: ReadonlySet<string>;
};

/** @returns one line for each violation */
export function judgeRestored(acknowledged: Acknowledged, observed: ObservedRestored): readonly string[] {
  return [
    ...judgeProofs(acknowledged, observed),
    ...judgeErasures(acknowledged, observed),
    ...judgeMoments(acknowledged),
    ...judgeUsage(acknowledged, observed),
  ];
}

/**
 * Returns whether the restored store must have the proof. Proofs from during or after the backup may be lost.
 */
const isKept = ({ backup, openedAt }: Acknowledged, { at }: IssuedEntry): boolean =>
  at < backup.began || at > openedAt;

function isWhole(seen: ObservedProof, sha256: string): boolean {
  return (
    seen.state === 'issued' &&
    seen.listed &&
    seen.assetPresent &&
    seen.statuses.every((status) => status === 200) &&
    new Set(seen.documents).size === 1 &&
    new Set(seen.records).size === 1 &&
    seen.assets.every((asset) => asset === sha256)
  );
}

const isNowhere = (seen: ObservedProof): boolean =>
  seen.state !== 'issued' && !seen.listed && seen.statuses.every((status) => status === 404);

function* judgeProofs(acknowledged: Acknowledged, { proofs, verdicts }: ObservedRestored): Generator<string> {
  const gone = new Set(acknowledged.erased.map(({ proofId }) => proofId));
  for (const entry of acknowledged.issued) {
    const { proofId, sha256 } = entry;
    if (gone.has(proofId)) continue;
    const seen = proofs.get(proofId);
    if (seen === undefined) {
      yield `${proofId} was not looked at`;
      continue;
    }
    const verdict = verdicts.get(proofId);
    if (isWhole(seen, sha256)) {
      if (verdict !== undefined && verdict !== 'valid')
        yield `${proofId} is there and verifies as ${verdict}`;
    } else if (isKept(acknowledged, entry) && !acknowledged.erasing.has(proofId))
      yield `${proofId} is of the backup and lost: ${JSON.stringify(seen)}`;
    else if (!isNowhere(seen)) yield `half of ${proofId} is there: ${JSON.stringify(seen)}`;
    else if (verdict === 'valid') yield `${proofId} is not there and verifies as valid`;
  }
}

function* judgeErasures(
  acknowledged: Acknowledged,
  { proofs, verdicts, rows, files }: ObservedRestored,
): Generator<string> {
  const issued = new Map(acknowledged.issued.map((entry) => [entry.proofId, entry]));
  const first = new Map<string, number>();
  for (const { proofId, erasedAt } of acknowledged.erased) {
    const before = first.get(proofId);
    if (before !== undefined && before !== erasedAt)
      yield `${proofId} was erased at ${before} and at ${erasedAt}`;
    first.set(proofId, before ?? erasedAt);
  }
  for (const [proofId, erasedAt] of first) {
    const seen = proofs.get(proofId);
    if (seen === undefined) {
      yield `${proofId} was not looked at`;
      continue;
    }
    if (!isNowhere(seen) || files.has(proofId))
      yield `${proofId} was erased and is there${files.has(proofId) ? ', with files' : ''}: ${JSON.stringify(seen)}`;
    if (seen.state === 'erased') {
      if (seen.erasedAt !== erasedAt) yield `${proofId} was erased at ${erasedAt} and says ${seen.erasedAt}`;
      if (seen.confirmedAt === undefined) yield `the erasure of ${proofId} is not confirmed`;
    } else if (isKept(acknowledged, issued.get(proofId)!))
      yield `${proofId} was erased and its state is ${seen.state}`;
    const verdict = verdicts.get(proofId);
    if (verdict !== undefined && verdict !== 'unregistered')
      yield `${proofId} was erased and verifies as ${verdict}`;
  }
  // Rows may name a proof that the backup lacks. Their table was copied after the table that decides proofs.
  for (const { table, proofId } of rows)
    if (first.has(proofId) && proofs.get(proofId)?.state === 'erased')
      yield `${table} still names the erased ${proofId}`;
  for (const { proofId, sentAt } of acknowledged.notFound) {
    const entry = issued.get(proofId)!;
    if (sentAt < acknowledged.closedAt || isKept(acknowledged, entry))
      yield `the erasure of ${proofId} was answered 404`;
  }
}

/** Judges each answer by the state at its time. */
function* judgeMoments(acknowledged: Acknowledged): Generator<string> {
  const { closedAt, openedAt, erasing, issued, verified } = acknowledged;
  const acts = [...issued, ...acknowledged.erased, ...verified];
  const within = acts.filter(({ at }) => at !== undefined && at > closedAt && at < openedAt);
  if (within.length > 0) yield `${within.length} calls were taken before the restore had ended`;
  const entries = new Map(issued.map((entry) => [entry.proofId, entry]));
  const erasedAt = new Map<string, number>();
  for (const { proofId, at } of acknowledged.erased)
    erasedAt.set(proofId, Math.min(at, erasedAt.get(proofId) ?? at));
  for (const { proofId, sentAt, at, verdict } of verified) {
    if (proofId === undefined || at === undefined) continue;
    if ((erasedAt.get(proofId) ?? Infinity) < sentAt) {
      if (verdict !== 'unregistered') yield `${proofId} verified as ${verdict} after its erasure`;
    } else if ((erasing.get(proofId) ?? Infinity) > at) {
      if (verdict !== 'valid' && (sentAt < closedAt || isKept(acknowledged, entries.get(proofId)!)))
        yield `${proofId} verified as ${verdict}`;
    }
  }
}

/**
 * Judges the usage. The days show what was acknowledged, and the quota shows what the store has. Calls
 * without an answer may count.
 */
function* judgeUsage(
  { partners, verified, backup, closedAt, openedAt }: Acknowledged,
  { partners: seen }: ObservedRestored,
): Generator<string> {
  for (const { partnerId } of partners) {
    const own = verified.filter((entry) => entry.partnerId === partnerId);
    const answered = own.filter(({ at }) => at !== undefined);
    const least = answered.filter(({ at, sentAt }) => at! < backup.began || sentAt > openedAt).length;
    const most = own.filter(({ sentAt }) => sentAt < backup.ended || sentAt > closedAt).length;
    const observed = seen.get(partnerId);
    if (observed === undefined) {
      yield `the usage of ${partnerId} was not looked at`;
      continue;
    }
    const { used, daily, folded, auditOk } = observed;
    if (daily.some((units) => units < answered.length || units > own.length))
      yield `${partnerId} has ${answered.length} to ${own.length} billable calls and by the day ${daily.join(', ')}`;
    if (daily.some((units) => units !== folded))
      yield `${partnerId} has by the day ${daily.join(', ')}, and the consumers counted ${folded}`;
    if (new Set(used).size > 1 || used.some((units) => units < least || units > most))
      yield `${partnerId} has ${least} to ${most} billable calls in the store and used ${used.join(', ')}`;
    if (auditOk.some((ok) => !ok)) yield `the audit log of ${partnerId} is not sound`;
  }
}
