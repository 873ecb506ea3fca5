import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import t, { type Test } from 'tap';
import { SeededRandom } from '../../src/cli/specimens/random.js';
import { openEmbeddedStore } from '../../src/service/adapters/embedded/store.js';
import { type AuditHead, AuditWalk } from '../../src/service/domain/audit.js';
import { EVIDENCE_KINDS } from '../../src/service/domain/review.js';
import type { Stores } from '../../src/service/ports/stores.js';
import { authenticator } from '../fixtures/authentication.js';
import { seedsOf } from '../fixtures/seeds.js';
import { auditOf } from '../store-contract/audit-contract.js';
import { NOW } from '../store-contract/samples.js';
import { checkCharges, checkFolded, checkIndexes } from './embedded-checks.js';
import { AUDIT_KEY, fileHeads, readHeads, withLevel, writer } from './embedded-process.js';
import { EventLedger } from './event-ledger.js';

const KILLS = Number(process.env.TAKEMARK_KILLS ?? 8);
const KINDS = [
  'charge',
  'quota',
  'slot',
  'proof',
  'rotation',
  'revocation',
  'erasure',
  'review',
  'case',
  'evidence',
  'meter',
] as const;
type Kind = (typeof KINDS)[number];

/** The calls that a writer reported before it was killed. */
interface Acts {
  readonly begun: Readonly<Record<Kind, number>>;
  /** The outcomes by number. */
  readonly done: Readonly<Record<Kind, ReadonlyMap<number, string>>>;
}

/** Counts a partner's log entries with this action and first subject. */
type Logged = (action: string, subject: string) => number;

for (const seed of seedsOf('kills'))
  void t.test(
    `a store killed ${KILLS} times (seed ${seed}) loses no acknowledged write`,
    { timeout: 60_000 + KILLS * 15_000 },
    async (t) => {
      const directory = join(t.testdir(), 'store');
      const random = new SeededRandom(seed);
      const acknowledged: Record<string, number> = {};
      const ledger = new EventLedger();
      let slowest = 0;
      for (let round = 0; round < KILLS; round += 1) {
        const child = writer('everything', directory, String(round));
        const lines: string[] = [];
        const reader = createInterface({ input: child.stdout! });
        reader.on('line', (line) => lines.push(line));
        await once(reader, 'line');
        await new Promise((resolve) => setTimeout(resolve, random.next() * 500));
        child.kill('SIGKILL');
        await once(reader, 'close');

        // The heads that the kill left. Opening the store would update them.
        const heads = readHeads(directory);
        const start = performance.now();
        const stores = await openEmbeddedStore({
          directory,
          authenticator,
          audit: { key: AUDIT_KEY, heads: fileHeads(directory) },
        });
        await stores.ping();
        slowest = Math.max(slowest, performance.now() - start);

        const reported = read(lines);
        for (const kind of KINDS) acknowledged[kind] = (acknowledged[kind] ?? 0) + reported.done[kind].size;
        const partnerId = `ptr_audited-${Math.floor(round / 5)}`;
        const logged = await checkAudit(t, stores, partnerId, heads.get(partnerId));
        const problems = [
          ...ledger.take(lines),
          ...(await ledger.collect(stores)),
          ...(await checkUploads(stores, round, reported)),
          ...(await checkKeys(stores, round, reported, logged)),
          ...(await checkProofs(stores, round, reported, logged, ledger)),
          ...(await checkReviews(stores, partnerId, round, reported, logged, ledger)),
        ];
        t.strictSame(problems, [], `round ${round}`);
        t.equal(
          readHeads(directory).get(partnerId)?.sequence ?? 0,
          (await auditOf({ stores }, partnerId)).length,
          'opening caught up with the head',
        );
        const charged = new Set(Array.from(reported.done.charge, ([i]) => `${round}-${i}`));
        await checkCharges(
          t,
          stores,
          'ptr_kill',
          charged,
          Array.from({ length: reported.begun.charge }, (_, i) => `${round}-${i}`),
        );
        // The charges of this check are also part of the usage.
        const quota = Array.from({ length: reported.begun.quota }, (_, i) => `ptr_quota-${round}-${i}`);
        t.strictSame(
          [
            ...(await ledger.collect(stores)),
            ...(await ledger.checkUsage(stores, ['ptr_kill', `ptr_meter-${round}`, ...quota], NOW)),
          ],
          [],
          `events of round ${round}`,
        );
        await stores.close();
      }
      await foldAll(t, directory, ledger);
      t.ok(slowest < 60_000, `slowest start after a kill: ${Math.round(slowest)} ms`);
      t.comment(
        `slowest start after a kill: ${Math.round(slowest)} ms; acknowledged and found again: ${JSON.stringify(acknowledged)}`,
      );
      await withLevel(directory, (level) => checkIndexes(t, level));
    },
  );

