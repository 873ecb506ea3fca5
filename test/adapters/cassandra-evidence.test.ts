/** Evidence on a real Cassandra: what lies in its tables after erasures, crashes and issuings that came to nothing. */
import t from 'tap';
import { migrate } from '../../src/adapters/cassandra/driver/migrations.js';
import { again } from '../fixtures/again.js';
import { auditOf } from '../store-contract/audit-contract.js';
import { takeWaiting } from '../store-contract/outbox-contract.js';
import { allFound, MARKS, markedProof, marksIn } from '../store-contract/remains.js';
import { audit, issuedProof, issuingReplay, NOW, overlayOf } from '../store-contract/samples.js';
import {
  ADDRESSES,
  connection,
  dropKeyspace,
  intercepted,
  openStore,
  patient,
  type Sent,
  withClient,
} from './cassandra-under-test.js';

/** All that lies in all tables of the keyspace, as one text. */
async function rawContent(): Promise<string> {
  return withClient(async (client) => {
    const tables = await client.execute(
      'SELECT table_name FROM system_schema.tables WHERE keyspace_name = ?',
      [connection.keyspace],
      { prepare: true },
    );
    const found: string[] = [];
    for (const table of tables.rows) {
      const { rows } = await client.execute(`SELECT * FROM ${table['table_name']}`);
      for (const row of rows) for (const value of row.values()) found.push(textOf(value));
    }
    return found.join('\n');
  }, connection.keyspace);
}

function textOf(value: unknown): string {
  return Buffer.isBuffer(value) ? value.toString('latin1') : (JSON.stringify(value) ?? '');
}

/** Content once nothing of the marks is left in it, or after ten seconds: intents are removed without being waited for. */
async function settled(): Promise<string> {
  for (let attempt = 0; ; attempt += 1) {
    const content = await rawContent();
    if (attempt === 20 || marksIn(content).length === 0) return content;
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
  t.before(() => again(() => migrate(connection)));
  t.teardown(() => dropKeyspace(connection.keyspace));

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

  void t.test('after a crash behind the tombstone nobody reads evidence, and it is removed', async (t) => {
    const other = patient(await openStore());
    t.teardown(() => other.close());
    for (const finish of ['confirmation', 'sweep'] as const) {
      const doomed = await openStore();
      const { proof, erase } = await markedProof(doomed, `prf_crash-${finish}`, 'ptr_crash');
      let decided = false;
      await intercepted(
        (sent) => {
          if (decided) throw new TypeError('killed');
          decided = sent.some(({ query }) => query.startsWith("UPDATE proof SET state = 'erased'"));
        },
        () => t.rejects(erase()),
      );
      await doomed.close();
      t.equal((await other.getProof(proof.proofId))?.state, 'erased');
      const left = marksIn(await rawContent());
      t.ok(left.includes('facts') && left.includes('detail'), 'the rows are still there');
      t.notOk(left.includes('declaration') || left.includes('consent') || left.includes('conflict'));
      t.equal(await other.readEvidence(proof.proofId, 'facts'), undefined, 'and are read by nobody');
      if (finish === 'confirmation') await other.confirmErasure(proof.proofId, NOW + 1);
      const realNow = Date.now;
      if (finish === 'sweep') Date.now = () => realNow() + 360_000;
      try {
        if (finish === 'sweep') await other.collectExpired(NOW, 100);
      } finally {
        Date.now = realNow;
      }
      await takeWaiting(other);
      const remain = marksIn(finish === 'sweep' ? await settled() : await rawContent());
      t.notOk(remain.includes('facts') || remain.includes('detail'), finish);
      if (finish === 'sweep') t.strictSame(remain, []);
    }
  });

  void t.test(
    'evidence of an issuing that came to nothing goes with its reservation, for good',
    async (t) => {
      const stores = patient(await openStore());
      t.teardown(() => stores.close());
      const partnerId = 'ptr_orphan';
      const [first, second] = ['prf_first', 'prf_second'].map((proofId) => issuedProof(proofId, partnerId));
      const draft = audit(partnerId, 'proof_issued', 'prf_first');
      const replay = (proofId: string) => issuingReplay('orphan', proofId);
      for (const proof of [first!, second!]) await stores.reserveProof(proof.proofId, partnerId, NOW);
      await stores.issueProof(first!, draft, replay('prf_first'));
      const written: Sent[] = [];
      let doomed = true;
      await intercepted(
        (sent) => {
          for (const one of sent) if (one.query.startsWith('INSERT INTO evidence')) written.push(one);
          // The process dies when its evidence is written, and before anything is decided.
          if (doomed && sent.some(({ query }) => query.startsWith('INSERT INTO intent'))) {
            doomed = false;
            throw new TypeError('killed');
          }
        },
        () =>
          t.rejects(
            stores.issueProof(second!, draft, undefined, [{ part: 'facts', body: Buffer.from(MARKS.facts) }]),
          ),
      );
      t.equal(written.length, 1);
      t.ok(marksIn(await rawContent()).includes('facts'));
      t.equal(await stores.readEvidence('prf_second', 'facts'), undefined);
      t.strictSame(await stores.collectReservations(NOW + 1), ['prf_second']);
      t.notOk(marksIn(await rawContent()).includes('facts'));
      await withClient(
        (client) => client.execute(written[0]!.query, written[0]!.params, { prepare: true }),
        connection.keyspace,
      );
      t.notOk(marksIn(await rawContent()).includes('facts'), 'nor does a late statement bring it back');
    },
  );

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
    let decided = false;
    await intercepted(
      (sent) => {
        if (decided) throw new TypeError('killed');
        decided = sent.some(({ query }) => query.startsWith('UPDATE proof SET body'));
      },
      () => t.rejects(change(doomed, 1)),
    );
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
