/**
 * The store contract on real servers, and what only this store has.
 *
 * Two of the tests (`reviewExpires` and `rowsBesideExpire`) hold that every row of a review expires, and then
 * test themselves. They collect each statement with a `USING TTL` clause that the store sends. They run the
 * same calls again with the TTL of one such statement set to 0, which means none, on its way to the driver,
 * and demand that the check now fails. So a check that no longer sees a column is found. A statement that is
 * written without a TTL is not collected; its column then has no end, and fails the check itself.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { Client } from 'cassandra-driver';
import t, { type Test } from 'tap';
import { authenticateRows } from '../../src/adapters/cassandra/authenticate-rows.js';
import { type MigrationOptions, migrate } from '../../src/adapters/cassandra/driver/migrations.js';
import { openCassandraStore } from '../../src/adapters/cassandra/store.js';
import { type AuditAction, AuditWalk } from '../../src/domain/audit.js';
import { proofErased, reviewCreated, type ServiceEvent } from '../../src/domain/events.js';
import type { IssuedProof } from '../../src/domain/proof.js';
import {
  EVIDENCE_KINDS,
  openEvidence,
  REVIEW_LIFE_SECONDS,
  type ReviewCase,
  resolveReview,
  stepEvidence,
} from '../../src/domain/review.js';
import type { Stores } from '../../src/ports/stores.js';
import { again } from '../fixtures/again.js';
import { authenticator, formerRecord } from '../fixtures/authentication.js';
import { auditOf } from '../store-contract/audit-contract.js';
import { takeWaiting, usageOf } from '../store-contract/outbox-contract.js';
import {
  audit,
  issuedProof,
  issuingReplay,
  NOW,
  partner,
  partnerKey,
  reviewCase,
  rotation,
  usageCharge,
} from '../store-contract/samples.js';
import { type OpenedStore, type OpenOptions, storeContract } from '../store-contract/suite.js';
import {
  ADDRESSES,
  connection,
  dropKeyspace,
  intercepted,
  KEY,
  memoryHeads,
  openStore,
  patient,
  type Sent,
  withClient,
} from './cassandra-under-test.js';

const {
  TAKEMARK_SECURE_CASSANDRA: SECURE,
  TAKEMARK_SECURE_USER: username = '',
  TAKEMARK_SECURE_PASSWORD: password = '',
  TAKEMARK_SECURE_CA: authority = '',
} = process.env;

async function open(options: OpenOptions = {}): Promise<OpenedStore> {
  const audit = { key: KEY, heads: memoryHeads() };
  const stores = patient(await openCassandraStore({ ...connection, authenticator, audit, ...options }));
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
  void t.test(
    'the Cassandra store',
    { skip: 'TAKEMARK_CASSANDRA is not set: npm run services:up starts a server and prints it' },
    () => undefined,
  );
} else {
  void t.test('two migrations at once apply each step once, and a third applies none', async (t) => {
    await t.rejects(
      openCassandraStore({ ...connection, authenticator, audit: { key: KEY, heads: memoryHeads() } }),
      { name: 'CassandraOpenError' },
      'a keyspace that is not there',
    );
    const runs = await Promise.all([migrate(connection), migrate(connection)]);
    t.strictSame(
      runs.flat().toSorted(),
      [
        '001-initial.cql',
        '002-events.cql',
        '003-notices.cql',
        '004-rotation-replay.cql',
        '005-review-counts.cql',
        '006-key-signatures.cql',
        '007-row-codes.cql',
        '008-evidence.cql',
      ],
      'each by one of them',
    );
    t.strictSame(await migrate(connection), []);
  });
  void t.test('a migration has one owner, until it is silent for too long', oneOwner);
  storeContract(t, 'the Cassandra store', open);
  void t.test(
    'of a key only the material of a successor’s secret expires, after a day and an hour',
    replayEnds,
  );
  void t.test('rows that somebody else edited are refused', editedRows);
  void t.test('rows of a version that made no codes are given theirs', formerRows);
  void t.test('every part of a review expires with it', reviewExpires);
  void t.test('every row beside a review expires', rowsBesideExpire);
  void t.test('two processes at once decide as one', twoStores);
  void t.test('a statement that a server carries out late changes nothing', lateDecisions);
  void t.test('lists and erasures work where one read would pass over too many removed rows', muchRemoved);
  void t.test('what a crash leaves half done is finished by another process', abandonedIntents);
  t.teardown(() => dropKeyspace(connection.keyspace));
}

if (SECURE === undefined || SECURE === '') {
  void t.test(
    'a server that demands a password and TLS',
    { skip: 'TAKEMARK_SECURE_CASSANDRA is not set: npm run services:up -- --secure starts one' },
    () => undefined,
  );
} else {
  void t.test(
    'a server that demands a password and TLS is served with both and refused without',
    async (t) => {
      const secure: MigrationOptions = {
        ...connection,
        contactPoints: SECURE.split(','),
        credentials: { username, password },
        tls: { authority },
      };
      const openSecure = (over: Partial<MigrationOptions>) =>
        openCassandraStore({ ...secure, ...over, authenticator, audit: { key: KEY, heads: memoryHeads() } });
      await again(() => migrate(secure));
      const stores = await again(() => openSecure({}));
      t.teardown(() => stores.close());
      await t.resolves(stores.ping());
      await t.rejects(
        openSecure({ credentials: { username, password: `${password}x` } }),
        { name: 'CassandraOpenError' },
        'another password',
      );
      const { credentials: _, ...nobody } = secure;
      await t.rejects(
        openCassandraStore({ ...nobody, authenticator, audit: { key: KEY, heads: memoryHeads() } }),
        { name: 'CassandraOpenError' },
        'no password',
      );
      const { tls: __, ...open } = secure;
      await t.rejects(
        openCassandraStore({ ...open, authenticator, audit: { key: KEY, heads: memoryHeads() } }),
        { name: 'CassandraOpenError' },
        'no encryption',
      );
    },
  );
}

/** A migration runs whose statements change nothing where they were run before. */
async function oneOwner(t: Test): Promise<void> {
  await withClient(async (client) => {
    const forget = () => client.execute('DELETE FROM schema_migration WHERE version = 3 IF EXISTS');

    await forget();
    let other: Promise<readonly string[]> | undefined;
    let waits = (): void => undefined;
    const waiting = new Promise<void>((resolve) => (waits = resolve));
    const first = await intercepted(
      async ([sent]) => {
        const { query, params } = sent!;
        if (other !== undefined) return query.startsWith('SELECT version') ? waits() : undefined;
        // As if its first statement came hours after the claim.
        if (query.startsWith('INSERT INTO schema_migration')) params[4] = 0;
        if (query.startsWith('DROP TABLE')) await Promise.race([waiting, (other = migrate(connection))]);
      },
      () => migrate(connection),
    );
    t.strictSame([first, await other], [['003-notices.cql'], []], 'one that is long at it keeps it');

    await forget();
    const defined: string[] = [];
    await intercepted(
      async ([sent]) => {
        if (!/^(DROP|CREATE) TABLE/.test(sent!.query)) return;
        defined.push(sent!.query);
        await client.execute(
          "UPDATE schema_migration SET owner = 'another', claimed_at = 0 WHERE version = 3 IF state = 'running'",
        );
      },
      () => t.rejects(migrate(connection), { name: 'CassandraOpenError', message: /was taken over/ }),
    );
    t.notOk(
      defined.some((query) => query.startsWith('CREATE')),
      'one that was taken over stops',
    );

    let attempts = 0;
    const taker = await intercepted(
      async ([sent]) => {
        if (!sent!.query.startsWith('UPDATE schema_migration SET owner = ?')) return;
        attempts += 1;
        if (attempts === 1)
          await client.execute(
            "UPDATE schema_migration SET claimed_at = 1 WHERE version = 3 IF owner = 'another'",
          );
      },
      () => migrate(connection),
    );
    t.strictSame(taker, ['003-notices.cql'], 'one that is silent is taken over');
    t.ok(attempts > 1, 'but not while it speaks');
  }, connection.keyspace);
}

