/**
 * The store contract on real servers, and what only this store has.
 *
 * Two of the tests (`reviewExpires` and `rowsBesideExpire`) check that every row of a review expires, and
 * then check themselves. They collect each statement with a `USING TTL` clause that the store sends. Then
 * they repeat the same calls with the TTL of one such statement set to 0, which means none, and demand that
 * the check fails. This detects a check that no longer sees a column. A statement without a TTL is not
 * collected. Its column then has no end, and fails the check itself.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { Client } from 'cassandra-driver';
import t, { type Test } from 'tap';
import { type MigrationOptions, migrate } from '../../src/service/adapters/cassandra/driver/migrations.js';
import { connect } from '../../src/service/adapters/cassandra/driver/session.js';
import { servingProcesses } from '../../src/service/adapters/cassandra/serving-processes.js';
import { openCassandraStore } from '../../src/service/adapters/cassandra/store.js';
import { type AuditAction, AuditWalk } from '../../src/service/domain/audit.js';
import type { IssuedProof } from '../../src/service/domain/proof.js';
import {
  EVIDENCE_KINDS,
  openEvidence,
  REVIEW_LIFE_SECONDS,
  type ReviewCase,
  resolveReview,
  stepEvidence,
} from '../../src/service/domain/review.js';
import type { Stores } from '../../src/service/ports/stores.js';
import { again } from '../fixtures/again.js';
import { authenticator } from '../fixtures/authentication.js';
import { auditOf } from '../store-contract/audit-contract.js';
import { takeWaiting, usageOf } from '../store-contract/outbox-contract.js';
import {
  audit,
  issuedProof,
  issuingReplay,
  NOW,
  nextBatch,
  partner,
  partnerKey,
  reviewCase,
  rotation,
  takeBack,
  uploadFacts,
  uploadSlot,
  usageCharge,
} from '../store-contract/samples.js';
import { type OpenedStore, type OpenOptions, storeContract } from '../store-contract/suite.js';
import {
  ADDRESSES,
  connection,
  dropKeyspace,
  intercepted,
  KEY,
  leftInTheEnd,
  memoryHeads,
  migrated,
  openStore,
  partsOf,
  patient,
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
    refusesCharges: false,
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
    const fresh = { ...connection, keyspace: `${connection.keyspace}_new` };
    t.teardown(() => dropKeyspace(fresh.keyspace));
    await t.rejects(
      openCassandraStore({ ...fresh, authenticator, audit: { key: KEY, heads: memoryHeads() } }),
      { name: 'CassandraOpenError' },
      'a keyspace that is not there',
    );
    const runs = await Promise.all([migrate(fresh), migrate(fresh)]);
    t.strictSame(
      runs.flat().toSorted(),
      [
        '001-initial.cql',
        '002-lease.cql',
        '003-key-revocation.cql',
        '004-digests.cql',
        '005-serving-process.cql',
        '006-audit-request.cql',
      ],
      'each by one of them',
    );
    t.strictSame(await migrate(fresh), []);
  });
  t.before(migrated);
  void t.test('a migration has one owner, until it is silent for too long', oneOwner);
  storeContract(t, 'the Cassandra store', open);
  void t.test(
    'of a key only the material of a successor’s secret expires, after a day and an hour',
    replayEnds,
  );
  void t.test('rows that somebody else edited are refused', editedRows);
  void t.test('every part of a review expires with it', reviewExpires);
  void t.test('every row beside a review expires', rowsBesideExpire);
  void t.test('two processes at once decide as one', twoStores);
  void t.test('processes that serve count each other', processesCounted);
  void t.test(
    'lists, reviews and erasures work where a read would pass over too much that was removed',
    muchRemoved,
  );
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
      const { credentials: _, ...withoutPassword } = secure;
      await t.rejects(
        openCassandraStore({ ...withoutPassword, authenticator, audit: { key: KEY, heads: memoryHeads() } }),
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

/** Runs the migration again. Its statements have no effect the second time. */
async function oneOwner(t: Test): Promise<void> {
  await withClient(async (client) => {
    const forget = () => client.execute('DELETE FROM schema_migration WHERE version = 1 IF EXISTS');

    await forget();
    let other: Promise<readonly string[]> | undefined;
    let waits = (): void => undefined;
    const waiting = new Promise<void>((resolve) => (waits = resolve));
    const first = await intercepted(
      async ([sent]) => {
        const { query, params } = sent!;
        if (other !== undefined) return query.startsWith('SELECT version') ? waits() : undefined;
        // The first statement appears to come hours after the claim.
        if (query.startsWith('INSERT INTO schema_migration')) params[4] = 0;
        if (query.startsWith('CREATE TABLE')) await Promise.race([waiting, (other = migrate(connection))]);
      },
      () => migrate(connection),
    );
    t.strictSame([first, await other], [['001-initial.cql'], []], 'one that is long at it keeps it');

    await forget();
    const defined: string[] = [];
    await intercepted(
      async ([sent]) => {
        if (!sent!.query.startsWith('CREATE TABLE')) return;
        defined.push(sent!.query);
        await client.execute(
          "UPDATE schema_migration SET owner = 'another', claimed_at = 0 WHERE version = 1 IF state = 'running'",
        );
      },
      () => t.rejects(migrate(connection), { name: 'CassandraOpenError', message: /was taken over/ }),
    );
    t.equal(defined.length, 1, 'one that was taken over stops');

    let attempts = 0;
    const taker = await intercepted(
      async ([sent]) => {
        if (!sent!.query.startsWith('UPDATE schema_migration SET owner = ?')) return;
        attempts += 1;
        if (attempts === 1)
          await client.execute(
            "UPDATE schema_migration SET claimed_at = 1 WHERE version = 1 IF owner = 'another'",
          );
      },
      () => migrate(connection),
    );
    t.strictSame(taker, ['001-initial.cql'], 'one that is silent is taken over');
    t.ok(attempts > 1, 'but not while it speaks');
  }, connection.keyspace);
}

