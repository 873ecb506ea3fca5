import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import t, { type Test } from 'tap';
import { Authenticator } from '../../src/core/codec/authenticator.js';
import { crc32c } from '../../src/core/codec/crc32c.js';
import { RecordCodec } from '../../src/core/codec/record.js';
import type { Commit } from '../../src/service/adapters/embedded/commit-queue.js';
import { findDamage } from '../../src/service/adapters/embedded/log-check.js';
import {
  type EmbeddedStore,
  type EmbeddedStoreOptions,
  openEmbeddedStore,
  STORE_FORMAT,
} from '../../src/service/adapters/embedded/store.js';
import { FileDigests } from '../../src/service/background/file-digests.js';
import { type AuditEntry, AuditWalk } from '../../src/service/domain/audit.js';
import type { IssuedProof } from '../../src/service/domain/proof.js';
import { REVIEW_LIFE_SECONDS } from '../../src/service/domain/review.js';
import type { AuditHeads } from '../../src/service/ports/journals.js';
import type { Stores } from '../../src/service/ports/stores.js';
import { authenticator, formerRecord, TEST_SECRET } from '../fixtures/authentication.js';
import { auditOf } from '../store-contract/audit-contract.js';
import { allFound, markedProof, marksIn } from '../store-contract/remains.js';
import {
  audit,
  issuedProof,
  issuingReplay,
  NOW,
  partnerKey,
  reviewCase,
  rotation,
  takeBack,
  uploadFacts,
  uploadSlot,
  usageCharge,
} from '../store-contract/samples.js';
import { type OpenedStore, type OpenOptions, storeContract } from '../store-contract/suite.js';
import { checkCharges } from './embedded-checks.js';
import {
  AUDIT_KEY,
  fileHeads,
  kill,
  line,
  PLAIN_NODE,
  WRITER,
  withLevel,
  writer,
} from './embedded-process.js';

const STRANGER = { id: TEST_SECRET.id, key: Buffer.alloc(32, 1) };
const strangersCodec = new RecordCodec(
  new Authenticator({ current: () => STRANGER, find: () => STRANGER }, 'test'),
);

const parent = mkdtempSync(join(tmpdir(), 'takemark-embedded-'));
t.teardown(() => rmSync(parent, { recursive: true, force: true }));
let opened = 0;
storeContract(t, 'the embedded store', (options) => openAt(join(parent, `store-${(opened += 1)}`), options));

/** Opens a store with audit heads beside the directory. */
function openStore(
  directory: string,
  options: Partial<Omit<EmbeddedStoreOptions, 'authenticator'>> & {
    readonly authenticator?: Authenticator;
  } = {},
): Promise<Stores> {
  return openEmbeddedStore({
    directory,
    audit: { key: AUDIT_KEY, heads: fileHeads(directory) },
    authenticator,
    ...options,
  });
}

async function openAt(directory: string, options: OpenOptions = {}): Promise<OpenedStore> {
  const audit = { key: AUDIT_KEY, heads: fileHeads(directory) };
  const stores = await openStore(directory, { audit, ...options });
  return {
    stores,
    audit,
    refusesCharges: true,
    close: () => stores.close(),
    reopen: async () => {
      await stores.close();
      return openAt(directory, options);
    },
  };
}

void t.test('the material of a successor’s secret leaves the files when its day is over', async (t) => {
  const directory = join(t.testdir(), 'store');
  const holds = (bytes: Buffer) =>
    readdirSync(directory).some((name) => readFileSync(join(directory, name)).includes(bytes));
  const nonce = (i: number) => createHash('sha256').update(`nonce ${i}`).digest('hex');
  let stores = await openStore(directory);
  const partnerId = 'ptr_shred';
  const rotate = async (i: number) => {
    const key = partnerKey(`key_shred-${i}`, partnerId);
    await stores.createKey(key, audit(partnerId, 'key_created', key.keyId));
    const made = {
      ...rotation(key, `${key.keyId}-next`, i),
      replay: { nonce: nonce(i), secretId: 'rotation-1' },
    };
    await stores.rotateKey(
      made,
      partnerKey(made.newKeyId, partnerId),
      audit(partnerId, 'key_rotated', key.keyId),
    );
    return made;
  };
  const first = await rotate(0);
  t.ok(holds(Buffer.from(nonce(0))), 'it is stored in plain text');
  await stores.collectExpired(first.replayUntil - 1, 100);
  t.strictSame(await stores.getRotation(first.keyId), first);
  await stores.collectExpired(first.replayUntil, 100);
  const { replay: _, ...left } = first;
  t.strictSame(await stores.getRotation(first.keyId), left, 'the rotation itself stays');
  t.notOk(holds(Buffer.from(nonce(0))), 'where a young store held both writes in memory');

  for (let i = 1; i <= 3; i += 1) await rotate(i);
  await stores.close();
  stores = await openStore(directory);
  t.teardown(() => stores.close());
  t.ok([1, 2, 3].every((i) => holds(Buffer.from(nonce(i)))));
  await stores.collectExpired(first.replayUntil, 100);
  t.notOk(
    [1, 2, 3].some((i) => holds(Buffer.from(nonce(i)))),
    'where they were on the disk before',
  );
});