type Lives = readonly (number | null)[];

/** Remaining lives, in seconds, of all columns that are set in a partition; null where one has no end. */
async function livesOf(client: Client, table: string, key: string, value: string): Promise<Lives> {
  const described = await client.execute(
    'SELECT column_name, kind FROM system_schema.columns WHERE keyspace_name = ? AND table_name = ?',
    [connection.keyspace, table],
    { prepare: true },
  );
  const columns = described.rows
    .filter((row) => ['regular', 'static'].includes(String(row['kind'])))
    .map((row) => String(row['column_name']));
  const selected = columns.map((column) => `${column}, TTL(${column}) AS ttl_${column}`).join(', ');
  const { rows } = await client.execute(`SELECT ${selected} FROM ${table} WHERE ${key} = ?`, [value], {
    prepare: true,
  });
  return rows.flatMap((row) =>
    columns.filter((column) => row[column] !== null).map((column) => row[`ttl_${column}`] as number | null),
  );
}

const DAMAGED = { code: 'internal', reason: 'record_damaged' } as const;

/** Writes two of everything, of one partner. */
async function populate(stores: Stores, name: string) {
  const partnerId = `ptr_${name}`;
  const owner = partner(partnerId);
  const keys = ['a', 'b'].map((n) => partnerKey(`key_${name}-${n}`, partnerId));
  const proofs = ['a', 'b', 'c'].map((n) => issuedProof(`prf_${name}-${n}`, partnerId));
  await stores.createPartner(owner, audit(partnerId, 'partner_created', partnerId));
  for (const key of keys) await stores.createKey(key, audit(partnerId, 'key_created', key.keyId));
  for (const proof of proofs) {
    await stores.reserveProof(proof.proofId, partnerId, NOW);
    await stores.issueProof(proof, audit(partnerId, 'proof_issued', proof.proofId));
  }
  await stores.revokeKey(partnerId, keys[1]!.keyId, NOW, audit(partnerId, 'key_revoked', keys[1]!.keyId));
  await stores.eraseProof(
    proofs[1]!.proofId,
    partnerId,
    NOW,
    audit(partnerId, 'proof_erased', proofs[1]!.proofId),
  );
  return {
    partnerId,
    owner,
    live: keys[0]!,
    revoked: keys[1]!,
    issued: proofs[0]!,
    erased: proofs[1]!,
    sound: proofs[2]!,
  };
}

