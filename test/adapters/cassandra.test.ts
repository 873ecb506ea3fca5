import type { Client } from 'cassandra-driver';
import t, { type Test } from 'tap';
import { migrate, type MigrationOptions } from '../../src/adapters/cassandra/migrations.js';
import { openCassandraStore } from '../../src/adapters/cassandra/store.js';
import { AuditWalk } from '../../src/domain/audit.js';
import { EVIDENCE_KINDS, openEvidence, resolveReview, REVIEW_LIFE_SECONDS, type ReviewCase, stepEvidence } from '../../src/domain/review.js';
import { proofErased, reviewCreated, type ServiceEvent } from '../../src/domain/events.js';
import type { Stores } from '../../src/ports/stores.js';
import { auditOf } from '../store-contract/audit-contract.js';
import { takeWaiting, usageOf } from '../store-contract/outbox-contract.js';
import { audit, issuedProof, issuingReplay, NOW, partner, partnerKey, reviewCase, rotation, usageCharge } from '../store-contract/samples.js';
import { ADDRESSES, connection, intercepted, KEY, memoryHeads, openStore, withClient } from './cassandra-under-test.js';
import { type OpenedStore, type OpenOptions, storeContract } from '../store-contract/suite.js';

const { TAKEMARK_SECURE_CASSANDRA: SECURE, TAKEMARK_SECURE_USER: username = '', TAKEMARK_SECURE_PASSWORD: password = '', TAKEMARK_SECURE_CA: authority = '' } = process.env;

async function open(options: OpenOptions = {}): Promise<OpenedStore> {
  const audit = { key: KEY, heads: memoryHeads() };
  const stores = await openCassandraStore({ ...connection, audit, ...options });
  return {
    stores,
    audit,
    close: () => stores.close(),
    reopen: async () => {
      await stores.close();
      return open(options);
    },
  };
}

if (ADDRESSES === undefined) {
  void t.test('the Cassandra store', { skip: 'TAKEMARK_CASSANDRA is not set: npm run services:up starts a server and prints it' }, () => undefined);
} else {
  void t.test('migrations: two at once, and again', async (t) => {
    await t.rejects(openStore(), { name: 'CassandraOpenError' }, 'a keyspace that is not there');
    const runs = await Promise.all([migrate(connection), migrate(connection)]);
    t.strictSame(runs.flat(), ['001-initial.cql', '002-events.cql'], 'one of them applied it');
    t.strictSame(await migrate(connection), []);
  });
  storeContract(t, 'the Cassandra store', open);
  void t.test('every part of a case ends with it', caseEndsWhole);
  void t.test('two processes at once', twoStores);
  void t.test('what a crash leaves is finished', abandonedIntents);
  t.teardown(() => withClient((client) => client.execute(`DROP KEYSPACE IF EXISTS ${connection.keyspace}`)));
}

if (SECURE === undefined || SECURE === '') {
  void t.test('a server that demands a password and TLS', { skip: 'TAKEMARK_SECURE_CASSANDRA is not set: npm run services:up -- --secure starts one' }, () => undefined);
} else {
  void t.test('a server that demands a password and TLS', async (t) => {
    const secure: MigrationOptions = { ...connection, contactPoints: SECURE.split(','), credentials: { username, password }, tls: { authority } };
    const openSecure = (over: Partial<MigrationOptions>) => openCassandraStore({ ...secure, ...over, audit: { key: KEY, heads: memoryHeads() } });
    await migrate(secure);
    const stores = await openSecure({});
    t.teardown(() => stores.close());
    await t.resolves(stores.ping());
    await t.rejects(openSecure({ credentials: { username, password: `${password}x` } }), { name: 'CassandraOpenError' }, 'another password');
    const { credentials: _, ...nobody } = secure;
    await t.rejects(openCassandraStore({ ...nobody, audit: { key: KEY, heads: memoryHeads() } }), { name: 'CassandraOpenError' }, 'no password');
    const { tls: __, ...open } = secure;
    await t.rejects(openCassandraStore({ ...open, audit: { key: KEY, heads: memoryHeads() } }), { name: 'CassandraOpenError' }, 'no encryption');
  });
}

/** Remaining lives, in seconds, of all columns of a case that are set; null where one has no end. */
async function livesOf(client: Client, reviewId: string): Promise<readonly (number | null)[]> {
  const columns = ['partner_id', 'proof_id', 'creator_id', 'account_id', 'submission_id', 'track_id', 'status', 'outcome', 'created_at', 'updated_at', 'resolved_at', 'expires_at', 'version', 'create_op', 'position', 'request_id', 'request_status', 'response_reference', 'requested_at', 'changed_at'];
  const selected = columns.map((column) => `${column}, TTL(${column}) AS ttl_${column}`).join(', ');
  const { rows } = await client.execute(`SELECT part, ${selected} FROM review WHERE review_id = ?`, [reviewId], { prepare: true });
  return rows.flatMap((row) => columns.filter((column) => row[column] !== null).map((column) => row[`ttl_${column}`] as number | null));
}