void t.test('an erasure leaves nothing of evidence, declarations and consent under any key', async (t) => {
  const directory = join(t.testdir(), 'store');
  const content = async (): Promise<string> => {
    const found: string[] = [];
    await withLevel(directory, async (level) => {
      for await (const [key, row] of level.iterator()) found.push(key, Buffer.from(row).toString('latin1'));
    });
    return found.join('\n');
  };
  let stores = await openStore(directory);
  const { proof } = await markedProof(stores, 'prf_remains', 'ptr_remains');
  await stores.close();
  allFound(t, await content());
  stores = await openStore(directory);
  const { proofId, partnerId } = proof;
  await stores.eraseProof(proofId, partnerId, NOW, audit(partnerId, 'proof_erased', proofId));
  await stores.close();
  t.strictSame(marksIn(await content()), [], 'after the erasure, which is one write');
  stores = await openStore(directory);
  t.equal(await stores.confirmErasure(proofId, NOW + 1), 'confirmed');
  await stores.close();
  t.strictSame(marksIn(await content()), [], 'after the confirmation');
});

void t.test('a directory that cannot be served is refused with its reason', async (t) => {
  const directory = t.testdir();
  const inner = join(directory, 'made', 'by', 'it');
  const stores = await openStore(inner);
  t.equal(statSync(inner).mode & 0o777, 0o700);
  await t.rejects(
    openStore(inner),
    { name: 'StoreOpenError', code: 'in_use', message: /in use/ },
    'opened here',
  );
  await stores.close();
  await t.resolves(stores.close(), 'closing again is harmless');

  const holder = writer('hold', inner);
  await line(holder, 'ready');
  await t.rejects(openStore(inner), { code: 'in_use' }, 'opened by another process');
  await kill(holder);

  await withLevel(inner, (level) =>
    level.put(
      'meta/format',
      new RecordCodec(authenticator).encode('meta/format', { format: STORE_FORMAT + 1 }),
    ),
  );
  await t.rejects(openStore(inner), { code: 'newer_format', message: /format 9, but .* up to 8/ });
  await t.rejects(openStore(inner), { code: 'newer_format' }, 'and the refusal leaves it closed');

  const foreign = join(directory, 'foreign');
  mkdirSync(foreign);
  await withLevel(foreign, (level) => level.put('a', Buffer.from('b')));
  await t.rejects(openStore(foreign), { code: 'not_a_store' });

  writeFileSync(join(directory, 'file'), '');
  await t.rejects(openStore(join(directory, 'file')), { code: 'io_failed' });
});