async function editedRows(t: Test): Promise<void> {
  const stores = patient(await openStore());
  t.teardown(() => stores.close());
  const { partnerId, owner, live, revoked, issued, erased, sound } = await populate(stores, 'edited');
  const [{ mac }] = (
    await withClient(
      (client) =>
        client.execute('SELECT mac FROM proof WHERE proof_id = ?', [sound.proofId], { prepare: true }),
      connection.keyspace,
    )
  ).rows as unknown as [{ readonly mac: string }];
  const reads = {
    partner: () => stores.getPartner(partnerId),
    live: () => stores.getKey(live.keyId),
    revoked: () => stores.getKey(revoked.keyId),
    issued: () => stores.getProof(issued.proofId),
    erased: () => stores.getProof(erased.proofId),
  };
  const shard = (
    await withClient(
      (client) =>
        client.execute('SELECT shard FROM partner WHERE partner_id = ? ALLOW FILTERING', [partnerId], {
          prepare: true,
        }),
      connection.keyspace,
    )
  ).first()['shard'] as number;
  const edits: readonly (readonly [
    what: string,
    read: () => Promise<unknown>,
    table: string,
    where: string,
    column: string,
    value: unknown,
  ])[] = [
    [
      'another plan',
      reads.partner,
      'partner',
      `shard = ${shard} AND partner_id = '${partnerId}'`,
      'plan',
      'volume',
    ],
    ['more scopes', reads.live, 'api_key', `key_id = '${live.keyId}'`, 'scopes', ['verify', 'keys', 'erase']],
    ['another owner of a key', reads.live, 'api_key', `key_id = '${live.keyId}'`, 'partner_id', 'ptr_other'],
    [
      'another secret of a key',
      reads.live,
      'api_key',
      `key_id = '${live.keyId}'`,
      'secret_hash',
      'f'.repeat(64),
    ],
    ['a later end', reads.live, 'api_key', `key_id = '${live.keyId}'`, 'expires_at', NOW + 1_000_000],
    ['no revocation', reads.revoked, 'api_key', `key_id = '${revoked.keyId}'`, 'revoked_at', null],
    [
      'another owner of a proof',
      reads.issued,
      'proof',
      `proof_id = '${issued.proofId}'`,
      'partner_id',
      'ptr_other',
    ],
    ['another body', reads.issued, 'proof', `proof_id = '${issued.proofId}'`, 'body', Buffer.from([1, 2, 3])],
    ['no code', reads.issued, 'proof', `proof_id = '${issued.proofId}'`, 'mac', null],
    ['the code of another row', reads.issued, 'proof', `proof_id = '${issued.proofId}'`, 'mac', mac],
    ['no erasure', reads.erased, 'proof', `proof_id = '${erased.proofId}'`, 'state', 'issued'],
    [
      'another time of erasure',
      reads.erased,
      'proof',
      `proof_id = '${erased.proofId}'`,
      'erased_at',
      NOW - 1,
    ],
  ];
  await withClient(async (client) => {
    for (const [what, read, table, where, column, value] of edits) {
      const before = await read();
      const [row] = (await client.execute(`SELECT ${column} FROM ${table} WHERE ${where}`)).rows;
      const put = (to: unknown) =>
        client.execute(`UPDATE ${table} SET ${column} = ? WHERE ${where} IF EXISTS`, [to], { prepare: true });
      await put(value);
      await t.rejects(read(), DAMAGED, what);
      await put(row![column]);
      t.strictSame(await read(), before, `${what}: put back, it is as it was`);
    }
    await client.execute(
      `UPDATE partner SET plan = 'volume' WHERE shard = ${shard} AND partner_id = '${partnerId}' IF EXISTS`,
    );
    await client.execute(`UPDATE api_key SET scopes = ['erase'] WHERE key_id = '${live.keyId}' IF EXISTS`);
    await client.execute(
      `UPDATE proof SET partner_id = 'ptr_other' WHERE proof_id = '${issued.proofId}' IF EXISTS`,
    );
  }, connection.keyspace);
  await t.rejects(stores.listPartners(), DAMAGED, 'a list leaves nothing out in silence');
  await t.rejects(stores.listKeys(partnerId), DAMAGED);
  await t.rejects(stores.listProofs(partnerId, { limit: 10 }), DAMAGED);
  const next = partnerKey('key_edited-next', partnerId);
  await t.rejects(
    stores.rotateKey(rotation(live, next.keyId, 1), next, audit(partnerId, 'key_rotated', live.keyId)),
    DAMAGED,
    'nothing follows from an edited row',
  );
  await t.rejects(
    stores.revokeKey(partnerId, live.keyId, NOW, audit(partnerId, 'key_revoked', live.keyId)),
    DAMAGED,
  );
  await t.rejects(
    stores.eraseProof(issued.proofId, partnerId, NOW, audit(partnerId, 'proof_erased', issued.proofId)),
    DAMAGED,
  );
  t.strictSame(await stores.getProof(sound.proofId), sound, 'other rows are read');
  t.equal(
    (
      (await stores.eraseProof(
        sound.proofId,
        partnerId,
        NOW,
        audit(partnerId, 'proof_erased', sound.proofId),
      )) as { readonly outcome: string }
    ).outcome,
    'erased',
  );
  await withClient(
    (client) =>
      client.execute(
        `UPDATE partner SET plan = '${owner.plan}' WHERE shard = ${shard} AND partner_id = '${partnerId}' IF EXISTS`,
      ),
    connection.keyspace,
  );
}

async function formerRows(t: Test): Promise<void> {
  const stores = await openStore();
  t.teardown(() => stores.close());
  const { partnerId, owner, live, revoked, issued, erased } = await populate(stores, 'former');
  await withClient(async (client) => {
    const { rows } = await client.execute('SELECT shard, partner_id FROM partner');
    for (const row of rows)
      if (row['partner_id'] === partnerId)
        await client.execute(
          'UPDATE partner SET mac = null WHERE shard = ? AND partner_id = ? IF EXISTS',
          [row['shard'], partnerId],
          { prepare: true },
        );
    for (const { keyId } of [live, revoked])
      await client.execute('UPDATE api_key SET mac = null WHERE key_id = ? IF EXISTS', [keyId], {
        prepare: true,
      });
    await client.execute('UPDATE proof SET mac = null WHERE proof_id = ? IF EXISTS', [erased.proofId], {
      prepare: true,
    });
    await client.execute(
      'UPDATE proof SET mac = null, body = ? WHERE proof_id = ? IF EXISTS',
      [Buffer.from(formerRecord(`proof/${issued.proofId}`, issued)), issued.proofId],
      { prepare: true },
    );
  }, connection.keyspace);
  const lenient = await openStore({ acceptUnauthenticated: true });
  t.teardown(() => lenient.close());
  const seen = async (reader: Stores) => [
    await reader.getPartner(partnerId),
    await reader.getKey(live.keyId),
    await reader.getKey(revoked.keyId),
    await reader.getProof(issued.proofId),
    await reader.getProof(erased.proofId),
  ];
  const expected = [
    owner,
    live,
    { ...revoked, revokedAt: NOW },
    issued,
    { state: 'erased', proofId: erased.proofId, partnerId, erasedAt: NOW },
  ];
  t.strictSame(await seen(lenient), expected, 'while a former version is replaced');
  await t.rejects(stores.getKey(live.keyId), DAMAGED);
  await t.rejects(stores.getProof(issued.proofId), DAMAGED);
  const next = partnerKey('key_former-next', partnerId);
  t.ok(
    await lenient.rotateKey(rotation(live, next.keyId, 1), next, audit(partnerId, 'key_rotated', live.keyId)),
    'a change gives a row its code',
  );
  t.ok(await stores.getKey(live.keyId));
  const { authenticated } = await authenticateRows(connection, authenticator);
  t.ok(authenticated >= 4, `${authenticated} rows`);
  expected[1] = (await lenient.getKey(live.keyId))!;
  t.strictSame(await seen(stores), expected, 'all of them have their codes');
  t.strictSame((await authenticateRows(connection, authenticator)).authenticated, 0);
}

