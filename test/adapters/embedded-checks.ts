import type { ClassicLevel } from 'classic-level';
import type { Test } from 'tap';
import { RecordCodec } from '../../src/core/codec/record.js';
import { isUnresolved, type ReviewCase } from '../../src/service/domain/review.js';
import type { Stores } from '../../src/service/ports/stores.js';
import { authenticator } from '../fixtures/authentication.js';
import { NOW, usageCharge } from '../store-contract/samples.js';

/**
 * Finds charges that were acknowledged and are not stored, and counts that differ from the charges, by month
 * or day.
 */
export async function checkCharges(
  t: Test,
  stores: Stores,
  partnerId: string,
  acknowledged: ReadonlySet<string>,
  tried: readonly string[],
): Promise<void> {
  const before = await stores.getUsed(partnerId, NOW);
  const [day] = await stores.getDailyUsage(partnerId, '2026-03-31', '2026-03-31');
  t.equal(day?.operations.verify ?? 0, before, 'the day’s and the month’s count agree');
  const again = await Promise.all(tried.map((key) => stores.charge(usageCharge(partnerId, key))));
  const lost = tried.filter((key, i) => acknowledged.has(key) && again[i]!.outcome !== 'already_charged');
  t.strictSame(lost, [], 'no acknowledged charge is lost');
  const news = again.filter(({ outcome }) => outcome === 'charged').length;
  t.equal(await stores.getUsed(partnerId, NOW), before + news, 'no charge is counted twice');
}

/**
 * Finds units that were not aggregated exactly once: units in flight, and sources whose numbers are not one
 * interval.
 */
export async function checkFolded(t: Test, level: ClassicLevel<string, Uint8Array>): Promise<void> {
  const codec = new RecordCodec(authenticator);
  const problems: string[] = [];
  let units = 0;
  let used = 0;
  for (const [key, bytes] of await level.iterator({ gte: 'usage-', lt: 'usage.' }).all()) {
    const row = codec.decode(key, bytes) as {
      used: number;
      folded?: unknown;
      operations: Record<string, number>;
      unfolded?: Record<string, number>;
    };
    if (key.startsWith('usage-day/')) {
      units += row.operations.verify ?? 0;
      if (Object.keys(row.unfolded ?? {}).length > 0)
        problems.push(`${key}: ${JSON.stringify(row.unfolded)}`);
    } else {
      if (key.startsWith('usage-month/')) used += row.used;
      if (JSON.stringify(row.folded) !== JSON.stringify([[0, row.used]]))
        problems.push(`${key}: ${JSON.stringify(row)}`);
    }
  }
  t.strictSame(problems, []);
  t.equal(units, used, 'all units of all partners');
}

/** Finds rows without their index entries, and entries without their row. */
export async function checkIndexes(t: Test, level: ClassicLevel<string, Uint8Array>): Promise<void> {
  const keys = new Set(await level.keys().all());
  const codec = new RecordCodec(authenticator);
  const problems: string[] = [];
  const under = (prefix: string) => [...keys].filter((key) => key.startsWith(prefix));
  const row = async <Row>(key: string) => codec.decode(key, (await level.get(key))!) as Row;

  const indexed = ['proof-time/', 'bound/', 'original/', 'credential/', 'pending/'].map(
    (prefix) => new Set(under(prefix).map((key) => key.slice(key.lastIndexOf('/') + 1))),
  );
  const issued = new Set<string>();
  for (const key of under('proof/')) {
    const proof = await row<{ state: string; proofId: string }>(key);
    const entries = indexed.map((ids) => ids.has(proof.proofId));
    if (
      entries.join() !==
      [
        proof.state === 'issued',
        proof.state === 'issued',
        proof.state === 'issued',
        proof.state === 'issued',
        proof.state === 'pending',
      ].join()
    )
      problems.push(key);
    if (proof.state === 'issued') issued.add(proof.proofId);
  }
  for (const key of under('proof-replay/')) {
    const { key: replay } = await row<{ key: string }>(key);
    if (!issued.has(key.slice('proof-replay/'.length)) || !keys.has(`replay/${replay}`)) problems.push(key);
  }

  const places = new Set<string>();
  const links = new Set<string>();
  const counts = new Map<string, number>();
  for (const key of under('review/')) {
    const { review } = await row<{ review: ReviewCase }>(key);
    const { proofId, partnerId, reviewId, bindings } = review;
    const place = `review-open/${proofId}/${partnerId}/${bindings.creatorId}/${bindings.accountId}/${bindings.submissionId}/${bindings.trackId}`;
    const entry = `${partnerId}/${String(review.createdAt).padStart(12, '0')}/${reviewId}`;
    const own = [`proof-review/${proofId}/${entry}`, `partner-review/${entry}`];
    if (
      !(issued.has(proofId) || keys.has(`erasing/${proofId}`)) ||
      !own.every((link) => keys.has(link)) ||
      keys.has(place) !== isUnresolved(review)
    )
      problems.push(key);
    if (isUnresolved(review)) places.add(place);
    for (const link of own) links.add(link);
    for (const count of [`review-count/${partnerId}`, `review-count/${partnerId}/${proofId}`])
      counts.set(count, (counts.get(count) ?? 0) + 1);
  }
  for (const key of under('review-open/')) if (!places.has(key)) problems.push(key);
  for (const key of [...under('proof-review/'), ...under('partner-review/')])
    if (!links.has(key)) problems.push(key);
  for (const key of new Set([...under('review-count/'), ...counts.keys()]))
    if (!keys.has(key) || (await row<{ count: number }>(key)).count !== counts.get(key)) problems.push(key);

  const owned = new Set(under('partner-key/').map((key) => key.slice(key.lastIndexOf('/') + 1)));
  for (const key of under('key/')) if (!owned.has(key.slice('key/'.length))) problems.push(key);

  const expiring = new Set(under('expiry/').map((key) => key.slice('expiry/000000000000/'.length)));
  for (const key of [
    ...under('billed/'),
    ...under('upload/'),
    ...under('replay/'),
    ...under('proof-replay/'),
    ...under('review/'),
  ])
    if (!expiring.has(key)) problems.push(key);
  for (const key of expiring) if (!keys.has(key)) problems.push(key);
  const billed = under('billed/ptr_kill/').length;
  t.equal(
    (await row<{ used: number }>('usage-month/ptr_kill/2026-03')).used,
    billed,
    'one billed row for each unit',
  );
  t.strictSame(problems, [], `${keys.size} rows and entries agree`);
}