void t.test('damage is never taken for data', async (t) => {
  t.equal(crc32c(Buffer.from('123456789')), 0xe3069283, 'the check value of CRC-32C');
  const directory = join(t.testdir(), 'store');
  const proofs = Array.from({ length: 40 }, (_, i) => issuedProof(`prf_${i}`, 'ptr_1'));
  const stores = await openStore(directory);
  for (const proof of proofs) {
    await stores.reserveProof(proof.proofId, 'ptr_1', NOW);
    await stores.issueProof(
      { ...proof, sidecar: new Uint8Array(1500) },
      audit('ptr_1', 'proof_issued', proof.proofId),
    );
  }
  await stores.close();
  const log = readdirSync(directory).find((name) => name.endsWith('.log'))!;
  const whole = readFileSync(join(directory, log));
  t.ok(whole.length > 65_536, 'the log has several blocks');

  t.equal(findDamage(whole), undefined);
  const cuts = Array.from({ length: 500 }, (_, i) => Math.floor((whole.length * i) / 500));
  t.strictSame(
    cuts.filter((cut) => findDamage(whole.subarray(0, cut)) !== undefined),
    [],
    'a log that ends anywhere is a process that died',
  );
  const flips = Array.from({ length: 500 }, (_, i) => Math.floor((whole.length * 0.95 * i) / 500));
  const missed = flips.filter((flip) => {
    const flipped = Buffer.from(whole);
    flipped[flip]! ^= 0x10;
    return findDamage(flipped) === undefined;
  });
  // The six bytes at a block's end that belong to no record may have any value.
  t.strictSame(
    missed.filter((flip) => 32_768 - (flip % 32_768) > 6),
    [],
    'a flipped bit before the end is damage',
  );
  whole[5000]! ^= 1;
  writeFileSync(join(directory, log), whole);
  await t.rejects(openStore(directory), { code: 'damaged', message: /damaged at byte/ });
  whole[5000]! ^= 1;
  writeFileSync(join(directory, log), whole);

  // A changed row, and a row under another key.
  await withLevel(directory, async (level) => {
    const row = (await level.get('proof/prf_1'))!;
    await level.put('proof/prf_2', row);
    const changed = Uint8Array.from(row);
    changed[40]! ^= 1;
    await level.put('proof/prf_3', changed);
    await level.put('proof/prf_4', new Uint8Array(2));
    await level.put('proof/prf_5', formerRecord('proof/prf_5', issuedProof('prf_5', 'ptr_1')));
    await level.put(
      'proof/prf_6',
      Uint8Array.from((await level.get('proof/prf_6'))!, (byte, i) => (i === 0 ? 3 : byte)),
    );
    await level.put('proof/prf_7', strangersCodec.encode('proof/prf_7', issuedProof('prf_7', 'ptr_1')));
  });
  const opened = await openStore(directory);
  t.match(await opened.getProof('prf_1'), { proofId: 'prf_1' });
  for (const proofId of ['prf_2', 'prf_3', 'prf_4', 'prf_5', 'prf_6', 'prf_7']) {
    await t.rejects(opened.getProof(proofId), {
      code: 'internal',
      reason: 'record_damaged',
      cause: { name: 'RecordError' },
    });
    await t.rejects(
      opened.issueProof(issuedProof(proofId, 'ptr_1'), audit('ptr_1', 'proof_issued', proofId)),
      { code: 'internal', reason: 'record_damaged' },
      'no condition is decided on it',
    );
  }
  await opened.close();

  const lost = join(t.testdirName, 'lost');
  mkdirSync(lost);
  for (const name of readdirSync(directory)) copyFileSync(join(directory, name), join(lost, name));
  rmSync(join(lost, 'CURRENT'));
  await t.rejects(openStore(lost), { code: 'damaged', message: /CURRENT/ }, 'instead of a new, empty store');
});

void t.test('rows of another environment or of another secret are refused', async (t) => {
  const directory = join(t.testdir(), 'store');
  const stores = await openStore(directory);
  await stores.createKey(partnerKey('key_1', 'ptr_1'), audit('ptr_1', 'key_created', 'key_1'));
  await stores.close();
  const beta = new Authenticator({ current: () => TEST_SECRET, find: () => TEST_SECRET }, 'beta');
  await t.rejects(openStore(directory, { authenticator: beta }), {
    name: 'StoreOpenError',
    code: 'unauthenticated',
  });
  const stranger = new Authenticator({ current: () => STRANGER, find: () => STRANGER }, 'test');
  await t.rejects(openStore(directory, { authenticator: stranger }), { code: 'unauthenticated' });

  const next = { id: 'ffffffff', key: Buffer.alloc(32, 9) };
  const rotated = new Authenticator(
    { current: () => next, find: (id) => [next, TEST_SECRET].find((secret) => secret.id === id) },
    'test',
  );
  const after = await openStore(directory, { authenticator: rotated });
  t.match(await after.getKey('key_1'), { keyId: 'key_1' }, 'what the former secret made stays');
  await after.createKey(partnerKey('key_2', 'ptr_1'), audit('ptr_1', 'key_created', 'key_2'));
  await after.close();
  const before = await openStore(directory);
  t.match(await before.getKey('key_1'), { keyId: 'key_1' });
  await t.rejects(
    before.getKey('key_2'),
    { code: 'internal', reason: 'record_damaged' },
    'a secret that this one does not know',
  );
  await before.close();
});