async function replayEnds(t: Test): Promise<void> {
  const stores = await openStore();
  t.teardown(() => stores.close());
  const partnerId = 'ptr_replay';
  const key = partnerKey('key_replay', partnerId);
  const next = partnerKey('key_replay-next', partnerId);
  const rotated = rotation(key, next.keyId, 1);
  await stores.createKey(key, audit(partnerId, 'key_created', key.keyId));
  await stores.rotateKey(rotated, next, audit(partnerId, 'key_rotated', key.keyId));
  const lives = () =>
    withClient((client) => livesOf(client, 'api_key', 'key_id', key.keyId), connection.keyspace);
  const limited = (await lives()).filter((life) => life !== null);
  t.equal(limited.length, 1);
  t.ok(limited[0]! <= 25 * 3600 && limited[0]! > 24 * 3600, `${limited[0]} s`);
  await stores.revokeKey(partnerId, key.keyId, NOW, audit(partnerId, 'key_revoked', key.keyId));
  t.equal(
    (await lives()).filter((life) => life !== null).length,
    1,
    'a later write of the row does not make it permanent',
  );
  t.strictSame(await stores.getRotation(key.keyId), rotated);
  await withClient(
    (client) =>
      client.execute('DELETE rotation_replay FROM api_key WHERE key_id = ? IF EXISTS', [key.keyId], {
        prepare: true,
      }),
    connection.keyspace,
  );
  const { replay: _, ...left } = rotated;
  t.strictSame(await stores.getRotation(key.keyId), left, 'the rotation itself stays');
}

/**
 * A review to which everything has happened that can, at the server's own time.
 * @param took receives how many milliseconds each change took
 */
async function liveReview(stores: Stores, name: string, took: number[] = []): Promise<ReviewCase> {
  const proof = issuedProof(`prf_${name}`, 'ptr_ttl');
  await stores.reserveProof(proof.proofId, proof.partnerId, NOW);
  await stores.issueProof(proof, audit(proof.partnerId, 'proof_issued', proof.proofId));
  const now = () => Math.floor(Date.now() / 1000);
  const createdAt = now();
  const review = reviewCase(`rev_${name}`, 'ptr_ttl', proof.proofId, {
    createdAt,
    expiresAt: createdAt + REVIEW_LIFE_SECONDS,
  });
  await stores.createReview(review, audit('ptr_ttl', 'review_created', review.reviewId));
  // A pause, so that a life shows that is counted from the write and not from the creation.
  await new Promise((resolve) => setTimeout(resolve, 2500));
  const change = async (rule: Parameters<Stores['changeReview']>[3], at = now()) => {
    const began = performance.now();
    await stores.changeReview(
      'ptr_ttl',
      review.reviewId,
      at,
      rule,
      audit('ptr_ttl', 'review_resolved', review.reviewId),
    );
    took.push(performance.now() - began);
  };
  for (const kind of EVIDENCE_KINDS) {
    await change((current) => openEvidence(current, kind, `req_${kind}`, now()));
    await change((current) => stepEvidence(current, `req_${kind}`, 'supply', `ref/${kind}`, now()));
    await change((current) => stepEvidence(current, `req_${kind}`, 'accept', undefined, now()));
  }
  await change((current) => resolveReview(current, 'held', now()));
  // A change of a process whose clock is ahead.
  await change((current) => resolveReview(current, 'accepted', now()), now() + 30);
  return review;
}

/**
 * A review whose changes were all quick, at the latest the twentieth: the seconds for which a server lets a
 * change wait are added to the life that the change is given.
 */
async function quickReview(stores: Stores): Promise<ReviewCase> {
  for (let attempt = 1; ; attempt += 1) {
    const took: number[] = [];
    const review = await liveReview(stores, `whole-${attempt}`, took);
    if (attempt === 20 || Math.max(...took) < 500) return review;
  }
}

function endTogether(lives: Lives): boolean {
  const numbers = lives.filter((life) => life !== null);
  return numbers.length === lives.length && Math.max(...numbers) - Math.min(...numbers) <= 2;
}

async function reviewExpires(t: Test): Promise<void> {
  const stores = await openStore();
  t.teardown(() => stores.close());
  await withClient(async (client) => {
    const review = await quickReview(stores);
    const lives = await livesOf(client, 'review', 'review_id', review.reviewId);
    t.ok(lives.length > 40, `${lives.length} columns`);
    t.ok(
      endTogether(lives),
      `${Math.min(...lives.map(Number))} to ${Math.max(...lives.map(Number))} seconds`,
    );
    t.ok(Math.abs(Number(lives[0]) - REVIEW_SECONDS) <= 60);

    // `USING TTL 0` is the same as none: each such clause of the review table is taken away in its turn.
    const seen = await timedStatements(OF_REVIEW, () => liveReview(stores, 'seen'));
    t.equal(seen.size, 4, [...seen].join('\n'));
    for (const [i, query] of [...seen].entries()) {
      const broken = await withoutTtl(query, () => liveReview(stores, `broken-${i}`));
      t.notOk(
        endTogether(await livesOf(client, 'review', 'review_id', broken.reviewId)),
        `found without the TTL of: ${query.slice(0, 60)}`,
      );
    }
  }, connection.keyspace);
}

/** Life of a review and of the rows beside it. */
const REVIEW_SECONDS = REVIEW_LIFE_SECONDS + 3600;
const OF_REVIEW = /^(UPDATE|INSERT INTO) review\b(?!_).*USING TTL \?/;
const BESIDE =
  /^(UPDATE|INSERT INTO) (review_place|review_by_proof|review_by_partner|issuing_replay)\b.*USING TTL \?|^UPDATE review USING TTL \? SET create_op/;

async function timedStatements(which: RegExp, work: () => Promise<unknown>): Promise<Set<string>> {
  const seen = new Set<string>();
  await intercepted(
    (sent) => sent.filter(({ query }) => which.test(query)).forEach(({ query }) => seen.add(query)),
    work,
  );
  return seen;
}

