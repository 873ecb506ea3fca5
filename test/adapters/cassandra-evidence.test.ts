/**
 * Tests evidence on a real Cassandra: what its tables contain after erasures, crashes and failed issuings.
 */
import t from 'tap';
import { auditOf } from '../store-contract/audit-contract.js';
import { takeWaiting } from '../store-contract/outbox-contract.js';
import { allFound, MARKS, markedProof, marksIn } from '../store-contract/remains.js';
import { audit, issuedProof, NOW, overlayOf, takeBack } from '../store-contract/samples.js';
import {
  ADDRESSES,
  carryOut,
  connection,
  killedAt,
  migrated,
  openStore,
  patient,
  withClient,
  withheld,
} from './cassandra-under-test.js';

/** Returns the content of all tables of the keyspace as one text. */
async function rawContent(): Promise<string> {
  return withClient(async (client) => {
    const tables = await client.execute(
      'SELECT table_name FROM system_schema.tables WHERE keyspace_name = ?',
      [connection.keyspace],
      { prepare: true },
    );
    const found: string[] = [];
    for (const table of tables.rows) found.push(await tableContent(String(table['table_name'])));
    return found.join('\n');
  }, connection.keyspace);
}

async function tableContent(table: string): Promise<string> {
  return withClient(async (client) => {
    const { rows } = await client.execute(`SELECT * FROM ${table}`);
    return rows.flatMap((row) => row.values().map(textOf)).join('\n');
  }, connection.keyspace);
}

function textOf(value: unknown): string {
  return Buffer.isBuffer(value) ? value.toString('latin1') : (JSON.stringify(value) ?? '');
}

/**
 * Returns the content when no mark is left in it, or after a minute, because acts and pointers are deleted in
 * the background.
 */