/** Delivers all events again, to two consumers at once. */
async function foldAll(t: Test, directory: string, ledger: EventLedger): Promise<void> {
  const stores = await openEmbeddedStore({
    directory,
    authenticator,
    audit: { key: AUDIT_KEY, heads: fileHeads(directory) },
  });
  const { usage } = ledger;
  const partners = [...new Set(usage.map(({ key }) => key))];
  t.strictSame(await ledger.checkUsage(stores, partners, NOW), [], 'before');
  await Promise.all([stores.aggregateUsage(usage), stores.aggregateUsage(usage.toReversed())]);
  t.strictSame(
    await ledger.checkUsage(stores, partners, NOW),
    [],
    `${usage.length} usage events of ${partners.length} partners`,
  );
  await stores.close();
  await withLevel(directory, (level) => checkFolded(t, level));
}

function read(lines: readonly string[]): Acts {
  const begun = Object.fromEntries(KINDS.map((kind) => [kind, 0])) as Record<Kind, number>;
  const done = Object.fromEntries(KINDS.map((kind) => [kind, new Map<number, string>()])) as Record<
    Kind,
    Map<number, string>
  >;
  for (const line of lines) {
    const [word, kind, index, outcome] = line.split(' ') as [string, Kind, string, string];
    if (word === 'begin') begun[kind] = Math.max(begun[kind], Number(index) + 1);
    if (word === 'done') done[kind].set(Number(index), outcome);
  }
  return { begun, done };
}