void t.test('rows without codes are given codes once, when asked for', async (t) => {
  const directory = join(t.testdir(), 'store');
  const proofs = Array.from({ length: 700 }, (_, i) => issuedProof(`prf_${i}`, 'ptr_1'));
  const stores = await openStore(directory);
  for (const proof of proofs.slice(0, 3)) {
    await stores.reserveProof(proof.proofId, 'ptr_1', NOW);
    await stores.issueProof(proof, audit('ptr_1', 'proof_issued', proof.proofId));
  }
  await stores.close();
  const codec = new RecordCodec(authenticator);
  const asFormer = () =>
    withLevel(directory, async (level) => {
      for (const [key, row] of await level.iterator().all())
        if (row[0] === 2)
          await level.put(
            key,
            formerRecord(key, key === 'meta/format' ? { format: 2 } : codec.decode(key, row)),
          );
      for (const { proofId, ...proof } of proofs)
        await level.put(`proof/${proofId}`, formerRecord(`proof/${proofId}`, { proofId, ...proof }));
    });
  await asFormer();
  await t.rejects(
    openStore(directory),
    { code: 'unauthenticated', message: /TAKEMARK_UNAUTHENTICATED=accept/ },
    'not because the store says so',
  );

  const damaged = formerRecord('proof/prf_9', proofs[9]);
  damaged[damaged.length - 1]! ^= 1;
  await withLevel(directory, async (level) => {
    // The state after a kill: some rows have codes, and the format has none.
    for (const { proofId } of proofs.slice(100, 300))
      await level.put(
        `proof/${proofId}`,
        codec.adopt(`proof/${proofId}`, (await level.get(`proof/${proofId}`))!),
      );
    await level.put('proof/prf_9', damaged);
  });
  const adopted = await openStore(directory, { adoptFormerRows: true });
  for (const proof of proofs) {
    if (proof.proofId === 'prf_9')
      await t.rejects(
        adopted.getProof('prf_9'),
        { code: 'internal', reason: 'record_damaged' },
        'damage stays damage',
      );
    else t.strictSame(await adopted.getProof(proof.proofId), proof);
  }
  t.equal((await adopted.listProofs('ptr_1', { limit: 10 })).length, 3);
  await adopted.close();
  const again = await openStore(directory);
  t.match(await again.getProof('prf_699'), { proofId: 'prf_699' });
  await again.close();
  await withLevel(directory, async (level) => {
    for (const [key, row] of await level.iterator().all())
      t.equal(row[0], key === 'proof/prf_9' ? 1 : 2, key);
    await level.put('proof/prf_5', formerRecord('proof/prf_5', proofs[5]));
  });
  const later = await openStore(directory, { adoptFormerRows: true });
  await t.rejects(
    later.getProof('prf_5'),
    { code: 'internal', reason: 'record_damaged' },
    'afterwards none is taken over',
  );
  await later.close();
});

void t.test('an id whose removal came to nothing is taken back again, after a restart too', async (t) => {
  const directory = join(t.testdir(), 'store');
  let stores = await openStore(directory);
  // More ids than one batch takes back.
  const ids = Array.from({ length: 300 }, (_, i) => `prf_${String(i).padStart(3, '0')}`);
  for (const proofId of ids) await stores.reserveProof(proofId, 'ptr_1', NOW);
  const kept = (proofId: string): boolean => proofId.endsWith('7');
  await stores.collectReservations(NOW + 1, async (proofId) => !kept(proofId));
  t.strictSame(await takeBack(stores, NOW), [], 'none is younger than it was');
  await t.rejects(
    stores.collectReservations(NOW + 1, () => Promise.reject(new Error('killed'))),
    { message: 'killed' },
  );
  await stores.close();
  stores = await openStore(directory);
  t.strictSame(await takeBack(stores, NOW + 1), ids.filter(kept), 'these alone are left');
  t.strictSame(await takeBack(stores, NOW + 1), []);
  await stores.reserveProof(ids[7]!, 'ptr_2', NOW);
  t.match(await stores.getProof(ids[7]!), { state: 'pending', partnerId: 'ptr_2' }, 'and free again');
  await stores.close();
  await withLevel(directory, async (level) => {
    const rows = await level.keys({ gte: 'p', lt: 'q' }).all();
    t.strictSame(rows.toSorted(), [`pending/${String(NOW).padStart(12, '0')}/prf_007`, 'proof/prf_007']);
  });
});

void t.test('a damaged row blocks no other row', async (t) => {
  const directory = join(t.testdir(), 'store');
  const damages: unknown[] = [];
  const options = { onDamage: (error: unknown) => void damages.push(error) };
  const stores = await openStore(directory);
  for (const proofId of ['prf_1', 'prf_2']) {
    await stores.reserveProof(proofId, 'ptr_1', NOW);
    await stores.issueProof(issuedProof(proofId, 'ptr_1'), audit('ptr_1', 'proof_issued', proofId));
    await stores.eraseProof(proofId, 'ptr_1', NOW, audit('ptr_1', 'proof_erased', proofId));
  }
  for (const proofId of ['prf_3', 'prf_4']) await stores.reserveProof(proofId, 'ptr_1', NOW);
  await stores.createKey(partnerKey('key_1', 'ptr_2'), audit('ptr_2', 'key_created', 'key_1'));
  const [first, second] = await stores.waitingEvents(9);
  await stores.close();
  await withLevel(directory, async (level) => {
    for (const key of [`outbox/${first!.rowKey}`, 'audit-head/ptr_1', 'proof/prf_3'])
      await level.put(
        key,
        Uint8Array.from((await level.get(key))!, (byte, i) => (i === 50 ? byte ^ 1 : byte)),
      );
  });
  const opened = await openStore(directory, options);
  t.strictSame(await opened.waitingEvents(1), [second], 'later events are published');
  t.strictSame(await opened.waitingEvents(9), [second]);
  t.strictSame(await takeBack(opened, NOW + 1), ['prf_4'], 'later ids are taken back');
  await opened.createKey(partnerKey('key_2', 'ptr_2'), audit('ptr_2', 'key_created', 'key_2'));
  await t.rejects(
    opened.createKey(partnerKey('key_3', 'ptr_1'), audit('ptr_1', 'key_created', 'key_3')),
    { code: 'internal', reason: 'record_damaged' },
    'no log goes on from a damaged head',
  );
  t.equal(damages.length, 3, 'each is reported once');
  for (const error of damages) t.match(error, { reason: 'record_damaged' });
  await opened.close();
});