/** A case with all that can happen to one, at the server's own time. */
async function liveCase(stores: Stores, name: string): Promise<ReviewCase> {
  const proof = issuedProof(`prf_${name}`, 'ptr_ttl');
  await stores.reserveProof(proof.proofId, proof.partnerId, NOW);
  await stores.issueProof(proof, audit(proof.partnerId, 'proof_issued', proof.proofId));
  const now = () => Math.floor(Date.now() / 1_000);
  const createdAt = now();
  const review = reviewCase(`rev_${name}`, 'ptr_ttl', proof.proofId, { createdAt, expiresAt: createdAt + REVIEW_LIFE_SECONDS });
  await stores.createReview(review, audit('ptr_ttl', 'review_created', review.reviewId));
  // So that a life counted from the write and not from the creation shows.
  await new Promise((resolve) => setTimeout(resolve, 2_500));
  const change = (rule: Parameters<Stores['changeReview']>[3]) => stores.changeReview('ptr_ttl', review.reviewId, now(), rule, audit('ptr_ttl', 'review_resolved', review.reviewId));
  for (const kind of EVIDENCE_KINDS) {
    await change((current) => openEvidence(current, kind, `req_${kind}`, now()));
    await change((current) => stepEvidence(current, `req_${kind}`, 'supply', `ref/${kind}`, now()));
    await change((current) => stepEvidence(current, `req_${kind}`, 'accept', undefined, now()));
  }
  await change((current) => resolveReview(current, 'held', now()));
  await change((current) => resolveReview(current, 'accepted', now()));
  return review;
}

function endTogether(lives: readonly (number | null)[]): boolean {
  const numbers = lives.filter((life) => life !== null);
  return numbers.length === lives.length && Math.max(...numbers) - Math.min(...numbers) <= 2;
}

async function caseEndsWhole(t: Test): Promise<void> {
  const stores = await openStore();
  t.teardown(() => stores.close());
  await withClient(async (client) => {
    const review = await liveCase(stores, 'whole');
    const lives = await livesOf(client, review.reviewId);
    t.ok(lives.length > 40, `${lives.length} columns`);
    t.ok(endTogether(lives), `${Math.min(...lives.map(Number))} to ${Math.max(...lives.map(Number))} seconds`);
    t.ok(Math.abs(Number(lives[0]) - REVIEW_LIFE_SECONDS - 3_600) <= 10);

    // `USING TTL 0` is the same as none: each such clause of the review table is taken away in its turn.
    const seen = await timedStatements(() => liveCase(stores, 'seen'));
    t.equal(seen.size, 4, [...seen].join('\n'));
    for (const [i, query] of [...seen].entries()) {
      const broken = await withoutTtl(query, () => liveCase(stores, `broken-${i}`));
      t.notOk(endTogether(await livesOf(client, broken.reviewId)), `found without the TTL of: ${query.slice(0, 60)}`);
    }
  }, connection.keyspace);
}

const TIMED = /^(UPDATE|INSERT INTO) review\b(?!_).*USING TTL \?/;

async function timedStatements(work: () => Promise<unknown>): Promise<ReadonlySet<string>> {
  const seen = new Set<string>();
  await intercepted((sent) => sent.filter(({ query }) => TIMED.test(query)).forEach(({ query }) => seen.add(query)), work);
  return seen;
}

function withoutTtl<Value>(query: string, work: () => Promise<Value>): Promise<Value> {
  const position = query.slice(0, query.indexOf('USING TTL ?')).split('?').length - 1;
  return intercepted((sent) => {
    for (const each of sent) if (each.query === query) each.params[position] = 0;
  }, work);
}

