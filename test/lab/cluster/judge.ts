/**
 * Compares what was acknowledged with the state at the end. A pure function, so that tests can pass made-up
 * runs.
 */
import type { ServiceEvent } from '../../../src/service/domain/events.js';
import { faultOf, faultOfHistory, REVIEW, type ReviewOperation } from './history.js';
import type { Ledger } from './ledger.js';
import { faultsOfLog } from './sets.js';

export interface ObservedProof {
  /** The statuses of the document, the record and the deliverable, from every process. */
  readonly statuses: readonly number[];
  /** The SHA-256 of the document and the record from every process, and of the deliverable. */
  readonly documents: readonly string[];
  readonly records: readonly string[];
  readonly assets: readonly string[];
  readonly listed: boolean;
  readonly state: string;
  readonly erasedAt?: number;
  readonly confirmedAt?: number;
  readonly assetPresent: boolean;
}

export interface ObservedPartner {
  /** The values of `used`, and of the verify units of the days, from every process. */
  readonly used: readonly number[];
  readonly daily: readonly number[];
  /** The totals in the consumers' table. */
  readonly folded: number;
  readonly keys: readonly string[];
  readonly auditOk: readonly boolean[];
  /** The partner's audit log: actions and their subjects. */
  readonly audit: readonly { readonly action: string; readonly subjects: readonly string[] }[];
  /** The proofs on all pages of the list. */
  readonly listed: ReadonlySet<string>;
}

export interface ObservedCase {
  readonly status: number;
  /** Undefined if the process did not answer. */
  readonly read?: ReviewOperation;
}

export interface Observed {
  readonly proofs: ReadonlyMap<string, ObservedProof>;
  readonly partners: ReadonlyMap<string, ObservedPartner>;
  /** The verdicts of proofs that were verified again at the end. */
  readonly verdicts: ReadonlyMap<string, string>;
  /** The status that each process answers to each successor's secret. */
  readonly successors: ReadonlyMap<string, readonly number[]>;
  /** Each case as every process returns it. */
  readonly reviews: ReadonlyMap<string, readonly ObservedCase[]>;
  /** The planned announcements, by case. */
  readonly notices: ReadonlyMap<string, readonly string[]>;
  /** The erased ids that rows of the store still name, with the table. */
  readonly rows: readonly { readonly table: string; readonly proofId: string }[];
  /** All events of the topics, in the order of their partitions, with duplicates. */
  readonly events: readonly ServiceEvent[];
  readonly deadLetters: number;
}

export type Acknowledged = Pick<
  Ledger,
  | 'partners'
  | 'issued'
  | 'erased'
  | 'billed'
  | 'rotated'
  | 'reviews'
  | 'histories'
  | 'logReads'
  | 'logged'
  | 'strangers'
  | 'unknownReviews'
>;

/** Actions that can happen only once to one thing. */
const UNIQUE: ReadonlySet<string> = new Set([
  'proof_issued',
  'proof_erased',
  'key_rotated',
  'review_created',
]);
const ANNOUNCED = 'review_expired review_expiring';

/** The counts that a run needs to show anything about contention. */
export const PLAYED: readonly string[] = [
  'histories of proof',
  'histories of issuing',
  'histories of key',
  'histories of quota',
  'histories of place',
  'identified',
  'reads of audit logs',
];

/** @returns one line for each demanded count that is zero */
export function judgeCounts(counts: Ledger['counts'], demanded: Iterable<string>): readonly string[] {
  return [...demanded].filter((what) => (counts[what] ?? 0) === 0).map((what) => `the run has no ${what}`);
}

/** @returns one line for each violation */
export function judge(acknowledged: Acknowledged, observed: Observed): readonly string[] {
  return [
    ...judgeProofs(acknowledged, observed),
    ...judgeLists(acknowledged, observed),
    ...judgeUsage(acknowledged, observed),
    ...judgeKeys(acknowledged, observed),
    ...judgeReviews(acknowledged, observed),
    ...judgeAudit(acknowledged, observed),
    ...judgeHistories(acknowledged),
    ...judgeTopics(acknowledged, observed),
    ...judgeRest(acknowledged, observed),
  ];
}

