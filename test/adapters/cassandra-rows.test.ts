import t from 'tap';
import { ProofRows } from '../../src/adapters/cassandra/proof-rows.js';
import type { Row, Session } from '../../src/adapters/cassandra/session.js';

/** Needs no server: a session that always gives this row. */
const giving = (row: Readonly<Record<string, unknown>> | undefined): ProofRows => new ProofRows({ first: async () => row as Row | undefined } as unknown as Session, {} as never);

t.test('a row that was not asked for is no answer', async (t) => {
  const erased = { proof_id: 'prf_1', partner_id: 'ptr_1', state: 'erased', erased_at: 5 };
  t.strictSame(await giving(erased).get('prf_1'), { state: 'erased', proofId: 'prf_1', partnerId: 'ptr_1', erasedAt: 5 });
  t.equal(await giving(undefined).get('prf_1'), undefined);
  await t.rejects(giving(erased).get('prf_2'), { code: 'unavailable', reason: 'store_unavailable' });
});