/**
 * Runs the work with another TTL in the statement. @param change the TTL that replaces the one that is sent
 */
function withTtl<Value>(
  query: string,
  change: (ttl: number) => number,
  work: () => Promise<Value>,
): Promise<Value> {
  const position = query.slice(0, query.indexOf('USING TTL ?')).split('?').length - 1;
  return intercepted((sent) => {
    for (const { query: sentQuery, params } of sent)
      if (sentQuery === query) params[position] = change(params[position] as number);
  }, work);
}

function withoutTtl<Value>(query: string, work: () => Promise<Value>): Promise<Value> {
  return withTtl(query, () => 0, work);
}

/** Calls of one partner about one proof, at the time of the samples. */
function callsOf(stores: Stores, proofId: string) {
  const audited = (action: AuditAction, subject: string) => audit('ptr_ttl', action, subject);
  return {
    issue: async (key: string) => {
      await stores.reserveProof(proofId, 'ptr_ttl', NOW);
      await stores.issueProof(
        issuedProof(proofId, 'ptr_ttl'),
        audited('proof_issued', proofId),
        issuingReplay(key, proofId),
      );
    },
    create: (reviewId: string) =>
      stores.createReview(reviewCase(reviewId, 'ptr_ttl', proofId), audited('review_created', reviewId)),
    accept: (reviewId: string) =>
      stores.changeReview(
        'ptr_ttl',
        reviewId,
        NOW,
        (now) => resolveReview(now, 'accepted', NOW),
        audited('review_resolved', reviewId),
      ),
    erase: async () => {
      await stores.eraseProof(proofId, 'ptr_ttl', NOW, audited('proof_erased', proofId));
      await stores.confirmErasure(proofId, NOW);
    },
  };
}

/**
 * Lives of an idempotency record, of a uniqueness row and of a removed review, each read as soon as it was
 * written, with the longest that is right.
 */
async function leavings(
  stores: Stores,
  client: Client,
  name: string,
): Promise<readonly (readonly [most: number, lives: Lives])[]> {
  const [first, second] = [callsOf(stores, `prf_${name}-1`), callsOf(stores, `prf_${name}-2`)];
  const key = async () =>
    [86_400 + 3600, await livesOf(client, 'issuing_replay', 'replay_key', name)] as const;
  const uniquenessRow = async () =>
    [REVIEW_SECONDS, await livesOf(client, 'review_place', 'proof_id', `prf_${name}-2`)] as const;
  await first.issue(name);
  const found = [await key()];
  await first.erase();
  await second.issue(name);
  found.push(await key());
  await second.create(`rev_${name}-1`);
  found.push(await uniquenessRow());
  await second.accept(`rev_${name}-1`);
  await second.create(`rev_${name}-2`);
  found.push(await uniquenessRow());
  await second.erase();
  return [...found, [3600, await livesOf(client, 'review', 'review_id', `rev_${name}-2`)]];
}

async function rowsBesideExpire(t: Test): Promise<void> {
  const stores = await openStore();
  t.teardown(() => stores.close());
  await withClient(async (client) => {
    const seen = await timedStatements(BESIDE, async () => {
      for (const [most, lives] of await leavings(stores, client, 'left')) {
        t.ok(
          lives.length > 0 && lives.every((life) => life !== null && life <= most && life > most - 600),
          `${lives.map(String).join(', ')} of ${most} seconds`,
        );
      }
    });
    t.equal(seen.size, 7, [...seen].join('\n'));
    const indexes = [...seen].filter((query) => query.startsWith('INSERT INTO review_by'));
    for (const index of indexes) seen.delete(index);
    for (const [i, query] of [...seen].entries()) {
      const broken = await withoutTtl(query, () => leavings(stores, client, `left-${i}`));
      t.ok(
        broken.some(([, lives]) => lives.includes(null)),
        `found without the TTL of: ${query.slice(0, 60)}`,
      );
    }

    // An index entry is nothing but its key, and no server shows the TTL of a key. So an entry that should
    // last as long as a review gets a second, and an entry without a TTL, written before it, shows that the
    // wait would find one.
    const entryOf = async (index: string, name: string, ttl: (given: number) => number) => {
      const calls = callsOf(stores, `prf_${name}`);
      await calls.issue(name);
      await withTtl(index, ttl, () => calls.create(`rev_${name}`));
      const table = index.split(' ')[2]!;
      return async () =>
        (
          await client.execute(
            `SELECT review_id FROM ${table} WHERE ${table === 'review_by_proof' ? '' : "partner_id = 'ptr_ttl' AND "}proof_id = ?`,
            [`prf_${name}`],
            { prepare: true },
          )
        ).rows.length;
    };
    for (const [i, index] of indexes.entries()) {
      const withoutEnd = await entryOf(index, `left-for-good-${i}`, () => 0);
      const entry = await entryOf(index, `left-for-a-second-${i}`, (given) =>
        Math.abs(given - REVIEW_SECONDS) < 600 ? 1 : 0,
      );
      for (const limit = Date.now() + 60_000; (await entry()) > 0 && Date.now() < limit; ) await delay(200);
      t.equal(await entry(), 0, 'an entry of the index ends');
      t.equal(await withoutEnd(), 1, 'found without its TTL');
    }
  }, connection.keyspace);
}

/** Columns that are set beside the key, but for the operation id of what was removed. */
async function leftOf(client: Client, table: string, key: string, value: string): Promise<readonly string[]> {
  const { rows } = await client.execute(`SELECT * FROM ${table} WHERE ${key} = ?`, [value], {
    prepare: true,
  });
  return rows.flatMap((row) =>
    row.keys().filter((column) => row[column] !== null && ![key, 'op', 'create_op'].includes(column)),
  );
}

