/** Alerts for Prometheus: it takes the file, each alert comes when it should, and no metric is named that there is not. */
import { execFile } from 'node:child_process';
import { cp, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import t from 'tap';
import { createMetrics } from '../../src/service/telemetry/metrics.js';
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

t.test('each alert has a runbook with its meaning, impact, first look and repair', async (t) => {
  const rules = await readFile(join(FOLDER, 'alerts.yml'), 'utf8');
  const page = await readFile(join(ROOT, 'docs/operating/alerts.md'), 'utf8');
  const parts = page.split(/^(?=#{2,3} )/m);
  const names = [...rules.matchAll(/- alert: (\w+)/g)].map(([, name]) => name!);
  const links = [...rules.matchAll(/runbook: (\S+)/g)].map(([, link]) => link);
  t.strictSame(
    links,
    names.map((name) => `docs/operating/alerts.md#${name.toLowerCase()}`),
  );
  for (const name of names) {
    const runbook = parts.find((part) => part.startsWith(`### ${name}\n`)) ?? '';
    t.strictSame(
      [...runbook.matchAll(/^- \*\*([^*]+)\.\*\* \S/gm)].map(([, label]) => label),
      ['Meaning', 'Impact', 'First look', 'Repair'],
      name,
    );
  }
});

t.test('each alert comes when it should', { skip: needs('promtool') }, async (t) => {
  const { stdout } = await run('promtool', ['check', 'rules', join(FOLDER, 'alerts.yml')]);
  t.match(stdout, /SUCCESS: 24 rules/);
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
  await writeFile(
    join(changed, 'alerts.yml'),
    rules.replace('{listener="partner"}[5m])) > 0.05', '{listener="partner"}[5m])) > 0.5'),
  );
  await t.rejects(run('promtool', ['test', 'rules', join(changed, 'alerts.test.yml')]));
});