type Lives = readonly (number | null)[];

/**
 * Returns the remaining lives of all set columns of a partition, in seconds, or null for a column without an
 * end.
 * @param parts beginning of the names of the parts to read, if the partition has parts
 */
async function livesOf(
  client: Client,
  table: string,
  key: string,
  value: string,
  isMeant?: (part: string) => boolean,
): Promise<Lives> {
  const described = await client.execute(
    'SELECT column_name, kind, type FROM system_schema.columns WHERE keyspace_name = ? AND table_name = ?',
    [connection.keyspace, table],
    { prepare: true },
  );
  // A set has a life for each of its elements, but no expiring column is a set.
  const columns = described.rows
    .filter((row) => row['kind'] === 'regular' && !String(row['type']).startsWith('set<'))
    .map((row) => String(row['column_name']));
  const selected = [
    ...(isMeant === undefined ? [] : ['part']),
    ...columns.map((column) => `${column}, TTL(${column}) AS ttl_${column}`),
  ].join(', ');
  const { rows } = await client.execute(
    `SELECT ${selected} FROM ${table} WHERE ${key} = ? ALLOW FILTERING`,
    [value],
    { prepare: true },
  );
  return rows
    .filter((row) => isMeant === undefined || isMeant(String(row['part'])))
    .flatMap((row) =>
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
  await stores.revokeKey({ partnerId, keyId: keys[1]!.keyId, at: NOW });
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
  const run = (query: string, params: unknown[] = []) =>
    withClient(
      async (client) => (await client.execute(query, params, { prepare: true })).rows,
      connection.keyspace,
    );
  const cell = async (table: string, where: string, column: string): Promise<unknown> =>
    (await run(`SELECT ${column} FROM ${table} WHERE ${where}`))[0]?.[column];
  const head = (proofId: string) => `proof_id = '${proofId}' AND part = ''`;
  const shard = (
    await run('SELECT shard FROM partner WHERE partner_id = ? ALLOW FILTERING', [partnerId])
  )[0]!['shard'];
  const ownRow = `shard = ${shard} AND partner_id = '${partnerId}' AND part = ''`;
  const liveRow = `key_id = '${live.keyId}' AND part = ''`;

  // A proof with evidence, a review of two versions beside another review, and the act of its creation.
  const kept = issuedProof('prf_edited-kept', partnerId);
  await stores.reserveProof(kept.proofId, partnerId, NOW);
  await stores.issueProof(
    kept,
    audit(partnerId, 'proof_issued', kept.proofId),
    issuingReplay('edited', kept.proofId),
    [
      { part: 'facts', body: Buffer.from('facts') },
      { part: 'detail', body: Buffer.from('detail') },
    ],
  );
  const review = reviewCase('rev_edited', partnerId, kept.proofId);
  const other = reviewCase('rev_edited-other', partnerId, kept.proofId, {
    bindings: { ...review.bindings, trackId: 'track_2' },
  });
  const create = (which: ReviewCase) =>
    stores.createReview(which, which.createdAt, audit(partnerId, 'review_created', which.reviewId));
  for (const each of [review, other]) t.match(await create(each), { outcome: 'created' });
  const part = (name: string) => `proof_id = '${kept.proofId}' AND part = '${name}'`;
  const caseRow = part(`case/${review.reviewId}`);
  const formerVersion = await cell('record', caseRow, 'data');
  await stores.changeReview(
    partnerId,
    review.reviewId,
    NOW,
    (now) => openEvidence(now, 'source_licence', 'req_edited', NOW),
    audit(partnerId, 'review_evidence_opened', review.reviewId),
  );
  const parts = await run('SELECT part, act FROM record WHERE proof_id = ?', [kept.proofId]);
  const places = parts.map((row) => String(row['part'])).filter((name) => name.startsWith('place/'));
  t.equal(places.length, 2);
  const createOp = String(await cell('record', part(`case/${other.reviewId}`), 'op'));
  // The edited place must be the one that is read.
  if ((await cell('record', part(places[0]!), 'op')) === createOp) places.reverse();
  const foreignAct = parts.find(
    (row) => String(row['part']).startsWith('act/') && row['part'] !== `act/${createOp}`,
  )?.['act'];
  t.ok(foreignAct, 'the acts wait with their events');
  // A void id.
  await stores.reserveProof('prf_edited-void', partnerId, NOW - 10);
  t.strictSame(await takeBack(stores, NOW - 5), ['prf_edited-void']);
  // A rotated key and an upload.
  const rotated = partnerKey('key_edited-rotated', partnerId);
  const successor = partnerKey('key_edited-successor', partnerId);
  await stores.createKey(rotated, audit(partnerId, 'key_created', rotated.keyId));
  await stores.rotateKey(
    rotation(rotated, successor.keyId, 1),
    successor,
    audit(partnerId, 'key_rotated', rotated.keyId),
  );
  const rotatedRow = `key_id = '${rotated.keyId}' AND part = ''`;
  const slot = uploadSlot('upl_edited');
  await stores.createSlot(slot);
  await stores.putFacts(uploadFacts(slot, 'edited'));

  const reads = {
    partner: () => stores.getPartner(partnerId),
    live: () => stores.getKey(live.keyId),
    revoked: () => stores.getKey(revoked.keyId),
    rotation: () => stores.getRotation(rotated.keyId),
    issued: () => stores.getProof(issued.proofId),
    kept: () => stores.getProof(kept.proofId),
    erased: () => stores.getProof(erased.proofId),
    voided: () => stores.getProof('prf_edited-void'),
    facts: () => stores.readEvidence(kept.proofId, 'facts'),
    review: () => stores.getReview(partnerId, review.reviewId, NOW),
    // A creation for the same bindings finds the holder of the place. A repeated creation completes it by the
    // act.
    place: () => create({ ...review, reviewId: 'rev_edited-third' }),
    act: () => create(other),
    upload: () => stores.getUpload(slot.uploadId, NOW),
  };
  const edits: readonly (readonly [
    what: string,
    read: () => Promise<unknown>,
    table: string,
    where: string,
    column: string,
    value: unknown,
  ])[] = [
    ['another plan', reads.partner, 'partner', ownRow, 'plan', 'volume'],
    ['an approval', reads.partner, 'partner', ownRow, 'source_detail', 'v1'],
    ['more scopes', reads.live, 'api_key', liveRow, 'scopes', ['verify', 'keys', 'erase']],
    ['another owner of a key', reads.live, 'api_key', liveRow, 'partner_id', 'ptr_other'],
    ['another secret of a key', reads.live, 'api_key', liveRow, 'secret_hash', 'f'.repeat(64)],
    ['a later end', reads.live, 'api_key', liveRow, 'expires_at', NOW + 1_000_000],
    [
      'no revocation',
      reads.revoked,
      'api_key',
      `key_id = '${revoked.keyId}' AND part = ''`,
      'revoked_at',
      null,
    ],
    [
      'another rotation',
      reads.rotation,
      'api_key',
      rotatedRow,
      'rotation',
      await cell('api_key', rotatedRow, 'successor'),
    ],
    [
      'another material of a secret',
      reads.rotation,
      'api_key',
      rotatedRow,
      'rotation_replay',
      await cell('api_key', rotatedRow, 'rotation'),
    ],
    ['another owner of a proof', reads.issued, 'record', head(issued.proofId), 'partner_id', 'ptr_other'],
    ['another body', reads.issued, 'record', head(issued.proofId), 'body', Buffer.from([1, 2, 3])],
    [
      'the body of another proof',
      reads.issued,
      'record',
      head(issued.proofId),
      'body',
      await cell('record', head(sound.proofId), 'body'),
    ],
    ['no code', reads.issued, 'record', head(issued.proofId), 'mac', null],
    [
      'the code of another row',
      reads.issued,
      'record',
      head(issued.proofId),
      'mac',
      await cell('record', head(sound.proofId), 'mac'),
    ],
    ['an erasure', reads.issued, 'record', head(issued.proofId), 'state', 'erased'],
    ['no erasure', reads.erased, 'record', head(erased.proofId), 'state', 'issued'],
    ['another time of erasure', reads.erased, 'record', head(erased.proofId), 'erased_at', NOW - 1],
    ['another erasure', reads.erased, 'record', head(erased.proofId), 'erase_op', 'another'],
    ['a confirmation', reads.erased, 'record', head(erased.proofId), 'confirmed_at', NOW],
    ['an id that is free again', reads.voided, 'record', head('prf_edited-void'), 'state', 'issued'],
    ['another time of giving up', reads.voided, 'record', head('prf_edited-void'), 'void_at', NOW - 1],
    [
      'another part of evidence',
      reads.facts,
      'record',
      part('evidence/facts'),
      'data',
      await cell('record', part('evidence/detail'), 'data'),
    ],
    [
      'another review',
      reads.review,
      'record',
      caseRow,
      'data',
      await cell('record', part(`case/${other.reviewId}`), 'data'),
    ],
    ['a former content of a review', reads.review, 'record', caseRow, 'data', formerVersion],
    ['a former version of a review', reads.review, 'record', caseRow, 'version', 1],
    [
      'another holder of a place',
      reads.place,
      'record',
      part(places[0]!),
      'data',
      await cell('record', part(places[1]!), 'data'),
    ],
    ['another operation of a place', reads.place, 'record', part(places[0]!), 'op', createOp],
    ['another act', reads.act, 'record', part(`act/${createOp}`), 'act', foreignAct],
    [
      'other facts of an upload',
      reads.upload,
      'upload',
      `upload_id = '${slot.uploadId}'`,
      'facts',
      await cell('record', head(sound.proofId), 'body'),
    ],
  ];
  for (const [what, read, table, where, column, value] of edits) {
    const before = await read();
    const was = await cell(table, where, column);
    const put = (to: unknown) => run(`UPDATE ${table} SET ${column} = ? WHERE ${where} IF EXISTS`, [to]);
    await put(value);
    await t.rejects(read(), DAMAGED, what);
    await put(was);
    t.strictSame(await read(), before, `${what}: put back, it is as it was`);
  }
  // A damaged act is kept, and every sweep reports it.
  const act = part(`act/${createOp}`);
  const actBlob = await cell('record', act, 'act');

  await run(`UPDATE partner SET plan = 'volume' WHERE ${ownRow} IF EXISTS`);
  await run(`UPDATE api_key SET scopes = ['erase'] WHERE ${liveRow} IF EXISTS`);
  await run(`UPDATE record SET partner_id = 'ptr_other' WHERE ${head(issued.proofId)} IF EXISTS`);
  await run(`UPDATE record SET act = ? WHERE ${act} IF EXISTS`, [foreignAct]);
  const realNow = Date.now;
  Date.now = () => realNow() + 60_000;
  try {
    const sweeper = await openStore();
    await t.rejects(sweeper.collectExpired(NOW, 100), DAMAGED, 'a sweep reports it');
    await sweeper.close();
  } finally {
    Date.now = realNow;
  }
  t.ok(await cell('record', act, 'act'), 'and leaves it');
  await run(`UPDATE record SET act = ? WHERE ${act} IF EXISTS`, [actBlob]);

  // The chain of a log does not cover the ids of requests.
  const logOwner = `${partnerId}-log`;
  await stores.appendAudit({ ...audit(logOwner, 'key_created', 'key_1'), requestId: 'rq_1' });
  await run(
    'UPDATE audit_entry SET request = ? WHERE partner_id = ? AND bucket = 0 AND sequence = 1 IF EXISTS',
    [Buffer.from([1]), logOwner],
  );
  t.match(await stores.readAudit(logOwner, 1, 10), [{ sequence: 1, requestId: 'damaged' }]);

  await t.rejects(stores.listPartners(), DAMAGED, 'a list leaves nothing out in silence');
  const charge = usageCharge(partnerId, 'edited');
  await stores.charge(charge);
  const months = await stores.audited.months(undefined, 1000, charge.at);
  t.ok(
    months.items.some((month) => month.partnerId === partnerId),
    'work that needs ids alone goes on: that of the auditor',
  );
  await t.resolves(stores.installation.beginEpoch(1, charge.at), 'and that of a restore');
  await t.rejects(stores.listKeys(partnerId), DAMAGED);
  await t.rejects(stores.listProofs(partnerId, { limit: 10 }), DAMAGED);
  const next = partnerKey('key_edited-next', partnerId);
  await t.rejects(
    stores.rotateKey(rotation(live, next.keyId, 1), next, audit(partnerId, 'key_rotated', live.keyId)),
    DAMAGED,
    'nothing follows from an edited row',
  );
  await t.rejects(stores.revokeKey({ partnerId, keyId: live.keyId, at: NOW }), DAMAGED);
  await t.rejects(
    stores.eraseProof(issued.proofId, partnerId, NOW, audit(partnerId, 'proof_erased', issued.proofId)),
    DAMAGED,
  );
  await t.rejects(
    stores.createReview(
      reviewCase('rev_edited-on', partnerId, issued.proofId),
      NOW,
      audit(partnerId, 'review_created', 'rev_edited-on'),
    ),
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
  await run(`UPDATE partner SET plan = '${owner.plan}' WHERE ${ownRow} IF EXISTS`);
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
    withClient(async (client) => {
      const isAct = (part: string): boolean => part.startsWith('act/');
      const acts = await livesOf(client, 'api_key', 'key_id', key.keyId, isAct);
      t.notOk(acts.includes(null), 'an act has an end of its own');
      const others = await livesOf(client, 'api_key', 'key_id', key.keyId, (part) => !isAct(part));
      return others.filter((life) => life !== null);
    }, connection.keyspace);
  const limited = await lives();
  t.equal(limited.length, 1);
  t.ok(limited[0]! <= 25 * 3600 && limited[0]! > 24 * 3600, `${limited[0]} s`);
  await stores.revokeKey({ partnerId, keyId: key.keyId, at: NOW });
  t.equal((await lives()).length, 1, 'a later write of the row does not make it permanent');
  t.strictSame(await stores.getRotation(key.keyId), rotated);
  await withClient(
    (client) =>
      client.execute(
        "DELETE rotation_replay FROM api_key WHERE key_id = ? AND part = '' IF EXISTS",
        [key.keyId],
        {
          prepare: true,
        },
      ),
    connection.keyspace,
  );
  const { replay: _, ...left } = rotated;
  t.strictSame(await stores.getRotation(key.keyId), left, 'the rotation itself stays');
}

/** Creates a review of a new proof at the server's own time. */
async function youngReview(stores: Stores, name: string): Promise<ReviewCase> {
  const proof = issuedProof(`prf_${name}`, 'ptr_ttl');
  await stores.reserveProof(proof.proofId, proof.partnerId, NOW);
  await stores.issueProof(proof, audit(proof.partnerId, 'proof_issued', proof.proofId));
  const createdAt = Math.floor(Date.now() / 1000);
  const review = reviewCase(`rev_${name}`, 'ptr_ttl', proof.proofId, {
    createdAt,
    expiresAt: createdAt + REVIEW_LIFE_SECONDS,
  });
  await stores.createReview(review, review.createdAt, audit('ptr_ttl', 'review_created', review.reviewId));
  return review;
}

/**
 * Makes every possible change to a review.
 * @param took receives the duration of each change in milliseconds
 */
async function changeAll(stores: Stores, review: ReviewCase, took: number[] = []): Promise<void> {
  const now = () => Math.floor(Date.now() / 1000);
  // A pause, which reveals a life that is counted from the write and not from the creation.
  await delay(2500);
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
}

/** Returns the lives of a review's row, of its place and of its pointers. */
async function livesOfReview(client: Client, { reviewId, proofId }: ReviewCase): Promise<Lives> {
  return [
    ...(await livesOf(client, 'record', 'proof_id', proofId, (part) => part.startsWith('case/'))),
    ...(await livesOf(client, 'record', 'proof_id', proofId, (part) => part.startsWith('place/'))),
    ...(await livesOf(client, 'review_proof', 'review_id', reviewId)),
  ];
}

function endTogether(lives: Lives): boolean {
  const numbers = lives.filter((life) => life !== null);
  return numbers.length === lives.length && Math.max(...numbers) - Math.min(...numbers) <= 2;
}

async function reviewExpires(t: Test): Promise<void> {
  const stores = await openStore();
  t.teardown(() => stores.close());
  await withClient(async (client) => {
    // Uses a review whose changes were all fast, at the latest the twentieth. A server adds the seconds for
    // which it delays a change to the life of the change.
    for (let attempt = 1; ; attempt += 1) {
      const took: number[] = [];
      const review = await youngReview(stores, `whole-${attempt}`);
      const young = await livesOfReview(client, review);
      t.equal(young.length, 6, 'three columns of the review, two of its place and one that points at it');
      t.ok(endTogether(young), young.join(', '));
      t.ok(Math.abs(Number(young[0]) - REVIEW_SECONDS) <= 60);
      await changeAll(stores, review, took);
      if (attempt < 20 && Math.max(...took) >= 500) continue;
      const lives = await livesOfReview(client, review);
      t.equal(lives.length, 4, 'all but the place, which its resolution gave up');
      t.ok(endTogether(lives), lives.join(', '));
      break;
    }

    // `USING TTL 0` means no TTL, so it replaces removing the clause.
    const review = await youngReview(stores, 'broken');
    const changes = (
      await timedStatements(/^UPDATE record USING TTL \?/, () => changeAll(stores, review))
    ).values();
    const changed = await youngReview(stores, 'broken-change');
    const [query] = [...changes];
    await withoutTtl(query!, async () => {
      const now = Math.floor(Date.now() / 1000);
      await stores.changeReview(
        'ptr_ttl',
        changed.reviewId,
        now,
        (current) => openEvidence(current, 'source_licence', 'req_broken', now),
        audit('ptr_ttl', 'review_evidence_opened', changed.reviewId),
      );
    });
    t.notOk(endTogether(await livesOfReview(client, changed)), 'found without its TTL');
  }, connection.keyspace);
}

/** The life of a review and of the rows beside it, in seconds. */
const REVIEW_SECONDS = REVIEW_LIFE_SECONDS + 3600;
const MONTH_SECONDS = 30 * 86_400;
const TIMED =
  /^(UPDATE|INSERT INTO) (record|review_proof|review_by_partner|issuing_replay|pointer)\b.*USING TTL \?/;

async function timedStatements(which: RegExp, work: () => Promise<unknown>): Promise<Set<string>> {
  const seen = new Set<string>();
  await intercepted(
    (sent) => sent.filter(({ query }) => which.test(query)).forEach(({ query }) => seen.add(query)),
    work,
  );
  return seen;
}

/**
 * Runs the work with another TTL in the statement.
 * @param change returns the TTL that replaces the sent one
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

/** Calls of one partner on one proof, at the time of the samples. */
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
    create: (reviewId: string, createdAt = NOW) =>
      stores.createReview(
        reviewCase(reviewId, 'ptr_ttl', proofId, { createdAt }),
        createdAt,
        audited('review_created', reviewId),
      ),
    erase: async () => {
      await stores.eraseProof(proofId, 'ptr_ttl', NOW, audited('proof_erased', proofId));
      await stores.confirmErasure(proofId, NOW);
    },
  };
}