/** Checks that the chain is whole and reaches the recorded head. */
async function checkAudit(
  t: Test,
  stores: Stores,
  partnerId: string,
  head: AuditHead | undefined,
): Promise<Logged> {
  const walk = new AuditWalk([AUDIT_KEY], head);
  const counts = new Map<string, number>();
  for (const entry of await auditOf({ stores }, partnerId)) {
    walk.take(entry);
    const key = `${entry.action} ${entry.subjects[0]}`;
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  t.match(walk.end(), { ok: true, fault: undefined }, `the log of ${partnerId}`);
  return (action, subject) => counts.get(`${action} ${subject}`) ?? 0;
}

async function checkUploads(
  stores: Stores,
  round: number,
  { begun, done }: Acts,
): Promise<readonly string[]> {
  const problems: string[] = [];
  for (let i = 0; i < begun.quota; i += 1) {
    const used = await stores.getUsed(`ptr_quota-${round}-${i}`, NOW);
    const reported = done.quota.get(i);
    if (used > 5 || (reported !== undefined && (reported !== '5' || used !== 5)))
      problems.push(`quota ${i}: ${used} used, ${reported} acknowledged`);
  }
  for (let i = 0; i < begun.slot; i += 1) {
    const upload = await stores.getUpload(`upl_${round}-${i}`, NOW);
    const stored =
      upload?.facts?.embedded?.kind === 'foreign' ? upload.facts.embedded.report.generator : undefined;
    const reported = done.slot.get(i);
    if (reported !== undefined && reported !== stored)
      problems.push(`slot ${i}: ${reported} was reported, ${stored} is stored`);
  }
  const [day] = await stores.getDailyUsage(`ptr_meter-${round}`, '2026-03-31', '2026-03-31');
  const { read_record: reads = 0, list_proofs: lists = 0 } = day?.operations ?? {};
  if (reads < done.meter.size || reads > begun.meter || lists !== 2 * reads)
    problems.push(
      `meter: ${reads} reads and ${lists} lists, between ${done.meter.size} and ${begun.meter} calls`,
    );
  return problems;
}

async function checkKeys(
  stores: Stores,
  round: number,
  { begun, done }: Acts,
  logged: Logged,
): Promise<readonly string[]> {
  const problems: string[] = [];
  for (let i = 0; i < begun.rotation; i += 1) {
    const keyId = `key_${round}-${i}`;
    const key = await stores.getKey(keyId);
    const rotation = await stores.getRotation(keyId);
    const successors: string[] = [];
    for (const letter of ['a', 'b', 'c', 'd'])
      if ((await stores.getKey(`${keyId}${letter}`)) !== undefined) successors.push(`${keyId}${letter}`);
    const reported = done.rotation.get(i);
    const whole =
      successors.join() === (rotation?.newKeyId ?? '') && key?.expiresAt === rotation?.previousKeyExpiresAt;
    const entries =
      logged('key_created', keyId) === Number(key !== undefined) &&
      logged('key_rotated', keyId) === Number(rotation !== undefined);
    if (!whole || !entries || (reported !== undefined && reported !== rotation?.newKeyId))
      problems.push(
        `rotation ${i}: ${reported} was reported, ${rotation?.newKeyId} is stored, successors ${successors.join()}, ${logged('key_rotated', keyId)} entries`,
      );
  }
  for (let i = 0; i < begun.revocation; i += 1) {
    const keyId = `key_revoked-${round}-${i}`;
    const revokedAt = (await stores.getKey(keyId))?.revokedAt;
    const reported = done.revocation.get(i);
    if (
      logged('key_revoked', keyId) !== Number(revokedAt !== undefined) ||
      (reported !== undefined && reported !== String(revokedAt))
    )
      problems.push(`revocation ${i}: ${reported} was reported, ${revokedAt} is stored`);
  }
  return problems;
}

async function checkProofs(
  stores: Stores,
  round: number,
  { begun, done }: Acts,
  logged: Logged,
  ledger: EventLedger,
): Promise<readonly string[]> {
  const problems: string[] = [];
  for (let i = 0; i < begun.proof; i += 1) {
    const ids = ['a', 'b'].map((letter) => `prf_${round}-${i}${letter}`);
    const states = await Promise.all(ids.map(async (proofId) => (await stores.getProof(proofId))?.state));
    const issued = ids.filter((_, j) => states[j] === 'issued');
    const replay = await stores.getIssuingReplay(`replay_${round}-${i}`, NOW);
    const reported = done.proof.get(i);
    const entries = ids.every(
      (proofId) => logged('proof_issued', proofId) === Number(issued.includes(proofId)),
    );
    if (
      issued.length > 1 ||
      !entries ||
      replay?.proofId !== issued[0] ||
      (reported !== undefined && reported !== issued.join())
    )
      problems.push(
        `proof ${i}: ${reported} was reported, ${issued.join()} issued, replay of ${replay?.proofId}`,
      );
  }
  for (let i = 0; i < begun.erasure; i += 1) {
    const proofId = `prf_erased-${round}-${i}`;
    const proof = await stores.getProof(proofId);
    const erased = proof?.state === 'erased';
    const partners = await Promise.all(
      ['a', 'b', 'c'].map((letter) => stores.findReviewPartner(`rev_erased-${round}-${i}${letter}`, NOW)),
    );
    const replay = await stores.getIssuingReplay(`replay_erased-${round}-${i}`, NOW);
    const reported = done.erasure.get(i);
    const clean = !erased || (partners.every((each) => each === undefined) && replay === undefined);
    const answer = erased ? `${proof.erasedAt},${proof.erasedAt}` : undefined;
    if (
      !clean ||
      logged('proof_erased', proofId) !== Number(erased) ||
      ledger.has(`proof_erased/${proofId}`) !== erased ||
      (reported !== undefined && reported !== answer)
    )
      problems.push(
        `erasure ${i}: ${reported} was reported, ${proof?.state} is stored, ${partners.join()} left, ${logged('proof_erased', proofId)} entries`,
      );
  }
  return problems;
}

async function checkReviews(
  stores: Stores,
  partnerId: string,
  round: number,
  { begun, done }: Acts,
  logged: Logged,
  ledger: EventLedger,
): Promise<readonly string[]> {
  const problems: string[] = [];
  for (let i = 0; i < begun.review; i += 1) {
    const found = [];
    for (const letter of ['a', 'b', 'c']) {
      const id = `rev_${round}-${i}${letter}`;
      const review = await stores.getReview(partnerId, id, NOW);
      if (ledger.has(`review_created/${id}`) !== (review !== undefined))
        problems.push(`review ${i}: row and event of ${id} do not agree`);
      if (review !== undefined) found.push(review);
    }
    const [review] = found;
    const { reviewId = '', evidenceRequests: requests = [], outcome } = review ?? {};
    const closed = requests.filter(({ status }) => status === 'accepted').length;
    const entries = [
      logged('review_created', reviewId),
      logged('review_evidence_opened', reviewId),
      logged('review_evidence_closed', reviewId),
      logged('review_resolved', reviewId),
    ].join();
    const expected = [found.length, requests.length, closed, Number(outcome !== undefined)].join();
    const kept =
      (done.case.get(i) ?? reviewId) === reviewId &&
      (!done.evidence.has(i) || requests.length === EVIDENCE_KINDS.length) &&
      (!done.review.has(i) || outcome === 'accepted');
    if (found.length > 1 || !kept || entries !== expected)
      problems.push(
        `review ${i}: ${done.case.get(i)}, ${done.evidence.get(i)}, ${done.review.get(i)} reported; ${found.length} cases, ${requests.length} requests, ${outcome}; entries ${entries}, not ${expected}`,
      );
  }
  return problems;
}