function* judgeProofs(
  { issued, erased }: Acknowledged,
  { proofs, verdicts, rows, events }: Observed,
): Generator<string> {
  const gone = new Map(erased.map((entry) => [entry.proofId, entry]));
  const announced = grouped(
    events.filter((event) => event.topic === 'erasure'),
    ({ data }) => data.proofId,
  );
  for (const { proofId, sha256 } of issued) {
    const erasure = gone.get(proofId);
    const seen = proofs.get(proofId);
    if (seen === undefined) yield `${proofId} was not looked at`;
    else if (erasure === undefined) {
      if (
        seen.state !== 'issued' ||
        !seen.listed ||
        !seen.assetPresent ||
        seen.statuses.some((status) => status !== 200)
      )
        yield `${proofId} was issued and is lost: ${JSON.stringify(seen)}`;
      if (new Set(seen.documents).size > 1 || new Set(seen.records).size > 1)
        yield `${proofId} is not the same everywhere`;
      if (seen.assets.some((asset) => asset !== sha256))
        yield `the deliverable of ${proofId} is another file than was issued`;
      const verdict = verdicts.get(proofId);
      if (verdict !== undefined && verdict !== 'valid')
        yield `${proofId} was issued and verifies as ${verdict}`;
      if (announced.has(proofId)) yield `${proofId} has an erasure event and was not erased`;
    } else {
      if (
        seen.state !== 'erased' ||
        seen.listed ||
        seen.assetPresent ||
        seen.statuses.some((status) => status !== 404)
      )
        yield `${proofId} was erased and is there: ${JSON.stringify(seen)}`;
      if (seen.erasedAt !== erasure.erasedAt)
        yield `${proofId} was erased at ${erasure.erasedAt} and says ${seen.erasedAt}`;
      if (seen.confirmedAt === undefined) yield `the erasure of ${proofId} is not confirmed`;
      // Duplicates have the same id. Without them each erasure has exactly one event (rule 15.8).
      const events = new Map(announced.get(proofId)?.map((event) => [event.id, event]));
      if (events.size !== 1) yield `${proofId} was erased and has ${events.size} events`;
      for (const { data } of events.values())
        if (data.erasedAt !== erasure.erasedAt)
          yield `the event of ${proofId} says ${data.erasedAt}, its erasure ${erasure.erasedAt}`;
    }
  }
  for (const { table, proofId } of rows)
    if (gone.has(proofId)) yield `${table} still names the erased ${proofId}`;
}

/**
 * Judges that every listed proof was acknowledged. Every issuing was repeated under one Idempotency-Key until
 * it was answered.
 */
function* judgeLists(
  { partners, issued, erased, strangers }: Acknowledged,
  { partners: seen }: Observed,
): Generator<string> {
  const gone = new Set(erased.map(({ proofId }) => proofId));
  const ofPartner = grouped(issued, ({ partnerId }) => partnerId);
  for (const { partnerId } of partners) {
    const expected = new Set(
      ofPartner
        .get(partnerId)
        ?.map(({ proofId }) => proofId)
        .filter((proofId) => !gone.has(proofId)),
    );
    for (const proofId of seen.get(partnerId)?.listed ?? [])
      if (!expected.has(proofId)) yield `${proofId} is listed and was never acknowledged`;
  }
  const issuedNames = new Set(issued.map(({ partnerId, proofId }) => `${partnerId} ${proofId}`));
  for (const { partnerId, name, where } of strangers)
    if (!issuedNames.has(`${partnerId} ${name}`)) yield `${name} was in ${where} and was never acknowledged`;
}