/**
 * Returns the lives of an idempotency record, of a review with its place and pointers, of an act and of a
 * pointer. Each is read as soon as it is written, and has the longest life that is right.
 */
async function leavings(
  stores: Stores,
  client: Client,
  name: string,
): Promise<readonly (readonly [most: number, lives: Lives])[]> {
  const proofId = `prf_${name}-2`;
  const [first, second] = [callsOf(stores, `prf_${name}-1`), callsOf(stores, proofId)];
  const key = async () =>
    [86_400 + 3600, await livesOf(client, 'issuing_replay', 'replay_key', name)] as const;
  const parts = async (prefix: string, most: number) =>
    [most, await livesOf(client, 'record', 'proof_id', proofId, (part) => part.startsWith(prefix))] as const;
  await first.issue(name);
  const found = [await key()];
  await first.erase();
  await second.issue(name);
  found.push(await key());
  await second.create(`rev_${name}-1`);
  found.push(
    await parts('case/', REVIEW_SECONDS),
    await parts('place/', REVIEW_SECONDS),
    await parts('act/', MONTH_SECONDS),
    [REVIEW_SECONDS, await livesOf(client, 'review_proof', 'review_id', `rev_${name}-1`)],
    [MONTH_SECONDS, await livesOf(client, 'pointer', 'key', proofId)],
  );
  // The place of an ended review is taken over.
  const { outcome } = await second.create(`rev_${name}-2`, NOW + REVIEW_LIFE_SECONDS + 1);
  if (outcome !== 'created') throw new Error(outcome);
  found.push(await parts('place/', REVIEW_SECONDS));
  return found;
}