void t.test('commits are shared, and waiting is bounded', async (t) => {
  const commits: Commit[] = [];
  const stores = await openStore(join(t.testdir(), 'store'), { onCommit: (commit) => commits.push(commit) });
  commits.length = 0;
  await Promise.all(Array.from({ length: 1000 }, (_, i) => stores.charge(usageCharge('ptr_1', `call-${i}`))));
  t.equal(
    commits.reduce((sum, { operations }) => sum + operations, 0),
    1000,
  );
  t.ok(commits.length <= 3, `1000 charges took ${commits.length} batches`);
  t.ok(commits[0]!.rows < 2100, 'in which the counters appear once');
  const events = await stores.waitingEvents(1000);
  t.ok(events.length <= 3, `and ${events.length} events report all of them`);
  await Promise.all(Array.from({ length: 300 }, (_, i) => stores.charge(usageCharge(`ptr_many-${i}`, 'a'))));
  const waiting = await stores.waitingEvents(1000);
  commits.length = 0;
  await stores.aggregateUsage(waiting.map(({ event }) => event).filter((event) => event.topic === 'usage'));
  await stores.markPublished(waiting);
  t.strictSame(
    [waiting.length, commits.length],
    [events.length + 300, 2],
    'aggregated in one batch, marked in one',
  );

  // Conditions see writes that are not yet on disk, and results wait for them. Reads do not see them.
  const slot = uploadSlot('upl_1');
  const created = stores.createSlot(slot);
  t.equal(await stores.getUpload('upl_1', NOW), undefined, 'a read sees what is on disk');
  const order: string[] = [];
  const first = stores.putFacts(uploadFacts(slot, 'a')).then((outcome) => order.push(outcome));
  const second = stores.putFacts(uploadFacts(slot, 'b')).then((outcome) => order.push(outcome));
  await Promise.all([created, first, second]);
  t.strictSame(order, ['stored', 'already_used'], 'a refusal comes no earlier than what it rests on');

  const results = await Promise.allSettled(
    Array.from({ length: 20_000 }, (_, i) => stores.charge(usageCharge('ptr_2', `call-${i}`))),
  );
  const refused = results.filter((result) => result.status === 'rejected');
  t.equal(refused.length, 20_000 - 16_384);
  t.match(refused[0], { reason: { code: 'unavailable', reason: 'store_unavailable', retryAfterSeconds: 1 } });
  t.equal(await stores.getUsed('ptr_2', NOW), 16_384);

  const last = stores.charge(usageCharge('ptr_3', 'a'));
  const closed = stores.close();
  t.strictSame(await last, { outcome: 'charged', used: 1 }, 'closing lets accepted operations end');
  await closed;
  await t.rejects(stores.charge(usageCharge('ptr_3', 'b')), { code: 'unavailable', reason: 'shutting_down' });
});

void t.test(
  'the head of an audit log is recorded apart, before the caller hears of the change',
  async (t) => {
    const directory = join(t.testdir(), 'store');
    const kept = fileHeads(directory);
    const order: string[] = [];
    let working = true;
    const heads: AuditHeads = {
      ...kept,
      record: async (head) => {
        await new Promise(setImmediate);
        if (!working) throw new Error('the disk is full');
        await kept.record(head);
        order.push(`recorded ${head.sequence}`);
      },
    };
    const stores = await openStore(directory, { audit: { key: AUDIT_KEY, heads } });
    const create = (of: Stores, i: number) =>
      of
        .createKey(partnerKey(`key_${i}`, 'ptr_1'), audit('ptr_1', 'key_created', `key_${i}`))
        .then(() => order.push(`answered ${i}`));
    await create(stores, 1);
    await create(stores, 1);
    await create(stores, 2);
    t.strictSame(order, ['recorded 1', 'answered 1', 'answered 1', 'recorded 2', 'answered 2']);
    working = false;
    await t.rejects(create(stores, 3), { code: 'unavailable', reason: 'store_unavailable' });
    t.ok(await stores.getKey('key_3'), 'it took effect');
    t.equal((await auditOf({ stores }, 'ptr_1')).length, 3);
    t.equal((await kept.get('ptr_1'))?.sequence, 2);
    await stores.close();

    await t.rejects(openStore(directory, { audit: { key: AUDIT_KEY, heads } }), {
      message: 'the disk is full',
    });
    working = true;
    const again = await openStore(directory, { audit: { key: AUDIT_KEY, heads } });
    t.equal((await kept.get('ptr_1'))?.sequence, 3, 'an outdated head is brought up to date');
    t.equal((await auditOf({ stores: again }, 'ptr_1')).length, 3);
    await again.close();
  },
);

