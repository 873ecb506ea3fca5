/** The dashboards of Grafana: what each panel asks of Prometheus. */

/** The width and height of a panel, of 24 columns. */
const WIDTH = 8;
const HEIGHT = 8;
/** Labels that Prometheus adds, and the one of a histogram's buckets. */
const ADDED_LABELS = ['job', 'instance', 'le'];
const PARTNER = 'job="takemark",instance=~"$instance",listener="partner"';
const SERVE = 'job="takemark",instance=~"$instance"';
const ALL = 'job=~"takemark.*",instance=~"$instance"';

const rate = (metric, labels = ALL) => `rate(${metric}{${labels}}[$__rate_interval])`;
const quantile = (share) =>
  `histogram_quantile(${share}, sum by (le, route) (${rate('takemark_request_duration_seconds_bucket', PARTNER)}))`;

/** A panel is a title, a unit of Grafana, and expressions with their legends. */
const line = (title, unit, ...queries) => ({ type: 'timeseries', title, unit, queries });
const number = (title, unit, ...queries) => ({ type: 'stat', title, unit, queries });

const DASHBOARDS = {
  service: {
    title: 'Takemark: service',
    panels: [
      number('Processes that are ready', 'short', [`sum by (job) (takemark_ready{${ALL}})`, '{{job}}']),
      number('Calls without 5xx, last hour', 'percentunit', [
        `1 - sum(rate(takemark_requests_total{${PARTNER},status=~"5.."}[1h])) / sum(rate(takemark_requests_total{${PARTNER}}[1h]))`,
        '',
      ]),
      number('Processes by version', 'short', [
        `count by (version, commit) (takemark_build_info{${ALL}})`,
        '{{version}} {{commit}}',
      ]),
      line('Calls by route', 'reqps', [
        `sum by (route) (${rate('takemark_requests_total', PARTNER)})`,
        '{{route}}',
      ]),
      line('Calls by status', 'reqps', [
        `sum by (status) (${rate('takemark_requests_total', PARTNER)})`,
        '{{status}}',
      ]),
      line('Duration, 99th percentile', 's', [quantile(0.99), '{{route}}']),
      line('Duration, median', 's', [quantile(0.5), '{{route}}']),
      line('Verdicts', 'cps', [
        `sum by (verdict) (${rate('takemark_verdicts_total', SERVE)})`,
        '{{verdict}}',
      ]),
      line('Uploads by outcome', 'cps', [
        `sum by (outcome) (${rate('takemark_uploads_total', SERVE)})`,
        '{{outcome}}',
      ]),
      line('Bytes of uploads', 'Bps', [`sum(${rate('takemark_upload_bytes_total', SERVE)})`, 'bytes']),
      line('Credentials issued', 'cps', [
        `sum by (carrier) (${rate('takemark_proofs_issued_total', SERVE)})`,
        '{{carrier}}',
      ]),
      line(
        'Evicted and refused',
        'cps',
        [`sum by (reason) (${rate('takemark_displaced_total', SERVE)})`, '{{reason}}'],
        [`sum by (reason) (${rate('takemark_refused_total', SERVE)})`, '{{reason}}'],
      ),
      line('Faults by place', 'cps', [
        `topk(10, sum by (where) (${rate('takemark_faults_total')}))`,
        '{{where}}',
      ]),
      line('Free share of the disks', 'percentunit', [
        `min by (directory, resource) (takemark_disk_free_ratio{${ALL}})`,
        '{{directory}} {{resource}}',
      ]),
      number('Days until a certificate ends', 'd', [
        `(min by (certificate) (takemark_certificate_expires_seconds{${SERVE}}) - time()) / 86400`,
        '{{certificate}}',
      ]),
    ],
  },
  engine: {
    title: 'Takemark: engine and processes',
    panels: [
      line('Uploads in the engine', 'short', [`takemark_engine_uploads_in_flight{${SERVE}}`, '{{instance}}']),
      line('Memory slabs in use', 'percentunit', [
        `takemark_engine_slabs_in_use{${SERVE}} / takemark_engine_slabs{${SERVE}}`,
        '{{instance}}',
      ]),
      line('Uploads of a task', 'short', [
        `${rate('takemark_engine_lanes', SERVE)} / ${rate('takemark_engine_tasks', SERVE)}`,
        '{{instance}}',
      ]),
      line('Bytes measured', 'Bps', [rate('takemark_engine_bytes', SERVE), '{{instance}}']),
      line('Workers replaced, last hour', 'short', [
        `increase(takemark_engine_worker_restarts{${SERVE}}[1h])`,
        '{{instance}}',
      ]),
      line('Cores used', 'short', [rate('process_cpu_seconds_total'), '{{instance}}']),
      line('Resident memory', 'bytes', [`process_resident_memory_bytes{${ALL}}`, '{{instance}}']),
      line('Delay of the event loop, 99th percentile', 's', [
        `nodejs_eventloop_lag_p99_seconds{${ALL}}`,
        '{{instance}}',
      ]),
      line('Time of garbage collection', 'percentunit', [
        `sum by (instance, kind) (${rate('nodejs_gc_duration_seconds_sum')})`,
        '{{instance}} {{kind}}',
      ]),
      line('Open files', 'percentunit', [
        `process_open_fds{${ALL}} / process_max_fds{${ALL}}`,
        '{{instance}}',
      ]),
      line('Heap used', 'bytes', [`nodejs_heap_size_used_bytes{${ALL}}`, '{{instance}}']),
      line('Time since the start', 's', [`time() - process_start_time_seconds{${ALL}}`, '{{instance}}']),
    ],
  },
  cluster: {
    title: 'Takemark: consumers and stores',
    panels: [
      number('Processes that are up', 'short', [`sum by (job) (up{${ALL}})`, '{{job}}']),
      number('Processes that consume events', 'short', [`sum(takemark_consumers{${ALL}})`, 'processes']),
      number('Since the last step of the auditor', 's', [
        `time() - max(takemark_audit_step_ended_seconds{${ALL}})`,
        'time',
      ]),
      line('Events that wait in the outbox', 'short', [`takemark_outbox_waiting{${ALL}}`, '{{instance}}']),
      line('Age of the oldest event', 's', [`takemark_outbox_oldest_seconds{${ALL}}`, '{{instance}}']),
      line('Events not handled yet', 'short', [
        `sum by (topic) (takemark_events_behind{${ALL}})`,
        '{{topic}}',
      ]),
      line(
        'Events published and handled',
        'cps',
        [`sum by (topic) (${rate('takemark_events_published_total')})`, '{{topic}} published'],
        [`sum by (topic) (${rate('takemark_events_handled_total')})`, '{{topic}} handled'],
      ),
      line('Dead letters, last hour', 'short', [
        `sum by (topic) (increase(takemark_dead_letters_total{${ALL}}[1h]))`,
        '{{topic}}',
      ]),
      line('Failures that a dependency caused', 'cps', [
        `sum by (dependency) (${rate('takemark_dependency_errors_total')})`,
        '{{dependency}}',
      ]),
      line('Processes that miss a dependency', 'short', [
        `sum by (dependency) (takemark_dependency_missing{${ALL}})`,
        '{{dependency}}',
      ]),
      line(
        'Clocks',
        's',
        [`takemark_clock_ahead_seconds{${ALL}}`, '{{instance}}'],
        [`takemark_store_clock_ahead_seconds{${ALL}}`, 'store, seen by {{instance}}'],
      ),
      line('Findings of the auditor', 'short', [
        `max by (kind) (takemark_audit_findings{${ALL}})`,
        '{{kind}}',
      ]),
    ],
  },
};