async function rowsBesideExpire(t: Test): Promise<void> {
  const stores = await openStore();
  t.teardown(() => stores.close());
  await withClient(async (client) => {
    const seen = await timedStatements(TIMED, async () => {
      for (const [most, lives] of await leavings(stores, client, 'left')) {
        t.ok(
          lives.length > 0 && lives.every((life) => life !== null && life <= most && life > most - 600),
          `${lives.map(String).join(', ')} of ${most} seconds`,
        );
      }
    });
    t.equal(seen.size, 8, [...seen].join('\n'));
    const indexes = [...seen].filter((query) => query.startsWith('INSERT INTO review_by'));
    t.equal(indexes.length, 1);
    for (const index of indexes) seen.delete(index);
    for (const [i, query] of [...seen].entries()) {
      const broken = await withoutTtl(query, () => leavings(stores, client, `left-${i}`));
      t.ok(
        broken.some(([, lives]) => lives.includes(null)),
        `found without the TTL of: ${query.slice(0, 60)}`,
      );
    }

    // An index entry consists of its key, and no server shows the TTL of a key. So an entry that should live
    // as long as a review gets one second. An earlier entry without a TTL shows that the wait would find one.
    const entryOf = async (index: string, name: string, ttl: (given: number) => number) => {
      const calls = callsOf(stores, `prf_${name}`);
      await calls.issue(name);
      await withTtl(index, ttl, () => calls.create(`rev_${name}`));
      const table = index.split(' ')[2]!;
      return async () =>
        (
          await client.execute(
            `SELECT review_id FROM ${table} WHERE partner_id = 'ptr_ttl' AND proof_id = ? ALLOW FILTERING`,
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

/** Returns the columns that are set beside the key, without the operation id of a deletion. */
async function leftOf(client: Client, table: string, key: string, value: string): Promise<readonly string[]> {
  const { rows } = await client.execute(`SELECT * FROM ${table} WHERE ${key} = ? ALLOW FILTERING`, [value], {
    prepare: true,
  });
  return rows.flatMap((row) =>
    row.keys().filter((column) => row[column] !== null && ![key, 'op'].includes(column)),
  );
}

async function processesCounted(t: Test): Promise<void> {
  const session = await connect(connection, connection.keyspace);
  t.teardown(() => session.close());
  const [one, other, killed] = [
    servingProcesses(session),
    servingProcesses(session),
    servingProcesses(session, 1),
  ];
  t.equal(await one.renew(), 1);
  t.equal(await other.renew(), 2);
  t.equal(await one.renew(), 2, 'an entry is renewed, and none is added');
  await other.leave();
  t.equal(await one.renew(), 1, 'a process that stops is counted no longer');
  t.equal(await killed.renew(), 2);
  while ((await one.renew()) !== 1) await delay(100);
  t.equal(await one.renew(), 1, 'the entry of a process that was killed expires');
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
          NOW,
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
        storeOf(i).meter([{ partnerId: 'ptr_both', operation: 'list_proofs', count: 1 }], NOW, nextBatch()),
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
    const namedParts = async () => (await partsOf(proof.proofId)).filter((part) => part >= 'b');
    t.strictSame(await namedParts(), [], 'the erasure removes the reviews');
    await withClient((client) =>
      client.execute(
        `INSERT INTO ${connection.keyspace}.record (proof_id, part, version, op) VALUES (?, 'case/rev_late', 4, 'late')`,
        [proof.proofId],
        { prepare: true },
      ),
    );
    t.strictSame(await namedParts(), ['case/rev_late'], 'a change of a review is completed late');
    const confirmed = await Promise.all(
      [0, 1].map((i) => storeOf(i).confirmErasure(proof.proofId, NOW + 50)),
    );
    t.strictSame(confirmed.toSorted(), ['already_confirmed', 'confirmed']);
    t.strictSame(await namedParts(), [], 'the confirmation removes it');

    const entries = await auditOf({ stores: storeOf(0) }, 'ptr_both');
    t.strictSame(
      entries.map(({ action }) => action),
      ['proof_issued', 'review_created', 'review_evidence_opened', 'proof_erased'],
    );
    const walk = new AuditWalk([KEY], undefined);
    for (const entry of entries) walk.take(entry);
    t.ok(walk.end().ok);
    for (const stores of pair) await takeWaiting(stores);
    t.strictSame(
      await leftInTheEnd(async () => (await partsOf(proof.proofId)).filter((part) => part !== '')),
      [],
      'nothing is left beside the tombstone',
    );
    await withClient(async (client) => {
      for (const [table, column, value] of [
        ['review_by_partner', 'partner_id', 'ptr_both'],
        ['proof_by_partner', 'proof_id', proof.proofId],
      ] as const) {
        t.strictSame(
          await leftInTheEnd(() => leftOf(client, table, column, value)),
          [],
          `nothing left in ${table}`,
        );
      }
    }, connection.keyspace);
  });
}

/**
 * The number of deleted rows, which exceeds the `tombstone_failure_threshold` of the servers of `npm run
 * services:up`.
 */
const REMOVED = 6000;
/** The number of a proof's reviews that ended by TTL, beside as many that were deleted. */
const ENDED = 6000;

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
  await stores.createReview(review, review.createdAt, audit(partnerId, 'review_created', review.reviewId));
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
      'INSERT INTO record (proof_id, part) VALUES (?, ?)',
      'DELETE FROM record WHERE proof_id = ? AND part = ?',
      (i) => [proofId, `${i % 2 === 0 ? 'case/rev' : 'place/ptr'}_gone-${i}`],
    );
    const ended = "INSERT INTO record (proof_id, part, op, data) VALUES (?, ?, 'op', ?) USING TTL 1";
    for (let from = 0; from < ENDED; from += 100)
      await client.batch(
        Array.from({ length: 100 }, (_, i) => ({
          query: ended,
          params: [proofId, `case/rev_ended-${from + i}`, Buffer.alloc(10)],
        })),
        { prepare: true, logged: false },
      );
    await delay(1500);
    await t.rejects(
      client.execute('SELECT part FROM record WHERE proof_id = ?', [proofId], { prepare: true }),
      { name: 'ResponseError' },
      'the server refuses to read a whole proof at once',
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

  t.strictSame(await stores.getProof(proofId), proofs[0], 'a proof is read');
  const again = reviewCase('rev_removed-2', partnerId, proofId);
  const create = () =>
    stores.createReview(again, again.createdAt, audit(partnerId, 'review_created', again.reviewId));
  t.strictSame(await create(), { outcome: 'exists', reviewId: review.reviewId });
  t.match(
    await stores.changeReview(
      partnerId,
      review.reviewId,
      NOW,
      (now) => resolveReview(now, 'accepted', NOW),
      audit(partnerId, 'review_resolved', review.reviewId),
    ),
    { review: { status: 'resolved' } },
    'a review is changed',
  );
  t.strictSame(await create(), { outcome: 'created' });
  t.strictSame(await stores.getReview(partnerId, again.reviewId, NOW), again, 'and another one created');
  t.match(await stores.eraseProof(proofId, partnerId, NOW, audit(partnerId, 'proof_erased', proofId)), {
    outcome: 'erased',
  });
  t.equal(await stores.confirmErasure(proofId, NOW), 'confirmed');
  t.match(await stores.getProof(proofId), { state: 'erased', confirmedAt: NOW });
  t.strictSame(await create(), { outcome: 'proof_gone' });
  for (const { reviewId } of [review, again])
    t.equal(await stores.getReview(partnerId, reviewId, NOW), undefined);
  t.strictSame(await names({ limit: 5 }), ['prf_removed-2', 'prf_removed-1']);
}