async function twoStores(t: Test): Promise<void> {
  const pair = [await openStore(), await openStore()] as const;
  t.teardown(() => Promise.all(pair.map((stores) => stores.close())));
  const storeOf = (i: number) => pair[i % 2]!;

  await t.test('of 100 rotations of one key across both, one holds', async (t) => {
    const key = partnerKey('key_two', 'ptr_two');
    await storeOf(0).createKey(key, audit('ptr_two', 'key_created', key.keyId));
    const results = await Promise.all(
      Array.from({ length: 100 }, (_, i) =>
        storeOf(i).rotateKey(
          rotation(key, `key_two-${i}`, i),
          partnerKey(`key_two-${i}`, 'ptr_two'),
          audit('ptr_two', 'key_rotated', key.keyId),
        ),
      ),
    );
    for (const result of results) t.strictSame(result, results[0]);
    t.equal((await storeOf(0).listKeys('ptr_two')).length, 2);
    t.strictSame(
      (await auditOf({ stores: storeOf(1) }, 'ptr_two')).map(({ action }) => action),
      ['key_created', 'key_rotated'],
    );
  });

  await t.test('of 300 charges of a quota of 100 across both, 100 are charged', async (t) => {
    const results = await Promise.all(
      Array.from({ length: 300 }, (_, i) =>
        storeOf(i).charge(usageCharge('ptr_quota', `call-${Math.floor(i / 2)}`, { monthlyQuota: 100 })),
      ),
    );
    const charged = results.filter(({ outcome }) => outcome === 'charged');
    t.strictSame(
      charged.map(({ used }) => used).sort((a, b) => a - b),
      Array.from({ length: 100 }, (_, i) => i + 1),
    );
    t.equal(await storeOf(0).getUsed('ptr_quota', NOW), 100);
    t.strictSame(await storeOf(1).getDailyUsage('ptr_quota', '2026-03-31', '2026-03-31'), [
      { day: '2026-03-31', operations: { verify: 100 } },
    ]);
  });

  await t.test('issuing, reviews, erasure and free calls happen once across both', async (t) => {
    const proofs = Array.from({ length: 20 }, (_, i) => issuedProof(`prf_two-${i}`, 'ptr_both'));
    await Promise.all(proofs.map((proof, i) => storeOf(i).reserveProof(proof.proofId, proof.partnerId, NOW)));
    const issued = await Promise.all(
      proofs.map((proof, i) =>
        storeOf(i).issueProof(
          proof,
          audit('ptr_both', 'proof_issued', proof.proofId),
          issuingReplay('two', proof.proofId),
        ),
      ),
    );
    t.equal(issued.filter((outcome) => outcome === 'issued').length, 1);
    const proof = proofs[issued.indexOf('issued')]!;
    const reviews = await Promise.all(
      Array.from({ length: 40 }, (_, i) =>
        storeOf(i).createReview(
          reviewCase(`rev_two-${i}`, 'ptr_both', proof.proofId),
          audit('ptr_both', 'review_created', `rev_two-${i}`),
        ),
      ),
    );
    t.equal(reviews.filter(({ outcome }) => outcome === 'created').length, 1);
    const reviewId = `rev_two-${reviews.findIndex(({ outcome }) => outcome === 'created')}`;
    const opened = await Promise.all(
      Array.from({ length: 100 }, (_, i) =>
        storeOf(i).changeReview(
          'ptr_both',
          reviewId,
          NOW,
          (now) => openEvidence(now, 'source_licence', `req_${i}`, NOW),
          audit('ptr_both', 'review_evidence_opened', reviewId),
        ),
      ),
    );
    t.equal(opened.filter((result) => result !== undefined && 'review' in result).length, 1);
    await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        storeOf(i).meter([{ partnerId: 'ptr_both', operation: 'list_proofs', count: 1 }], NOW),
      ),
    );
    await Promise.all(
      pair.map(async (stores) => stores.aggregateUsage(usageOf(await takeWaiting(stores), 'ptr_both'))),
    );
    t.strictSame(await storeOf(0).getDailyUsage('ptr_both', '2026-03-31', '2026-03-31'), [
      { day: '2026-03-31', operations: { list_proofs: 20 } },
    ]);
    const erased = await Promise.all(
      Array.from({ length: 40 }, (_, i) =>
        storeOf(i).eraseProof(
          proof.proofId,
          'ptr_both',
          NOW + i,
          audit('ptr_both', 'proof_erased', proof.proofId),
        ),
      ),
    );
    t.equal(erased.filter((result) => result !== 'not_found' && result.outcome === 'erased').length, 1);
    t.equal(await storeOf(1).getReview('ptr_both', reviewId, NOW), undefined);
    const confirmed = await Promise.all(
      [0, 1].map((i) => storeOf(i).confirmErasure(proof.proofId, NOW + 50)),
    );
    t.strictSame(confirmed.toSorted(), ['already_confirmed', 'confirmed']);

    const entries = await auditOf({ stores: storeOf(0) }, 'ptr_both');
    t.strictSame(
      entries.map(({ action }) => action),
      ['proof_issued', 'review_created', 'review_evidence_opened', 'proof_erased'],
    );
    const walk = new AuditWalk([KEY], undefined);
    for (const entry of entries) walk.take(entry);
    t.ok(walk.end().ok);
    await withClient(async (client) => {
      for (const [table, column, value] of [
        ['review', 'review_id', reviewId],
        ['review_place', 'proof_id', proof.proofId],
        ['review_by_proof', 'proof_id', proof.proofId],
        ['issuing_replay', 'replay_key', 'two'],
      ] as const) {
        t.strictSame(await leftOf(client, table, column, value), [], `nothing left in ${table}`);
      }
    }, connection.keyspace);
  });
}

/**
 * A node that hung responds to nobody, and carries out its statements when it comes back. By then another
 * node has carried them out, and their rows were removed.
 */
