import t from 'tap';
import { migrate } from '../../src/service/adapters/cassandra/driver/migrations.js';
import { AuditWalk } from '../../src/service/domain/audit.js';
import { again } from '../fixtures/again.js';
import { DAY } from '../store-contract/outbox-contract.js';
import { audit, NOW, usageCharge } from '../store-contract/samples.js';
import {
  ADDRESSES,
  connection,
  dropKeyspace,
  KEY,
  memoryHeads,
  openStore,
  withClient,
} from './cassandra-under-test.js';
import { move, PARTNER } from './move-body.js';

void t.test(
  'a cluster serves what was imported, and erased proofs stay erased',
  { skip: ADDRESSES === undefined && 'TAKEMARK_CASSANDRA is not set' },
  async (t) => {
    const keyspace = `${connection.keyspace}_move`;
    await again(() => migrate({ ...connection, keyspace }));
    t.teardown(() => dropKeyspace(keyspace));
    const heads = memoryHeads();
    const stores = await openStore({ keyspace, audit: { key: KEY, heads } });
    t.teardown(() => stores.close());
    await move(t, stores.moveTarget);
    const now = NOW + 200;
    t.strictSame(
      (await stores.listProofs(PARTNER, { limit: 10 })).map(({ proofId }) => proofId),
      ['prf_moved-kept'],
    );
    t.strictSame(await stores.getProof('prf_moved-erased'), {
      state: 'erased',
      proofId: 'prf_moved-erased',
      partnerId: PARTNER,
      erasedAt: NOW + 1,
      confirmedAt: NOW + 2,
    });
    t.strictSame(
      (await stores.findProofs('bound', '56'.repeat(32), 10)).map(({ proofId }) => proofId),
      ['prf_moved-kept'],
    );
    t.strictSame(
      (await stores.listKeys(PARTNER)).map(({ keyId }) => keyId),
      ['key_moved-1', 'key_moved-2'],
    );
    t.equal((await stores.getPartner(PARTNER))?.sourceDetail?.consentVersion, 'consent-1');
    t.equal(await stores.getUsed(PARTNER, NOW), 4);
    t.strictSame(await stores.getDailyUsage(PARTNER, DAY, DAY), [{ day: DAY, operations: { verify: 4 } }]);
    const charge = usageCharge(PARTNER, 'once', { at: NOW + 200, request: 'cd'.repeat(32) });
    t.strictSame(await stores.charge(charge), { outcome: 'already_charged', used: 0 });
    const other = await stores.charge(usageCharge(PARTNER, 'next'));
    t.strictSame(other, { outcome: 'charged', used: 5 }, 'the count goes on where it was');
    t.strictSame(
      (await stores.listReviews(PARTNER, { limit: 10 }, now)).reviews.map(({ reviewId }) => reviewId),
      ['rvw_moved'],
    );
    const [upload] = await withClient(
      async (client) =>
        (
          await client.execute(
            "SELECT TTL(expires_at) AS slot, TTL(facts) AS facts FROM upload WHERE upload_id = 'upl_moved'",
          )
        ).rows,
      keyspace,
    );
    // A row lives 11,700 seconds, and the slot was 100 seconds old at the import, its facts 99.
    t.ok(upload?.['slot'] <= 11_600, 'a slot lives for what is left');
    t.ok(upload?.['facts'] <= 11_601, 'facts live for what is left');
    const erased = await stores.eraseProof(
      'prf_moved-kept',
      PARTNER,
      now,
      audit(PARTNER, 'proof_erased', 'prf_moved-kept'),
    );
    t.equal(erased !== 'not_found' && erased.outcome, 'erased');
    t.strictSame((await stores.listReviews(PARTNER, { limit: 10 }, now)).reviews, []);
    const entries = await again(async () => {
      const found = await stores.readAudit(PARTNER, 1, 100);
      if (found.at(-1)?.subjects[0] !== 'prf_moved-kept') throw new Error('the entry is not chained yet');
      return found;
    });
    const walk = new AuditWalk([KEY], await heads.get(PARTNER));
    for (const entry of entries) walk.take(entry);
    t.equal(walk.end().ok, true, 'the chain goes on from the imported head');
  },
);
