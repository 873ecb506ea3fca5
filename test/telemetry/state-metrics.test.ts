/** The gauges of a process's state, and the watch over dependencies that do not end readiness. */
import t from 'tap';
import { type Dependency, DomainError } from '../../src/core/domain/errors.js';
import { DependencyWatch } from '../../src/service/background/dependency-watch.js';
import type { MetricSources } from '../../src/service/telemetry/gauges.js';
import { createMetrics } from '../../src/service/telemetry/metrics.js';

async function linesOf(sources: MetricSources): Promise<readonly string[]> {
  const metrics = createMetrics({
    eventsWaiting: () => 0,
    routes: [{ listener: 'partner', method: 'POST', path: '/v1/verify' }],
  });
  metrics.measure({ runsConsumers: true });
  metrics.measure(sources);
  return (await metrics.render()).text.split('\n');
}

t.test('counters of failures start at 0 for every route', async (t) => {
  const lines = await linesOf({});
  for (const status of [500, 503])
    t.ok(
      lines.includes(
        `takemark_requests_total{listener="partner",method="POST",route="/v1/verify",status="${status}"} 0`,
      ),
    );
  t.ok(lines.includes('takemark_faults_total{where="/v1/verify"} 0'));
});

t.test('gauges show the state of the process', async (t) => {
  const lines = await linesOf({
    oldestEventAge: () => 61,
    ready: async () => undefined,
    dependencies: () => new Map([['bucket', true] as const, ['kafka', false] as const]),
    space: async () => [{ directory: 'data', resource: 'inodes', free: 0.25 }],
    processes: () => 3,
  });
  for (const line of [
    'takemark_outbox_oldest_seconds 61',
    'takemark_ready{reason=""} 1',
    'takemark_dependency_missing{dependency="bucket"} 1',
    'takemark_dependency_missing{dependency="kafka"} 0',
    'takemark_disk_free_ratio{directory="data",resource="inodes"} 0.25',
    'takemark_consumers 1',
    'takemark_processes 3',
  ])
    t.ok(lines.includes(line), line);
  const unready = await linesOf({
    ready: async () => {
      throw new DomainError('unavailable', 'The store does not respond.', { reason: 'store_unavailable' });
    },
  });
  t.ok(unready.includes('takemark_ready{reason="store_unavailable"} 0'));
  t.notOk(unready.some((line) => line.startsWith('takemark_ready{reason=""}')));
  t.ok(unready.includes('takemark_outbox_oldest_seconds 0'), 'nothing waits');
  t.notOk(
    unready.some((line) => line.startsWith('takemark_processes ')),
    'it serves no partners',
  );
});

t.test('a watch reports a dependency when it stops answering, and when it answers again', async (t) => {
  const failure = new Error('refused');
  let answer: () => Promise<void> = async () => undefined;
  const reports: [string, Dependency, unknown?][] = [];
  const watch = new DependencyWatch(
    new Map<Dependency, () => Promise<void>>([
      ['bucket', () => answer()],
      ['kafka', async () => undefined],
    ]),
    {
      missing: (dependency, error) => void reports.push(['missing', dependency, error]),
      back: (dependency) => void reports.push(['back', dependency]),
    },
    20,
  );
  await watch.look();
  t.strictSame(watch.missing, []);
  answer = () => Promise.reject(failure);
  await watch.look();
  await watch.look();
  t.strictSame(watch.missing, ['bucket']);
  t.strictSame(
    [...watch.states],
    [
      ['bucket', true],
      ['kafka', false],
    ],
  );
  t.strictSame(reports.splice(0), [['missing', 'bucket', failure]], 'one outage is one report');
  answer = async () => undefined;
  await watch.look();
  t.strictSame(reports.splice(0), [['back', 'bucket']]);
  answer = () => new Promise(() => undefined);
  await watch.look();
  t.match(reports, [['missing', 'bucket', { message: 'timed out' }]], 'a silent dependency is missing');
});
