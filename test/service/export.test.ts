/** The export of one machine: its service answers no call from then on, until the operator ends this. */
import { join } from 'node:path';
import t from 'tap';
import { parseClusterBundle } from '../../src/service/adapters/signing/cluster-bundle.js';
import { exportInstallation, readExportedBundle, resumeService } from '../../src/service/compose/move.js';
import { readConfig } from '../../src/service/config/config.js';
import { TestService } from '../fixtures/service.js';
import { wav } from '../fixtures/wav.js';

const PASSPHRASE = 'correct horse battery staple';

t.test('an exported service answers no call until the operator resumes it', async (t) => {
  const directory = t.testdir();
  const settings = { TAKEMARK_DATA_DIR: join(directory, 'data') };
  const config = readConfig(settings);
  const path = join(directory, 'move.takemark');
  const serving = async <Value>(work: (service: TestService) => Promise<Value>): Promise<Value> => {
    const service = await TestService.start(settings);
    try {
      return await work(service);
    } finally {
      await service.stop({ keep: true });
    }
  };
  const list = async ({ partnerUrl }: TestService) => {
    const response = await fetch(`${partnerUrl}/v1/proofs`, { headers: { 'x-api-key': apiKey } });
    const { proofs, reason } = (await response.json()) as { proofs?: readonly unknown[]; reason?: string };
    return { status: response.status, proofs: proofs?.length, reason };
  };
  const apiKey = await serving(async (service) => {
    const { partnerId, apiKey } = await service.partner();
    await service.issue(partnerId, wav(8000));
    await t.rejects(exportInstallation(config, path, PASSPHRASE), 'the service holds the store');
    return apiKey;
  });

  await t.rejects(exportInstallation(config, path, 'short'), { message: /at least 16 characters/ });
  t.strictSame(await serving(list), { status: 200, proofs: 1, reason: undefined });

  const { rows, proofs, erased } = await exportInstallation(config, path, PASSPHRASE);
  t.ok(rows > 1);
  t.strictSame({ proofs, erased }, { proofs: 1, erased: 0 });
  const { operatorToken } = parseClusterBundle(await readExportedBundle(path, PASSPHRASE), path);
  t.ok(operatorToken, 'the bundle is one of a cluster');
  t.strictSame(await serving(list), { status: 503, proofs: undefined, reason: 'registry_moved' });
  await t.rejects(exportInstallation(config, path, PASSPHRASE), { message: /never replaces a file/ });

  await resumeService(config);
  t.strictSame(await serving(list), { status: 200, proofs: 1, reason: undefined });
  await t.rejects(resumeService(config), { message: /there is nothing to resume/ });
});