/**
 * Returns the files of the dashboards with their text.
 * @param catalogue every metric of the service
 * @throws Error if an expression names a metric or a label that does not exist
 */
export function dashboards(catalogue) {
  return new Map(
    Object.entries(DASHBOARDS).map(([id, dashboard]) => [
      `takemark-${id}.json`,
      `${JSON.stringify(documentOf(id, dashboard, catalogue), null, 2)}\n`,
    ]),
  );
}

/** Returns the expressions of all panels, with values for the variables of Grafana. */
export function expressions(interval) {
  return Object.values(DASHBOARDS)
    .flatMap(({ panels }) => panels.flatMap(({ queries }) => queries.map(([expression]) => expression)))
    .map((text) => text.replaceAll('$__rate_interval', interval).replaceAll('$instance', '.+'));
}

/**
 * Returns the metrics of an expression.
 * @throws Error if an expression names a metric or a label that does not exist
 */
export function metricsOf(expression, catalogue) {
  const names = expression.match(/\b(?:takemark|process|nodejs)_\w+/g) ?? [];
  const metrics = names.map((name) => {
    const found = catalogue.find(
      (metric) =>
        metric.name === name ||
        (['histogram', 'summary'].includes(metric.type) &&
          name.replace(/_(?:bucket|sum|count)$/, '') === metric.name),
    );
    if (found === undefined) throw new Error(`${name} is not a metric: ${expression}`);
    return found;
  });
  const labels = [
    ...[...expression.matchAll(/by \(([^)]*)\)/g)].flatMap(([, list]) => list.split(', ')),
    ...[...expression.matchAll(/(\w+)=~?"/g)].map(([, label]) => label),
  ];
  const known = new Set([...ADDED_LABELS, ...metrics.flatMap((metric) => metric.labels)]);
  for (const label of labels)
    if (!known.has(label)) throw new Error(`${label} is not a label of these metrics: ${expression}`);
  return metrics;
}

function documentOf(id, { title, panels }, catalogue) {
  const datasource = { type: 'prometheus', uid: '$datasource' };
  return {
    uid: `takemark-${id}`,
    title,
    tags: ['takemark'],
    schemaVersion: 41,
    editable: false,
    refresh: '30s',
    time: { from: 'now-1h', to: 'now' },
    templating: {
      list: [
        { name: 'datasource', type: 'datasource', query: 'prometheus' },
        {
          name: 'instance',
          type: 'query',
          datasource,
          query: 'label_values(takemark_build_info, instance)',
          refresh: 2,
          multi: true,
          includeAll: true,
          allValue: '.+',
          current: { text: 'All', value: '$__all' },
        },
      ],
    },
    panels: panels.map(({ type, title: panelTitle, unit, queries }, at) => ({
      id: at + 1,
      title: panelTitle,
      description: [
        ...new Set(
          queries.flatMap(([text]) =>
            metricsOf(text, catalogue).map(({ name, help }) => `${name}: ${help}.`),
          ),
        ),
      ].join('\n\n'),
      type,
      datasource,
      gridPos: {
        x: (at * WIDTH) % 24,
        y: Math.floor((at * WIDTH) / 24) * HEIGHT,
        w: WIDTH,
        h: HEIGHT,
      },
      fieldConfig: { defaults: { unit }, overrides: [] },
      targets: queries.map(([expr, legendFormat], index) => ({
        refId: String.fromCharCode(65 + index),
        expr,
        legendFormat,
      })),
    })),
  };
}