async function lateDecisions(t: Test): Promise<void> {
  const stores = await openStore();
  t.teardown(() => stores.close());
  const partnerId = 'ptr_late';
  const held: Sent[] = [];
  const withheld = (decision: string, work: () => Promise<unknown>) => {
    let once = false;
    return intercepted(([sent]) => {
      if (once || !sent!.query.startsWith(decision)) return;
      once = true;
      held.push(sent!);
      throw new Error('no answer');
    }, work);
  };
  const carryOut = (sent: readonly Sent[] = held.splice(0)) =>
    withClient(async (client) => {
      for (const { query, params } of sent) await client.execute(query, params, { prepare: true });
    }, connection.keyspace);
  const issueLate = async (name: string, claim: string) => {
    const proof = issuedProof(`prf_${name}`, partnerId);
    await stores.reserveProof(proof.proofId, partnerId, NOW);
    await withheld(claim, () =>
      stores.issueProof(
        proof,
        audit(partnerId, 'proof_issued', proof.proofId),
        issuingReplay('late', proof.proofId),
      ),
    );
    t.match(await stores.getIssuingReplay('late', NOW), { proofId: proof.proofId });
    return proof;
  };
  const eraseProof = async ({ proofId }: IssuedProof) => {
    t.match(await stores.eraseProof(proofId, partnerId, NOW, audit(partnerId, 'proof_erased', proofId)), {
      outcome: 'erased',
    });
    t.equal(await stores.confirmErasure(proofId, NOW), 'confirmed');
  };
  const named = () =>
    withClient(async (client) => {
      const names: string[] = [];
      for (const table of [
        'issuing_replay',
        'review',
        'review_place',
        'review_by_proof',
        'review_by_partner',
      ]) {
        for (const row of (await client.execute(`SELECT proof_id FROM ${table}`)).rows)
          if (String(row['proof_id']).startsWith('prf_late')) names.push(`${table}: ${row['proof_id']}`);
      }
      return names;
    }, connection.keyspace);

  const first = await issueLate('late-1', 'INSERT INTO issuing_replay');
  const review = reviewCase('rev_late', partnerId, first.proofId);
  const create = () => stores.createReview(review, audit(partnerId, 'review_created', review.reviewId));
  await withheld('INSERT INTO review_place', () => withheld('UPDATE review USING', create));
  t.strictSame(await stores.getReview(partnerId, review.reviewId, NOW), review);
  t.equal(held.length, 3);
  await stores.changeReview(
    partnerId,
    review.reviewId,
    NOW,
    (now) => resolveReview(now, 'accepted', NOW),
    audit(partnerId, 'review_resolved', review.reviewId),
  );
  await carryOut(held.filter(({ query }) => query.startsWith('INSERT INTO review_place')));
  const uniquenessRows = await withClient(
    (client) => client.execute(`SELECT review_id FROM review_place WHERE proof_id = '${first.proofId}'`),
    connection.keyspace,
  );
  t.strictSame(
    uniquenessRows.rows.map((row) => row['review_id'] as unknown),
    [null],
    'a uniqueness row that was released stays so',
  );
  t.match(
    await stores.createReview(
      reviewCase('rev_late-2', partnerId, first.proofId),
      audit(partnerId, 'review_created', 'rev_late-2'),
    ),
    { outcome: 'created' },
    'and can be taken',
  );
  await eraseProof(first);
  await carryOut();
  t.strictSame(await named(), [], 'nothing that was removed comes back');
  t.equal(await stores.getIssuingReplay('late', NOW), undefined);
  t.equal(await stores.getReview(partnerId, review.reviewId, NOW), undefined);

  const second = await issueLate('late-2', 'UPDATE issuing_replay');
  t.equal(held.length, 1, 'its key is free');
  await eraseProof(second);
  await carryOut();
  t.strictSame(await named(), []);
  await issueLate('late-3', 'UPDATE issuing_replay');
  t.equal((await auditOf({ stores }, partnerId)).filter(({ action }) => action === 'proof_issued').length, 3);
}

/**
 * Removed rows, more than the `tombstone_failure_threshold` of the servers that `npm run services:up` starts.
 */
const REMOVED = 6000;

async function muchRemoved(t: Test): Promise<void> {
  const [setting] = await withClient(
    async (client) =>
      (
        await client.execute(
          "SELECT value FROM system_views.settings WHERE name = 'tombstone_failure_threshold'",
        )
      ).rows,
  );
  if (Number(setting?.['value']) >= REMOVED)
    return t.plan(
      0,
      `this server reads over ${String(setting?.['value'])} removed rows; that of npm run services:up over fewer`,
    );
  const stores = await openStore();
  t.teardown(() => stores.close());
  const partnerId = 'ptr_removed';
  const day = Math.floor(NOW / 86_400);
  const early = day * 86_400;
  const proofs = [early, early + 43_000, early + 86_399].map((createdAt, i) =>
    issuedProof(`prf_removed-${i}`, partnerId, { createdAt }),
  );
  for (const proof of proofs) {
    await stores.reserveProof(proof.proofId, partnerId, NOW);
    await stores.issueProof(proof, audit(partnerId, 'proof_issued', proof.proofId));
  }
  const [{ proofId }] = proofs as [IssuedProof, ...IssuedProof[]];
  const review = reviewCase('rev_removed', partnerId, proofId);
  await stores.createReview(review, audit(partnerId, 'review_created', review.reviewId));
  await withClient(async (client) => {
    const both = async (insertion: string, removal: string, params: (i: number) => unknown[]) => {
      for (const query of [insertion, removal]) {
        for (let from = 0; from < REMOVED; from += 100)
          await client.batch(
            Array.from({ length: 100 }, (_, i) => ({ query, params: params(from + i) })),
            { prepare: true, logged: false },
          );
      }
    };
    await both(
      'INSERT INTO proof_by_partner (partner_id, day, created_at, proof_id) VALUES (?, ?, ?, ?)',
      'DELETE FROM proof_by_partner WHERE partner_id = ? AND day = ? AND created_at = ? AND proof_id = ?',
      (i) => [partnerId, day, early + 14 * i, `prf_gone-${i}`],
    );
    await both(
      'INSERT INTO review_place (proof_id, partner_id, bindings) VALUES (?, ?, ?)',
      'DELETE FROM review_place WHERE proof_id = ? AND partner_id = ? AND bindings = ?',
      (i) => [proofId, 'ptr_other', `bindings ${i}`],
    );
    await t.rejects(
      client.execute('SELECT * FROM proof_by_partner WHERE partner_id = ? AND day = ?', [partnerId, day], {
        prepare: true,
      }),
      { name: 'ResponseError' },
      'the server refuses to read it at once',
    );
  }, connection.keyspace);
  const names = async (query: Parameters<Stores['listProofs']>[1]) =>
    (await stores.listProofs(partnerId, query)).map((proof) => proof.proofId);
  t.strictSame(await names({ limit: 5 }), ['prf_removed-2', 'prf_removed-1', 'prf_removed-0']);
  t.strictSame(await names({ limit: 2 }), ['prf_removed-2', 'prf_removed-1']);
  t.strictSame(await names({ limit: 2, before: { createdAt: early + 43_000, proofId: 'prf_removed-1' } }), [
    'prf_removed-0',
  ]);
  t.strictSame(await names({ limit: 5, issuedAfter: early + 1, issuedBefore: early + 86_398 }), [
    'prf_removed-1',
  ]);

  t.match(await stores.eraseProof(proofId, partnerId, NOW, audit(partnerId, 'proof_erased', proofId)), {
    outcome: 'erased',
  });
  t.equal(await stores.confirmErasure(proofId, NOW), 'confirmed');
  await withClient(async (client) => {
    for (const [table, column, value] of [
      ['review', 'review_id', review.reviewId],
      ['review_place', 'proof_id', proofId],
      ['review_by_proof', 'proof_id', proofId],
    ] as const) {
      t.strictSame(await leftOf(client, table, column, value), [], `nothing left in ${table}`);
    }
  }, connection.keyspace);
  t.strictSame(await names({ limit: 5 }), ['prf_removed-2', 'prf_removed-1']);
}

