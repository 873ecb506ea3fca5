import t from 'tap';
import { PARTNER_ROUTES } from '../../src/service/contract/routes/partner-routes.js';
import { runContract } from '../fixtures/contract-generator.js';
import { seedsOf } from '../fixtures/seeds.js';
import { TestService } from '../fixtures/service.js';
import { noise, wav } from '../fixtures/wav.js';
import { KEY, startPartner } from '../http/doubles.js';

const COUNT = Number(process.env['TAKEMARK_REQUESTS'] ?? 3000);
/** The number of requests to the whole service. It is lower because the store syncs each of its writes. */
const SERVICE_COUNT = COUNT / 3;

for (const seed of seedsOf('requests')) {
  t.test(`${COUNT} requests derived from the document, seed ${seed}`, async (t) => {
    const { port, listener } = await startPartner({}, {}, 'beta');
    t.teardown(() => listener.close(100));
    const began = Date.now();
    const run = await runContract(
      { port, apiKey: KEY, known: { proofId: ['prf_1', 'prf_2'], product: ['companion'] } },
      { count: COUNT, seed },
    );
    t.comment(
      `${run.sent} requests, ${run.valid} of them valid, in ${Date.now() - began} ms; statuses ${JSON.stringify(Object.fromEntries([...run.statuses].sort()))}`,
    );
    t.strictSame(run.problems, [], `no problem with the seed ${seed}`);
    t.ok(run.valid > COUNT / 4 && run.valid < (COUNT * 3) / 4, 'valid and broken ones');
    for (const status of [200, 201, 202, 302, 400, 403, 404, 405, 409, 415])
      t.ok((run.statuses.get(status) ?? 0) > 0, `some are answered with ${status}`);
  });

  t.test(`${SERVICE_COUNT} requests to the whole service, seed ${seed}`, async (t) => {
    const service = await TestService.start({
      TAKEMARK_LOG_LEVEL: 'silent',
      // Every route is there.
      TAKEMARK_ENVIRONMENT: 'beta',
      TAKEMARK_DOWNLOADS: '{"companion/macos":"https://downloads.example.com/macos"}',
    });
    t.teardown(() => service.stop());
    const { partnerId, apiKey } = await service.partner('volume');
    const proofs = [];
    for (let i = 0; i < 40; i += 1)
      proofs.push(
        await service.issue(partnerId, wav(1000, {}, i + 1), {
          carrier: i % 2 === 0 ? 'embedded' : 'sidecar',
        }),
      );
    const known = {
      proofId: proofs.map(({ proofId }) => proofId),
      product: ['companion'],
      platform: ['macos'],
    };
    const run = await runContract(
      {
        port: service.service.partner.port,
        apiKey,
        known,
        audio: [proofs[0]!.file, proofs[1]!.file, wav(500), noise(100)],
      },
      { count: SERVICE_COUNT, seed },
    );
    t.comment(`statuses ${JSON.stringify(Object.fromEntries([...run.statuses].sort()))}`);
    t.strictSame(run.problems, [], `no problem with the seed ${seed}`);
    // The number of product events that a partner may report is below the number of requests.
    const limits = run.limits.filter((each) => !each.includes('"product_events"'));
    t.strictSame(limits, [], 'no limit of calls refuses any of them');
    t.comment(
      `never seen: ${Object.keys(PARTNER_ROUTES)
        .filter(
          (id) =>
            ![...run.seen].some(
              (name) => /^2|^302/.test(name.slice(id.length + 1)) && name.startsWith(`${id} `),
            ),
        )
        .join(', ')}`,
    );
  });
}