void t.test('erasing and expiring leave no index entry', async (t) => {
  const directory = join(t.testdir(), 'store');
  const stores = await openStore(directory);
  for (const proofId of ['prf_erased', 'prf_kept']) {
    await stores.reserveProof(proofId, 'ptr_1', NOW);
    await stores.issueProof(
      issuedProof(proofId, 'ptr_1'),
      audit('ptr_1', 'proof_issued', proofId),
      issuingReplay(`replay_${proofId}`, proofId),
    );
    for (const partnerId of ['ptr_1', 'ptr_2'])
      await stores.createReview(
        reviewCase(`rev_${proofId}-${partnerId}`, partnerId, proofId),
        NOW,
        audit(partnerId, 'review_created'),
      );
  }
  await stores.eraseProof('prf_erased', 'ptr_1', NOW, audit('ptr_1', 'proof_erased', 'prf_erased'));
  // The result does not depend on whether a consumer took the event.
  t.equal(await stores.collectExpired(NOW, 1000), 2);
  const keys = async () => {
    let found: readonly string[] = [];
    await stores.close();
    await withLevel(directory, async (level) => {
      found = await level.keys().all();
    });
    return found.filter((key) => !/^(?:meta|audit|audit-head|outbox)\//.test(key));
  };
  t.strictSame(
    (await keys()).filter((key) => key.includes('prf_erased')),
    ['proof/prf_erased'],
    'of an erased proof the tombstone stays',
  );
  const again = await openStore(directory);
  await again.collectExpired(NOW + REVIEW_LIFE_SECONDS, 1000);
  await again.close();
  const digests = issuedProof('prf_kept', 'ptr_1');
  t.strictSame(
    await keys(),
    [
      `bound/${digests.boundAudioSha256}/prf_kept`,
      `credential/${digests.credentialSha256}/prf_kept`,
      `digest/${digests.originalSha256}`,
      `digest/${digests.boundAudioSha256}`,
      `original/${digests.originalSha256}/prf_kept`,
      `proof-time/ptr_1/00${NOW}/prf_kept`,
      'proof/prf_erased',
      'proof/prf_kept',
    ],
    'nothing of expired reviews',
  );
});

void t.test('a store of a former format finds its proofs by digest', async (t) => {
  const directory = join(t.testdir(), 'store');
  const proof = issuedProof('prf_former', 'ptr_1');
  const erased = issuedProof('prf_erased', 'ptr_1');
  let stores = await openStore(directory);
  for (const each of [proof, erased]) {
    await stores.reserveProof(each.proofId, 'ptr_1', NOW);
    await stores.issueProof(each, audit('ptr_1', 'proof_issued', each.proofId));
  }
  await stores.eraseProof('prf_erased', 'ptr_1', NOW, audit('ptr_1', 'proof_erased', 'prf_erased'));
  await stores.close();
  const digest = `digest/${proof.originalSha256}`;
  await withLevel(directory, async (level) => {
    await level.del(`digest/${proof.boundAudioSha256}`);
    // An interrupted start left this row.
    await level.put(digest, (await level.get(digest))!);
    await level.put('meta/format', new RecordCodec(authenticator).encode('meta/format', { format: 6 }));
  });
  const raised: (readonly [number, number])[] = [];
  stores = await openStore(directory, { onFormatRaised: (from, to) => void raised.push([from, to]) });
  t.teardown(() => stores.close());
  t.strictSame(raised, [[6, STORE_FORMAT]]);
  const { proofId, partnerId, createdAt, originalSha256, boundAudioSha256 } = proof;
  for (const sha256 of [boundAudioSha256, originalSha256])
    t.strictSame((await stores.findByDigests([sha256], 10)).get(sha256), [
      { proofId, partnerId, createdAt, originalSha256, boundAudioSha256, isAlone: true },
    ]);
});

void t.test('a proof shares its digests from the first other proof that has one of them', async (t) => {
  const directory = join(t.testdir(), 'store');
  const stores = await openStore(directory);
  const sha256 = (name: string) => createHash('sha256').update(name).digest('hex');
  const proofOf = (proofId: string, bound: string) =>
    issuedProof(proofId, 'ptr_1', {
      fileSha256: sha256(`file of ${proofId}`),
      boundAudioSha256: sha256(bound),
      originalSha256: sha256(`original of ${proofId}`),
    });
  const issue = async (proof: IssuedProof) => {
    await stores.reserveProof(proof.proofId, 'ptr_1', NOW);
    await stores.issueProof(proof, audit('ptr_1', 'proof_issued', proof.proofId));
  };
  const isAlone = async (name: string) =>
    (await stores.findByDigests([sha256(name)], 10))
      .get(sha256(name))!
      .map((proof) => proof.isAlone === true);
  await issue(proofOf('prf_first', 'bound'));
  await issue(proofOf('prf_other', 'other bound'));
  t.strictSame(await isAlone('file of prf_first'), [true]);
  await issue(proofOf('prf_second', 'bound'));
  for (const name of ['file of prf_first', 'original of prf_first', 'file of prf_second'])
    t.strictSame(await isAlone(name), [false], name);
  t.strictSame(await isAlone('bound'), [false, false]);
  t.strictSame(await isAlone('file of prf_other'), [true]);
  await stores.addDigests('prf_other', { samplesSha256: sha256('bound') });
  t.strictSame(await isAlone('file of prf_other'), [false], 'a digest that was added is shared, too');

  await stores.eraseProof('prf_second', 'ptr_1', NOW, audit('ptr_1', 'proof_erased', 'prf_second'));
  await stores.close();
  await withLevel(directory, async (level) => {
    const left: string[] = [];
    for await (const [key, row] of level.iterator({ gte: 'digest/', lt: 'digest0' }))
      if (Buffer.from(row).includes('prf_second')) left.push(key);
    t.strictSame(left, [], 'no row of a digest has the erased proof');
  });
});

void t.test('records without the digest of their file get it after the start', async (t) => {
  const stores = (await openStore(join(t.testdir(), 'store'))) as EmbeddedStore;
  t.teardown(() => stores.close());
  const proofs = ['prf_1', 'prf_2', 'prf_3'].map((proofId) => issuedProof(proofId, 'ptr_1'));
  for (const proof of proofs) {
    await stores.reserveProof(proof.proofId, 'ptr_1', NOW);
    await stores.issueProof(proof, audit('ptr_1', 'proof_issued', proof.proofId));
  }
  const { sha256 } = proofs[0]!.asset;
  const found = async () => (await stores.findByDigests([sha256], 10)).get(sha256)?.length;
  const filling = new FileDigests({ stores, encrypted: stores, audited: stores.audited, rate: 1 });
  await filling.run(2);
  t.equal(await found(), 2, 'as many as the rate permits');
  await filling.run(2);
  t.equal(await found(), 3);
});

void t.test('a change of the audit log in the store is found', async (t) => {
  const directory = join(t.testdir(), 'store');
  const heads = fileHeads(directory);
  const options = { audit: { key: AUDIT_KEY, heads } };
  const stores = await openStore(directory, options);
  for (let i = 1; i <= 5; i += 1)
    await stores.createKey(partnerKey(`key_${i}`, 'ptr_1'), audit('ptr_1', 'key_created', `key_${i}`));
  const entries = await auditOf({ stores }, 'ptr_1');
  await stores.close();
  const head = (await heads.get('ptr_1'))!;

  const codec = new RecordCodec(authenticator);
  const at = (sequence: number) => `audit/ptr_1/${String(sequence).padStart(12, '0')}`;
  /** Returns the store's verdict on a log whose rows were rewritten with right checksums. */
  const verdict = async (rows: readonly AuditEntry[], storeHead = rows.at(-1)!) => {
    await withLevel(directory, async (level) => {
      for (let sequence = 1; sequence <= 6; sequence += 1) {
        const row = rows[sequence - 1];
        if (row === undefined) await level.del(at(sequence));
        else await level.put(at(sequence), codec.encode(at(sequence), row));
      }
      await level.put(
        'audit-head/ptr_1',
        codec.encode('audit-head/ptr_1', {
          partnerId: 'ptr_1',
          sequence: storeHead.sequence,
          mac: storeHead.mac,
        }),
      );
    });
    const opened = await openStore(directory, options);
    const walk = new AuditWalk([AUDIT_KEY], head);
    for (const entry of await auditOf({ stores: opened }, 'ptr_1')) walk.take(entry);
    await opened.close();
    const { ok, fault } = walk.end();
    return ok ? 'sound' : `${fault?.sequence} ${fault?.reason}`;
  };
  const [first, second, third, fourth, fifth] = entries as [
    AuditEntry,
    AuditEntry,
    AuditEntry,
    AuditEntry,
    AuditEntry,
  ];
  t.equal(await verdict(entries), 'sound');
  t.equal(
    await verdict([first, { ...second, actor: 'key_9' }, third, fourth, fifth]),
    '2 mac_mismatch',
    'edited',
  );
  t.equal(await verdict([first, third, fourth, fifth]), '2 sequence_broken', 'one taken out');
  t.equal(await verdict([first, third, second, fourth, fifth]), '2 sequence_broken', 'two exchanged');
  t.equal(
    await verdict([first, { ...third, sequence: 2 }, { ...second, sequence: 3 }, fourth, fifth]),
    '2 mac_mismatch',
    'and numbered anew',
  );
  t.equal(await verdict([first, second, third]), '3 truncated', 'cut off, with the head in the store');
  t.equal((await heads.get('ptr_1'))?.sequence, 5, 'opening took the recorded head for no less');
  t.equal(await verdict([first, second, third], fifth), '3 truncated');
});

void t.test('an acknowledgement comes after the sync', async (t) => {
  if (!tool(t, 'strace')) return;
  const directory = t.testdir();
  const trace = (mode: string, argument = '') => {
    const output = join(directory, `${mode}.trace`);
    const { status, stderr } = spawnSync(
      'strace',
      [
        '-f',
        '-y',
        '-e',
        'trace=write,fdatasync,fsync',
        '-s',
        '32',
        '-o',
        output,
        ...PLAIN_NODE,
        WRITER,
        mode,
        join(directory, mode),
        argument,
      ],
      { encoding: 'utf8' },
    );
    t.equal(status, 0, stderr);
    const lines = readFileSync(output, 'utf8').split('\n');
    const said = (text: string) =>
      lines.findIndex((line) => line.includes(`"${text}\\n"`) && line.includes('write(1<'));
    return lines.slice(said('ready'), said('acknowledged'));
  };

  const once = trace('charge-once');
  const written = once.findLastIndex((line) => /write\(\d+<[^>]*\.log>/.test(line));
  t.ok(written > 0, 'the log was written after the store was ready');
  const sync = syncs(once.slice(written));
  t.equal(sync.length, 1, 'and synced, successfully, before the acknowledgement was written');
  t.comment(once.slice(written).join('\n'));

  const together = syncs(trace('charge-together', '1000'));
  t.ok(
    together.length >= 1 && together.length <= 3,
    `1000 concurrent charges took ${together.length} syncs of the log`,
  );
});

/**
 * Returns the successful syncs of the log in a trace. A call that another thread's line interrupts ends in
 * its own line.
 */
function syncs(lines: readonly string[]): readonly string[] {
  return lines.filter((line, i) => {
    const call = /^(\d+) +f(?:data)?sync\(\d+<[^>]*\.log>(.*)$/.exec(line);
    if (call === null) return false;
    if (!call[2]!.includes('unfinished')) return /= 0$/.test(line);
    const end = lines.slice(i + 1).find((later) => later.startsWith(`${call[1]} `));
    return end !== undefined && /resumed>\) *= 0$/.test(end);
  });
}

void t.test('a store goes on when a full disk has space again', async (t) => {
  if (!tool(t, 'prlimit')) return;
  // No file may exceed 256 KiB. The record at this limit is written in part, as on a full disk.
  await outlives(t, ['prlimit', '--fsize=262144:'], (pid) =>
    t.equal(spawnSync('prlimit', ['--pid', String(pid), '--fsize=unlimited:']).status, 0),
  );
});

void t.test('a store goes on after a failed sync', async (t) => {
  if (!tool(t, 'strace')) return;
  // After a failed sync LevelDB accepts no write until it is opened again. strace counts calls by thread, so
  // the process has one thread.
  await outlives(
    t,
    [
      'strace',
      '-f',
      '-o',
      '/dev/null',
      '-e',
      'trace=fdatasync',
      '-e',
      'inject=fdatasync:error=EIO:when=40',
      'env',
      'UV_THREADPOOL_SIZE=1',
    ],
    () => undefined,
  );
});

/** @param mend called with the process's id when the process has met the failure */
async function outlives(
  t: Test,
  wrapper: readonly [string, ...string[]],
  mend: (pid: number) => void,
): Promise<void> {
  const directory = join(t.testdir(), 'store');
  const [command, ...before] = wrapper;
  const child = spawn(command, [...before, ...PLAIN_NODE, WRITER, 'fill', directory], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const charged: string[] = [];
  let failure = '';
  let back = false;
  for await (const line of createInterface({ input: child.stdout })) {
    const [word, ...rest] = line.split(' ');
    if (word === 'charged') charged.push(rest[0]!);
    if (word === 'back') back = true;
    if (word === 'full') {
      failure = rest.join(' ');
      mend(child.pid!);
    }
  }
  t.equal(failure, 'unavailable store_unavailable');
  t.ok(back, 'it serves again without a restart');
  t.ok(charged.length > 100 && charged.includes('after-49'));
  const stores = await openStore(directory);
  await checkCharges(t, stores, 'ptr_full', new Set(charged), charged);
  await stores.close();
}

/** Returns whether a tool of the system exists. Without it the test is skipped. In CI it fails. */
function tool(t: Test, name: string): boolean {
  if (spawnSync(name, ['--version']).error === undefined) return true;
  if (process.env.CI) t.fail(`${name} is not installed`);
  else t.pass('not shown here', { skip: `${name} is not installed` });
  return false;
}
