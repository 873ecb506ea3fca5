/** Alerts for Prometheus: it takes the file, each alert comes when it should, and no metric is named that there is not. */
import { execFile } from 'node:child_process';
import { cp, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import t from 'tap';
import { createMetrics } from '../../src/telemetry/metrics.js';
import { needs } from '../fixtures/tools.js';
import { ROOT } from './pages.js';

const FOLDER = join(ROOT, 'deploy/prometheus');
const run = promisify(execFile);

t.test('every metric that an alert asks for is one of the service', async (t) => {
  const stats = () => undefined;
  const clocks = () => ({ processSeconds: 0, nodesSeconds: 0 });
  const metrics = createMetrics(
    stats,
    () => 0,
    () => new Map(),
    () => [
      { certificate: 'signing', validity: { notBefore: 0, notAfter: 0 }, warning: undefined },
      { certificate: 'tls', validity: { notBefore: 0, notAfter: 0 }, warning: undefined },
    ],
    clocks,
  );
  const known = new Set(
    [...(await metrics.render()).text.matchAll(/^# TYPE (\w+)/gm)].map(([, name]) => name),
  );
  const asked = new Set((await readFile(join(FOLDER, 'alerts.yml'), 'utf8')).match(/\btakemark_\w+/g));
  t.ok(asked.size > 10, `${asked.size} metrics`);
  t.strictSame(
    [...asked].filter((name) => !known.has(name.replace(/_bucket$/, ''))),
    [],
  );
});

t.test('each alert comes when it should', { skip: needs('promtool') }, async (t) => {
  const { stdout } = await run('promtool', ['check', 'rules', join(FOLDER, 'alerts.yml')]);
  t.match(stdout, /SUCCESS: 18 rules/);
  await run('promtool', ['test', 'rules', join(FOLDER, 'alerts.test.yml')]);
  const rules = await readFile(join(FOLDER, 'alerts.yml'), 'utf8');
  const tests = await readFile(join(FOLDER, 'alerts.test.yml'), 'utf8');
  const names = [...rules.matchAll(/- alert: (\w+)/g)].map(([, name]) => name!);
  t.strictSame(
    names.filter((name) => !tests.includes(`"${name}"`)),
    [],
    'each is tried',
  );
  // The tests fail where a threshold is another one.
  const changed = t.testdir();
  await cp(FOLDER, changed, { recursive: true });
  await writeFile(join(changed, 'alerts.yml'), rules.replace('> 0.05', '> 0.5'));
  await t.rejects(run('promtool', ['test', 'rules', join(changed, 'alerts.test.yml')]));
});
