/** The dashboards and the page of metrics are those that the registry of metrics makes. */
import { execFile } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import t from 'tap';
import { metricCatalogue, metricsPage } from '../../src/service/telemetry/metric-catalogue.js';
import type { MetricDescription } from '../../src/service/telemetry/metrics.js';
import { needs } from '../fixtures/tools.js';
import { ROOT } from './pages.js';

interface Code {
  dashboards(catalogue: readonly MetricDescription[]): ReadonlyMap<string, string>;
  expressions(interval: string): readonly string[];
  metricsOf(expression: string, catalogue: readonly MetricDescription[]): readonly MetricDescription[];
}

const FOLDER = join(ROOT, 'deploy/grafana/dashboards');
const code = (await import(join(ROOT, 'deploy/grafana/dashboards.mjs'))) as Code;

t.test('each dashboard and the page of metrics are written from the registry', async (t) => {
  const written = code.dashboards(await metricCatalogue());
  t.strictSame((await readdir(FOLDER)).sort(), [...written.keys()].sort());
  for (const [file, text] of written)
    t.equal(await readFile(join(FOLDER, file), 'utf8'), text, `${file}: npm run build:metrics`);
  const page = await readFile(join(ROOT, 'docs/operating/metrics.md'), 'utf8');
  t.equal(page, await metricsPage(), 'npm run build:metrics');
});

t.test('an expression is refused if it names a metric or a label that does not exist', async (t) => {
  const catalogue = await metricCatalogue();
  const metrics = code.metricsOf('sum by (route) (takemark_requests_total{listener="partner"})', catalogue);
  t.strictSame(
    metrics.map(({ name, type, labels }) => ({ name, type, labels })),
    [
      {
        name: 'takemark_requests_total',
        type: 'counter',
        labels: ['listener', 'method', 'route', 'status'],
      },
    ],
  );
  for (const [expression, message] of [
    ['takemark_request_total', 'takemark_request_total is not a metric'],
    ['takemark_outbox_waiting_bucket', 'takemark_outbox_waiting_bucket is not a metric'],
    ['sum by (path) (takemark_requests_total)', 'path is not a label'],
    ['takemark_requests_total{state="500"}', 'state is not a label'],
  ] as const)
    t.throws(() => code.metricsOf(expression, catalogue), { message: new RegExp(`^${message}`) }, expression);
});

t.test('Prometheus parses every expression', { skip: needs('promtool') }, async (t) => {
  const rules = code.expressions('1m').map((expr, at) => ({ record: `dashboard:${at}`, expr }));
  const directory = t.testdir({ 'rules.yml': JSON.stringify({ groups: [{ name: 'dashboards', rules }] }) });
  const { stdout } = await promisify(execFile)('promtool', ['check', 'rules', join(directory, 'rules.yml')]);
  t.match(stdout, `SUCCESS: ${rules.length} rules found`);
});