/** Judges the audit log: each acknowledged change has exactly one entry (rule 15.8). */
function* judgeAudit(
  { partners, issued, erased, rotated, reviews, logReads, logged }: Acknowledged,
  { partners: seen }: Observed,
): Generator<string> {
  const expected = new Map<string, Set<string>>();
  const expect = (partnerId: string, action: string, subject: string) =>
    expected.set(partnerId, (expected.get(partnerId) ?? new Set()).add(`${action} ${subject}`));
  for (const { partnerId, proofId } of issued) expect(partnerId, 'proof_issued', proofId);
  for (const { partnerId, proofId } of erased) expect(partnerId, 'proof_erased', proofId);
  for (const { partnerId, keyId } of rotated) expect(partnerId, 'key_rotated', keyId);
  for (const { partnerId, reviewId } of reviews) expect(partnerId, 'review_created', reviewId);
  for (const { partnerId } of partners) {
    const counts = new Map<string, number>();
    for (const { action, subjects } of seen.get(partnerId)?.audit ?? [])
      counts.set(`${action} ${subjects[0]}`, (counts.get(`${action} ${subjects[0]}`) ?? 0) + 1);
    for (const entry of expected.get(partnerId) ?? [])
      if (counts.get(entry) !== 1)
        yield `the log of ${partnerId} has ${counts.get(entry) ?? 0} entries of ${entry}`;
    for (const [entry, count] of counts)
      if (count > 1 && expected.get(partnerId)?.has(entry) !== true && UNIQUE.has(entry.split(' ')[0]!))
        yield `the log of ${partnerId} has ${count} entries of ${entry}`;
    const log = seen.get(partnerId)?.audit.map(textOfEntry) ?? [];
    for (const fault of faultsOfLog(logReads.get(partnerId) ?? [], log, logged.get(partnerId)))
      yield `the log of ${partnerId}: ${fault}`;
  }
}

export function textOfEntry({ action, subjects }: ObservedPartner['audit'][number]): string {
  return [action, ...subjects].join(' ');
}

function* judgeHistories({ histories }: Acknowledged): Generator<string> {
  for (const history of histories) {
    const fault = faultOfHistory(history);
    if (fault !== undefined) yield `the ${history.of} ${history.name}: ${fault}`;
  }
}

/**
 * Judges that every event belongs to an acknowledged change. The other direction is judged for each thing.
 */
function* judgeTopics(
  { issued, reviews, unknownReviews }: Acknowledged,
  { events }: Observed,
): Generator<string> {
  const known = new Set(issued.map(({ proofId }) => proofId));
  for (const proofId of new Set(
    events.flatMap((event) => (event.topic === 'erasure' ? event.data.proofId : [])),
  ))
    if (!known.has(proofId)) yield `the topic of erasures has ${proofId}, which was never acknowledged`;
  const acknowledged = new Set(reviews.map(({ reviewId }) => reviewId));
  const created = new Set(events.filter(({ kind }) => kind === 'review_created').map(({ key }) => key));
  const more = [...created].filter((reviewId) => !acknowledged.has(reviewId));
  if (more.length > unknownReviews)
    yield `${more.length} announced reviews were never acknowledged, and ${unknownReviews} creations were not answered`;
}