async function settled(): Promise<string> {
  for (let attempt = 0; ; attempt += 1) {
    const content = await rawContent();
    if (attempt === 120 || marksIn(content).length === 0) return content;
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
}

if (ADDRESSES === undefined) {
  void t.test(
    'evidence on Cassandra',
    { skip: 'TAKEMARK_CASSANDRA is not set: npm run services:up starts a server and prints it' },
    () => undefined,
  );
} else {
  t.before(migrated);

  void t.test('an erasure leaves nothing of evidence, declarations and consent in any table', async (t) => {
    const stores = patient(await openStore());
    t.teardown(() => stores.close());
    const { proof, erase } = await markedProof(stores, 'prf_remains', 'ptr_remains');
    allFound(t, await rawContent());
    t.match(await erase(), { outcome: 'erased' });
    await takeWaiting(stores);
    t.strictSame(marksIn(await settled()), [], 'after the erasure');
    t.equal(await stores.confirmErasure(proof.proofId, NOW + 1), 'confirmed');
    t.strictSame(marksIn(await settled()), [], 'after the confirmation');
  });

  void t.test('the tombstone leaves no evidence, and after a later crash no index', async (t) => {
    const other = patient(await openStore());
    t.teardown(() => other.close());
    for (const finish of ['confirmation', 'repetition', 'sweep'] as const) {
      const doomed = await openStore();
      const { proof, erase } = await markedProof(doomed, `prf_crash-${finish}`, 'ptr_crash');
      const { wasKilled } = await killedAt("UPDATE record SET state = 'erased'", true, erase);
      t.ok(wasKilled);
      await doomed.close();
      t.equal((await other.getProof(proof.proofId))?.state, 'erased');
      t.strictSame(marksIn(await rawContent()), [], 'no table has any of it from the decision on');
      t.equal(await other.readEvidence(proof.proofId, 'facts'), undefined);
      const naming = async () =>
        (await rawContent()).split('\n').filter((value) => value === JSON.stringify(proof.proofId)).length;
      const before = await naming();
      if (finish === 'confirmation')
        t.equal(await other.confirmErasure(proof.proofId, NOW + 1), 'confirmed', 'is not said before');
      if (finish === 'repetition')
        t.match(
          await other.eraseProof(
            proof.proofId,
            proof.partnerId,
            NOW + 1,
            audit(proof.partnerId, 'proof_erased', proof.proofId),
          ),
          { outcome: 'already_erased', proof: { erasedAt: NOW } },
        );
      if (finish === 'sweep') {
        const realNow = Date.now;
        Date.now = () => realNow() + 360_000;
        try {
          await other.collectExpired(NOW, 100);
        } finally {
          Date.now = realNow;
        }
      }
      t.ok((await naming()) < before, `${finish}: what pointed at the proof is gone`);
      for (const table of ['proof_by_partner', 'proof_by_bound', 'proof_by_original'])
        t.notOk(
          (await tableContent(table)).split('\n').includes(JSON.stringify(proof.proofId)),
          `${finish}: ${table}`,
        );
      t.strictSame(
        (await takeWaiting(other)).filter(({ key }) => key === proof.proofId).map(({ kind }) => kind),
        ['proof_erased'],
        `${finish}: the event, once`,
      );
      t.strictSame(
        (await auditOf({ stores: other }, 'ptr_crash'))
          .filter(({ action, subjects }) => action === 'proof_erased' && subjects[0] === proof.proofId)
          .map(({ action }) => action),
        ['proof_erased'],
        `${finish}: the audit entry, once`,
      );
    }
  });

  void t.test('evidence is written with its proof or not at all, however late', async (t) => {
    const stores = patient(await openStore());
    t.teardown(() => stores.close());
    const partnerId = 'ptr_orphan';
    const proof = issuedProof('prf_orphan', partnerId);
    await stores.reserveProof(proof.proofId, partnerId, NOW);
    const held = await withheld('INSERT INTO record', () =>
      stores.issueProof(proof, audit(partnerId, 'proof_issued', proof.proofId), undefined, [
        { part: 'facts', body: Buffer.from(MARKS.facts) },
      ]),
    );
    t.equal(held.length, 3, 'head, evidence and act in one batch');
    t.notOk(marksIn(await rawContent()).includes('facts'), 'no table has any of it before the decision');
    t.equal(await stores.readEvidence(proof.proofId, 'facts'), undefined);
    t.strictSame(await takeBack(stores, NOW + 1), [proof.proofId]);
    t.notOk(await carryOut(held));
    t.notOk(marksIn(await rawContent()).includes('facts'), 'nor does a late statement bring it');
    t.equal(await stores.readEvidence(proof.proofId, 'facts'), undefined);
  });

  void t.test('a changed overlay whose process died is audited by another one, once', async (t) => {
    const [other, doomed] = [patient(await openStore()), await openStore()];
    t.teardown(() => other.close());
    const partnerId = 'ptr_overlay';
    const proof = issuedProof('prf_overlay', partnerId);
    await other.reserveProof(proof.proofId, partnerId, NOW);
    await other.issueProof(proof, audit(partnerId, 'proof_issued', proof.proofId));
    const change = (stores: typeof other, revision: number) =>
      stores.changeOverlay(
        proof.proofId,
        () => ({ result: revision, overlay: overlayOf([], revision) }),
        audit(partnerId, 'consent_granted', proof.proofId),
      );
    const { wasKilled } = await killedAt('UPDATE record SET body', true, () => change(doomed, 1));
    t.ok(wasKilled);
    await doomed.close();
    t.match(await other.getProof(proof.proofId), { overlay: { revision: 1 } });
    await change(other, 2);
    const realNow = Date.now;
    Date.now = () => realNow() + 720_000;
    try {
      await other.collectExpired(NOW, 100);
    } finally {
      Date.now = realNow;
    }
    t.strictSame(
      (await auditOf({ stores: other }, partnerId)).map(({ action }) => action),
      ['proof_issued', 'consent_granted', 'consent_granted'],
      'though a later change came before the sweep',
    );
  });
}