async function twoStores(t: Test): Promise<void> {
  const pair = [await openStore(), await openStore()] as const;
  t.teardown(() => Promise.all(pair.map((stores) => stores.close())));
  const of = (i: number) => pair[i % 2]!;

  await t.test('100 rotations of one key across both: one', async (t) => {
    const key = partnerKey('key_two', 'ptr_two');
    await of(0).createKey(key, audit('ptr_two', 'key_created', key.keyId));
    const results = await Promise.all(Array.from({ length: 100 }, (_, i) => of(i).rotateKey(rotation(key, `key_two-${i}`, i), partnerKey(`key_two-${i}`, 'ptr_two'), audit('ptr_two', 'key_rotated', key.keyId))));
    for (const result of results) t.strictSame(result, results[0]);
    t.equal((await of(0).listKeys('ptr_two')).length, 2);
    t.strictSame((await auditOf({ stores: of(1) }, 'ptr_two')).map(({ action }) => action), ['key_created', 'key_rotated']);
  });

  await t.test('300 charges of a quota of 100 across both: 100', async (t) => {
    const results = await Promise.all(Array.from({ length: 300 }, (_, i) => of(i).charge(usageCharge('ptr_quota', `call-${Math.floor(i / 2)}`, { monthlyQuota: 100 }))));
    const charged = results.filter(({ outcome }) => outcome === 'charged');
    t.strictSame(charged.map(({ used }) => used).sort((a, b) => a - b), Array.from({ length: 100 }, (_, i) => i + 1));
    t.equal(await of(0).getUsed('ptr_quota', NOW), 100);
    t.strictSame(await of(1).getDailyUsage('ptr_quota', '2026-03-31', '2026-03-31'), [{ day: '2026-03-31', operations: { verify: 100 } }]);
  });

  await t.test('issuing, cases, erasure and free counts across both', async (t) => {
    const proofs = Array.from({ length: 20 }, (_, i) => issuedProof(`prf_two-${i}`, 'ptr_both'));
    await Promise.all(proofs.map((proof, i) => of(i).reserveProof(proof.proofId, proof.partnerId, NOW)));
    const issued = await Promise.all(proofs.map((proof, i) => of(i).issueProof(proof, audit('ptr_both', 'proof_issued', proof.proofId), issuingReplay('two', proof.proofId))));
    t.equal(issued.filter((outcome) => outcome === 'issued').length, 1);
    const proof = proofs[issued.indexOf('issued')]!;
    const cases = await Promise.all(Array.from({ length: 40 }, (_, i) => of(i).createReview(reviewCase(`rev_two-${i}`, 'ptr_both', proof.proofId), audit('ptr_both', 'review_created', `rev_two-${i}`))));
    t.equal(cases.filter(({ outcome }) => outcome === 'created').length, 1);
    const reviewId = `rev_two-${cases.findIndex(({ outcome }) => outcome === 'created')}`;
    const opened = await Promise.all(Array.from({ length: 100 }, (_, i) => of(i).changeReview('ptr_both', reviewId, NOW, (now) => openEvidence(now, 'source_licence', `req_${i}`, NOW), audit('ptr_both', 'review_evidence_opened', reviewId))));
    t.equal(opened.filter((result) => result !== undefined && 'review' in result).length, 1);
    await Promise.all(Array.from({ length: 20 }, (_, i) => of(i).meter([{ partnerId: 'ptr_both', operation: 'list_proofs', count: 1 }], NOW)));
    await Promise.all(pair.map(async (stores) => stores.foldUsage(usageOf(await takeWaiting(stores), 'ptr_both'))));
    t.strictSame(await of(0).getDailyUsage('ptr_both', '2026-03-31', '2026-03-31'), [{ day: '2026-03-31', operations: { list_proofs: 20 } }]);
    const erased = await Promise.all(Array.from({ length: 40 }, (_, i) => of(i).eraseProof(proof.proofId, 'ptr_both', NOW + i, audit('ptr_both', 'proof_erased', proof.proofId))));
    t.equal(erased.filter((each) => each !== 'not_found' && each.outcome === 'erased').length, 1);
    t.equal(await of(1).getReview('ptr_both', reviewId, NOW), undefined);

    const entries = await auditOf({ stores: of(0) }, 'ptr_both');
    t.strictSame(entries.map(({ action }) => action), ['proof_issued', 'review_created', 'review_evidence_opened', 'proof_erased']);
    const walk = new AuditWalk([KEY], undefined);
    for (const entry of entries) walk.take(entry);
    t.ok(walk.end().ok);
    await withClient(async (client) => {
      for (const [table, column, value] of [['review', 'review_id', reviewId], ['review_place', 'proof_id', proof.proofId], ['review_by_proof', 'proof_id', proof.proofId], ['issuing_replay', 'replay_key', 'two']] as const) {
        t.strictSame((await client.execute(`SELECT * FROM ${table} WHERE ${column} = '${value}'`)).rows, [], `nothing left in ${table}`);
      }
    }, connection.keyspace);
  });
}