function* judgeUsage(
  { partners, billed }: Acknowledged,
  { partners: seen, events }: Observed,
): Generator<string> {
  const uploads = grouped(billed, ({ partnerId }) => partnerId);
  const spans = grouped(
    events.filter((event) => event.topic === 'usage').filter(({ data }) => data.source.startsWith('billed/')),
    ({ data }) => data.partnerId,
  );
  for (const { partnerId } of partners) {
    const owed = new Set(uploads.get(partnerId)?.map(({ uploadId }) => uploadId)).size;
    const observed = seen.get(partnerId);
    if (observed === undefined) {
      yield `the usage of ${partnerId} was not looked at`;
      continue;
    }
    const { used, daily, folded } = observed;
    if (used.some((units) => units !== owed))
      yield `${partnerId} has ${owed} billable calls and used ${used.join(', ')}`;
    if (daily.some((units) => units !== owed))
      yield `${partnerId} has ${owed} billable calls and by the day ${daily.join(', ')}`;
    if (folded !== owed) yield `${partnerId} has ${owed} billable calls and the consumers counted ${folded}`;
    const distinct = [...new Map(spans.get(partnerId)?.map((event) => [event.id, event.data])).values()];
    const counted = distinct.flatMap(({ counts }) => counts).reduce((sum, { units }) => sum + units, 0);
    if (counted !== owed) yield `${partnerId} has ${owed} billable calls and events of ${counted}`;
    for (const [source, ofSource] of grouped(distinct, ({ source }) => source)) {
      const sorted = ofSource.toSorted((a, b) => a.from - b.from);
      if (sorted.some(({ from }, index) => from !== (sorted[index - 1]?.to ?? 0)))
        yield `${partnerId}: the spans of ${source} overlap or leave a gap`;
    }
  }
}

function* judgeKeys({ rotated }: Acknowledged, { partners, successors }: Observed): Generator<string> {
  for (const [partnerId, chain] of grouped(rotated, (entry) => entry.partnerId)) {
    const known = new Set(chain.flatMap(({ keyId, newKeyId }) => [keyId, newKeyId]));
    const listed = partners.get(partnerId)?.keys ?? [];
    // A chain of n rotations has n + 1 keys. An additional key is a second successor of one of them.
    if (listed.length !== chain.length + 1 || listed.some((keyId) => !known.has(keyId)))
      yield `${partnerId} rotated ${chain.length} times and has ${listed.length} keys`;
    for (const { newKeyId } of chain) {
      const statuses = successors.get(newKeyId) ?? [];
      if (statuses.length === 0 || statuses.some((status) => status !== 200))
        yield `the secret of ${newKeyId} is answered ${statuses.join(', ') || 'nothing'}`;
    }
  }
}

function* judgeReviews(
  { reviews, erased }: Acknowledged,
  { reviews: seen, events, notices }: Observed,
): Generator<string> {
  const gone = new Set(erased.map(({ proofId }) => proofId));
  const created = new Set(events.filter(({ kind }) => kind === 'review_created').map(({ key }) => key));
  for (const { reviewId, proofId, operations } of reviews) {
    const found = seen.get(reviewId) ?? [];
    // The final state must follow from the calls too.
    const history = [...operations, ...found.flatMap(({ read }) => read ?? [])];
    const fault = faultOf(REVIEW, history);
    if (fault !== undefined) yield `the calls on ${reviewId}: ${fault}`;
    const expected = gone.has(proofId) ? 404 : 200;
    const statuses = found.map(({ status }) => status);
    if (statuses.length === 0 || statuses.some((status) => status !== expected))
      yield `${reviewId} is answered ${statuses.join(', ') || 'nothing'} where ${expected} is right`;
    if (!created.has(reviewId)) yield `${reviewId} was created without an event`;
    const planned = notices.get(reviewId) ?? [];
    if (!gone.has(proofId) && planned.join(' ') !== ANNOUNCED)
      yield `${reviewId} will be announced as ${planned.join(' ') || 'nothing'}`;
  }
}

function* judgeRest(
  { partners }: Acknowledged,
  { partners: seen, deadLetters }: Observed,
): Generator<string> {
  for (const { partnerId } of partners)
    if (seen.get(partnerId)?.auditOk.every((ok) => ok) !== true)
      yield `the audit log of ${partnerId} is not sound`;
  if (deadLetters > 0) yield `${deadLetters} dead letters`;
}

function grouped<Item, Key>(items: readonly Item[], keyOf: (item: Item) => Key): Map<Key, Item[]> {
  const groups = new Map<Key, Item[]>();
  for (const item of items) {
    const key = keyOf(item);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [item]);
    else group.push(item);
  }
  return groups;
}
