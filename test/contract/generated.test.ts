import t from 'tap';
import { runContract } from '../fixtures/contract-generator.js';
import { KEY, startPartner } from '../http/doubles.js';

/** Given to run a failure again: `TAKEMARK_TEST_SEED=123 node dist/test/contract/generated.test.js`. */
const SEED = Number(process.env['TAKEMARK_TEST_SEED'] ?? Date.now() % 1_000_000_000);
const COUNT = 20_000;

t.test(`${COUNT} requests derived from the document, seed ${SEED}`, async (t) => {
  t.setTimeout(120_000);
  const { port, listener } = await startPartner();
  t.teardown(() => listener.close(100));
  const began = Date.now();
  const run = await runContract({ port, apiKey: KEY, known: { proofId: ['prf_1', 'prf_2'], product: ['companion'] } }, { count: COUNT, seed: SEED });
  t.comment(`${run.sent} requests, ${run.valid} of them valid, in ${Date.now() - began} ms; statuses ${JSON.stringify(Object.fromEntries([...run.statuses].sort()))}`);
  t.same(run.problems, [], `no problem with the seed ${SEED}`);
  t.ok(run.valid > COUNT / 4 && run.valid < (COUNT * 3) / 4, 'valid and broken ones');
  for (const status of [200, 201, 202, 302, 400, 403, 404, 405, 409, 415]) t.ok((run.statuses.get(status) ?? 0) > 0, `some are answered with ${status}`);
});
