/**
 * Holds what was acknowledged against what is there afterwards. A pure function, so that made-up runs can
 * show that it finds things.
 */
import type { ServiceEvent } from '../../../src/service/domain/events.js';
import { faultOf, faultOfHistory, REVIEW, type ReviewOperation } from './history.js';
import type { Ledger } from './ledger.js';
import { faultsOfLog } from './sets.js';

export interface ObservedProof {
  /** Status of the document, the record and the deliverable, from every process. */
  readonly statuses: readonly number[];
  /** SHA-256 of the document and the record as every process gives them, and of the deliverable. */
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
  /** `used` and the days' verify units, as every process says them. */
  readonly used: readonly number[];
  readonly daily: readonly number[];
  /** Totals that the consumers have added up, in their table. */
  readonly folded: number;
  readonly keys: readonly string[];
  readonly auditOk: readonly boolean[];
  /** Its log: what was done, and to what. */
  readonly audit: readonly { readonly action: string; readonly subjects: readonly string[] }[];
  /** All pages. */
  readonly listed: ReadonlySet<string>;
}

export interface ObservedCase {
  readonly status: number;
  /** Undefined where none was given. */
  readonly read?: ReviewOperation;
}

export interface Observed {
  readonly proofs: ReadonlyMap<string, ObservedProof>;
  readonly partners: ReadonlyMap<string, ObservedPartner>;
  /** Verdicts of proofs that were verified again at the end. */
  readonly verdicts: ReadonlyMap<string, string>;
  /** For each successor, the status its secret is answered with by every process. */
  readonly successors: ReadonlyMap<string, readonly number[]>;
  /** Each case as every process gives it. */
  readonly reviews: ReadonlyMap<string, readonly ObservedCase[]>;
  /** Announcements that are planned, by case. */
  readonly notices: ReadonlyMap<string, readonly string[]>;
  /** Ids that rows of the store still name, and the table. */
  readonly rows: readonly { readonly table: string; readonly proofId: string }[];
  /** All that the topics hold, in the order of their partitions, duplicates included. */
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

/** Deed that is done once to a thing, whoever did it. */
const UNIQUE: ReadonlySet<string> = new Set([
  'proof_issued',
  'proof_erased',
  'key_rotated',
  'review_created',
]);
const ANNOUNCED = 'review_expired review_expiring';

/** Counts of a ledger without which a run has shown nothing of what contends. */
export const PLAYED: readonly string[] = [
  'histories of proof',
  'histories of issuing',
  'histories of key',
  'histories of quota',
  'histories of place',
  'identified',
  'reads of audit logs',
];

/** @returns one line for each of the demanded counts that a run has none of */
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
      // An event of the erasure when repetitions are dropped: rule 15.8.
      const told = new Map(announced.get(proofId)?.map((event) => [event.id, event]));
      if (told.size !== 1) yield `${proofId} was erased and has ${told.size} events`;
      for (const { data } of told.values())
        if (data.erasedAt !== erasure.erasedAt)
          yield `the event of ${proofId} says ${data.erasedAt}, its erasure ${erasure.erasedAt}`;
    }
  }
  for (const { table, proofId } of rows)
    if (gone.has(proofId)) yield `${table} still names the erased ${proofId}`;
}

/**
 * Nothing is there that nobody was told of: every issuing was repeated until it was answered, under one
 * Idempotency-Key.
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
      if (!expected.has(proofId)) yield `${proofId} is listed and nobody was told of it`;
  }
  const told = new Set(issued.map(({ partnerId, proofId }) => `${partnerId} ${proofId}`));
  for (const { partnerId, name, where } of strangers)
    if (!told.has(`${partnerId} ${name}`)) yield `${name} was in ${where} and nobody was told of it`;
}

/** Audit entries: one of each change that was acknowledged, and none of its kind beside it (rule 15.8). */
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

/** The topics tell of nothing that nobody did. What was done and must be told is looked for at its thing. */
function* judgeTopics(
  { issued, reviews, unknownReviews }: Acknowledged,
  { events }: Observed,
): Generator<string> {
  const known = new Set(issued.map(({ proofId }) => proofId));
  for (const proofId of new Set(
    events.flatMap((event) => (event.topic === 'erasure' ? event.data.proofId : [])),
  ))
    if (!known.has(proofId)) yield `the topic of erasures tells of ${proofId}, which nobody was told of`;
  const acknowledged = new Set(reviews.map(({ reviewId }) => reviewId));
  const created = new Set(events.filter(({ kind }) => kind === 'review_created').map(({ key }) => key));
  const more = [...created].filter((reviewId) => !acknowledged.has(reviewId));
  if (more.length > unknownReviews)
    yield `${more.length} reviews were announced and nobody was told of them, and ${unknownReviews} were not answered`;
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
    const told = distinct.flatMap(({ counts }) => counts).reduce((sum, { units }) => sum + units, 0);
    if (told !== owed) yield `${partnerId} has ${owed} billable calls and events of ${told}`;
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
    // A chain of n rotations has n + 1 keys; one more is a second successor of one of them.
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
    // Its state at the end follows from the calls too.
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