/**
 * Stops a store's writes right behind a decision, as a kill would, and lets the sweep of another one come
 * along minutes later.
 */
async function abandonedIntents(t: Test): Promise<void> {
  // A keyspace of its own: the sweep would find what the other tests leave as well.
  const keyspace = `${connection.keyspace}_crash`;
  await again(() => migrate({ ...connection, keyspace }));
  t.teardown(() => dropKeyspace(keyspace));
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
    [
      'INSERT INTO partner',
      (stores) => stores.createPartner(partner(partnerId), audit(partnerId, 'partner_created', partnerId)),
    ],
    ['INSERT INTO api_key', (stores) => stores.createKey(key, audit(partnerId, 'key_created', key.keyId))],
    [
      'UPDATE api_key SET expires_at',
      (stores) =>
        stores.rotateKey(rotation(key, next.keyId, 1), next, audit(partnerId, 'key_rotated', key.keyId)),
    ],
    [
      'UPDATE api_key SET revoked_at',
      (stores) => stores.revokeKey(partnerId, key.keyId, NOW, audit(partnerId, 'key_revoked', key.keyId)),
    ],
    [
      "UPDATE proof SET state = 'issued'",
      (stores) =>
        stores.issueProof(
          proof,
          audit(partnerId, 'proof_issued', proof.proofId),
          issuingReplay('crash', proof.proofId),
        ),
    ],
    [
      'INSERT INTO review_place',
      (stores) => stores.createReview(review, audit(partnerId, 'review_created', review.reviewId)),
    ],
    [
      'UPDATE review USING',
      (stores) =>
        stores.changeReview(
          partnerId,
          review.reviewId,
          NOW,
          (now) => resolveReview(now, 'accepted', NOW),
          audit(partnerId, 'review_resolved', review.reviewId),
        ),
    ],
    [
      "UPDATE proof SET state = 'erased'",
      (stores) =>
        stores.eraseProof(proof.proofId, partnerId, NOW, audit(partnerId, 'proof_erased', proof.proofId)),
    ],
  ];
  await other.reserveProof(proof.proofId, partnerId, NOW);
  const published: ServiceEvent[] = [];
  for (const [i, [decision, call]] of steps.entries()) {
    const doomed = await openStore({ keyspace });
    let decided = false;
    await intercepted(
      (sent) => {
        // An error like a defect of the program, so that nobody waits for the world to recover.
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
      t.match(await other.getIssuingReplay(issuingReplay('crash', proof.proofId).key, NOW), {
        proofId: proof.proofId,
      });
      t.strictSame(
        await other.listProofs(partnerId, { limit: 5 }),
        [proof],
        'but they do as soon as a repetition was answered',
      );
    }
    Date.now = () => realNow() + (i + 1) * 180_000;
    await other.collectExpired(NOW, 100);
    t.equal((await auditOf({ stores: other }, partnerId)).length, i + 1, 'and was made up for');
    // A second time, as the timer would: an event that waits is not found again.
    await other.collectExpired(NOW, 100);
    const waiting = (await other.waitingEvents(100)).map(({ event }) => event);
    t.strictSame(
      waiting.slice(published.length),
      i === 5
        ? [reviewCreated(review)]
        : i === 7
          ? [proofErased({ proofId: proof.proofId, partnerId, erasedAt: NOW })]
          : [],
    );
    published.push(...waiting.slice(published.length));
    if (i === 4) t.strictSame(await other.listProofs(partnerId, { limit: 5 }), [proof]);
    if (i === 5) t.strictSame(await other.getReview(partnerId, review.reviewId, NOW), review);
  }
  await takeWaiting(other);
  Date.now = () => realNow() + 3_600_000;
  await other.collectExpired(NOW, 100);
  t.strictSame(await other.waitingEvents(10), [], 'what was published is gone for good');
  t.strictSame(
    (await auditOf({ stores: other }, partnerId)).map(({ action }) => action),
    [
      'partner_created',
      'key_created',
      'key_rotated',
      'key_revoked',
      'proof_issued',
      'review_created',
      'review_resolved',
      'proof_erased',
    ],
    'each once',
  );
  t.strictSame(
    (await other.listKeys(partnerId)).map(({ keyId }) => keyId),
    [key.keyId, next.keyId],
  );
  t.equal((await other.getProof(proof.proofId))?.state, 'erased');
  t.equal(await other.getReview(partnerId, review.reviewId, NOW), undefined);
  t.strictSame(await other.listProofs(partnerId, { limit: 5 }), []);
  t.equal(await other.getIssuingReplay('crash', NOW), undefined);
}