/** Stops a store's writes right behind a decision, as a kill would, and lets the sweep of another one come along minutes later. */
async function abandonedIntents(t: Test): Promise<void> {
  // Apart from the rest, whose leavings it would find as well.
  const keyspace = `${connection.keyspace}_crash`;
  await migrate({ ...connection, keyspace });
  t.teardown(() => withClient((client) => client.execute(`DROP KEYSPACE IF EXISTS ${keyspace}`)));
  const other = await openStore({ keyspace });
  t.teardown(() => other.close());
  const realNow = Date.now;
  t.teardown(() => {
    Date.now = realNow;
  });
  const partnerId = 'ptr_crash';
  const proof = issuedProof('prf_crash', partnerId);
  const key = partnerKey('key_crash', partnerId);
  const next = partnerKey('key_crash-next', partnerId);
  const review = reviewCase('rev_crash', partnerId, proof.proofId);
  const steps: readonly [string, (stores: Stores) => Promise<unknown>][] = [
    ['INSERT INTO partner', (stores) => stores.createPartner(partner(partnerId), audit(partnerId, 'partner_created', partnerId))],
    ['INSERT INTO api_key', (stores) => stores.createKey(key, audit(partnerId, 'key_created', key.keyId))],
    ['UPDATE api_key SET expires_at', (stores) => stores.rotateKey(rotation(key, next.keyId, 1), next, audit(partnerId, 'key_rotated', key.keyId))],
    ['UPDATE api_key SET revoked_at', (stores) => stores.revokeKey(partnerId, key.keyId, NOW, audit(partnerId, 'key_revoked', key.keyId))],
    ["UPDATE proof SET state = 'issued'", (stores) => stores.issueProof(proof, audit(partnerId, 'proof_issued', proof.proofId), issuingReplay('crash', proof.proofId))],
    ['INSERT INTO review_place', (stores) => stores.createReview(review, audit(partnerId, 'review_created', review.reviewId))],
    ['UPDATE review USING', (stores) => stores.changeReview(partnerId, review.reviewId, NOW, (now) => resolveReview(now, 'accepted', NOW), audit(partnerId, 'review_resolved', review.reviewId))],
    ["UPDATE proof SET state = 'erased'", (stores) => stores.eraseProof(proof.proofId, partnerId, NOW, audit(partnerId, 'proof_erased', proof.proofId))],
  ];
  await other.reserveProof(proof.proofId, partnerId, NOW);
  const told: ServiceEvent[] = [];
  for (const [i, [decision, call]] of steps.entries()) {
    const doomed = await openStore({ keyspace });
    let decided = false;
    await intercepted(
      (sent) => {
        // As a defect of the program, so that nobody waits for the world to recover.
        if (decided) throw new TypeError('killed');
        decided = sent.some(({ query }) => query.startsWith(decision));
      },
      () => t.rejects(call(doomed), decision),
    );
    await doomed.close();
    t.ok(decided, decision);
    t.equal((await auditOf({ stores: other }, partnerId)).length, i, 'the entry is still missing');
    if (i === 4) {
      t.strictSame(await other.listProofs(partnerId, { limit: 5 }), [], 'the lists do not have it yet');
      t.match(await other.getIssuingReplay(issuingReplay('crash', proof.proofId).key, NOW), { proofId: proof.proofId });
      t.strictSame(await other.listProofs(partnerId, { limit: 5 }), [proof], 'but they do as soon as a repetition was answered');
    }
    Date.now = () => realNow() + (i + 1) * 180_000;
    await other.sweepExpired(NOW, 100);
    t.equal((await auditOf({ stores: other }, partnerId)).length, i + 1, 'and was made up for');
    // Twice, as its timer would: what waits is not found again.
    await other.sweepExpired(NOW, 100);
    const waiting = (await other.waitingEvents(100)).map(({ event }) => event);
    t.strictSame(waiting.slice(told.length), i === 5 ? [reviewCreated(review)] : i === 7 ? [proofErased({ proofId: proof.proofId, partnerId, erasedAt: NOW })] : []);
    told.push(...waiting.slice(told.length));
    if (i === 4) t.strictSame((await other.listProofs(partnerId, { limit: 5 })), [proof]);
    if (i === 5) t.strictSame(await other.getReview(partnerId, review.reviewId, NOW), review);
  }
  await takeWaiting(other);
  Date.now = () => realNow() + 3_600_000;
  await other.sweepExpired(NOW, 100);
  t.strictSame(await other.waitingEvents(10), [], 'what was published is gone for good');
  t.strictSame(
    (await auditOf({ stores: other }, partnerId)).map(({ action }) => action),
    ['partner_created', 'key_created', 'key_rotated', 'key_revoked', 'proof_issued', 'review_created', 'review_resolved', 'proof_erased'],
    'each once',
  );
  t.strictSame((await other.listKeys(partnerId)).map(({ keyId }) => keyId), [key.keyId, next.keyId]);
  t.equal((await other.getProof(proof.proofId))?.state, 'erased');
  t.equal(await other.getReview(partnerId, review.reviewId, NOW), undefined);
  t.strictSame(await other.listProofs(partnerId, { limit: 5 }), []);
  t.equal(await other.getIssuingReplay('crash', NOW), undefined);
}
