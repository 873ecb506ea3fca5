import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { DEPENDENCIES, dependencyOf } from '../../core/domain/errors.js';
import { DISPLACEMENTS } from '../../core/ports/audio-engine.js';
import { TOPICS } from '../domain/events.js';
import { FAULT_PLACES, type Observer, REFUSALS, UPLOAD_OUTCOMES } from '../ports/observer.js';
import type { RequestLog } from '../ports/request-log.js';
import { type MetricSources, registerGauges } from './gauges.js';

/** Gauges of the library whose names end like those of counters. Each also exists as a gauge by type. */
const MISNAMED = [
  'nodejs_active_handles_total',
  'nodejs_active_requests_total',
  'nodejs_active_resources_total',
];

/** The statuses of failures. Their series start at 0 for every route, so that an alert sees the first one. */
const FAILURES = [500, 503];

/** The bounds in seconds. A verify takes one to two milliseconds, an upload at most the 15 minutes of its slot. */
const DURATION_BUCKETS = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900,
];

/** A route whose counters of failures start at 0. */
export interface CountedRoute {
  readonly listener: string;
  readonly method: string;
  readonly path: string;
}

export interface MetricsParts extends MetricSources {
  /** What distinguishes the running build from others. Absent in a tool, whose metrics are not read. */
  readonly build?: { readonly version: string; readonly commit: string };
  /** The routes of the process. Their counters of failures start at 0. */
  readonly routes?: readonly CountedRoute[];
}

/** A metric without its series. */
export interface MetricDescription {
  readonly name: string;
  readonly type: string;
  readonly help: string;
  readonly labels: readonly string[];
}

/** The metrics of a process. They count what the parts of the service report. */
export interface Metrics extends Observer, RequestLog {
  /** Adds sources of gauges. */
  measure(sources: MetricSources): void;
  describe(): Promise<readonly MetricDescription[]>;
  render(): Promise<{ readonly mediaType: string; readonly text: string }>;
}

/** Creates the metrics of the process. Every label value is from a closed list. */
export function createMetrics({ build, routes = [], ...initial }: MetricsParts): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  for (const name of MISNAMED) registry.removeSingleMetric(name);
  if (build !== undefined)
    new Gauge({
      name: 'takemark_build_info',
      help: 'Always 1. The labels have the version and the commit of the process',
      labelNames: ['version', 'commit'],
      registers: [registry],
    }).set({ ...build }, 1);
  let sources: MetricSources = {};
  const measure = (added: MetricSources): void => {
    sources = { ...sources, ...added };
    registerGauges(registry, () => sources);
  };
  measure(initial);
  return {
    ...countRequests(registry, routes),
    ...countReports(registry, routes),
    measure,
    describe: () => describe(registry),
    render: async () => ({ mediaType: registry.contentType, text: await registry.metrics() }),
  };
}

/** Creates the metrics of calls. */
function countRequests(registry: Registry, routes: readonly CountedRoute[]): RequestLog {
  const requests = counter(registry, 'takemark_requests_total', 'Requests answered', [
    'listener',
    'method',
    'route',
    'status',
  ]);
  const durations = new Histogram({
    name: 'takemark_request_duration_seconds',
    help: 'Seconds from the request head to the end of the response',
    labelNames: ['listener', 'route'],
    buckets: DURATION_BUCKETS,
    registers: [registry],
  });
  for (const { listener, method, path: route } of routes)
    for (const status of FAILURES) requests.inc({ listener, method, route, status }, 0);
  return {
    request: ({ listener, method, route, status, durationMs }) => {
      requests.inc({ listener, method, route, status });
      durations.observe({ listener, route }, durationMs / 1000);
    },
  };
}

/** Creates the counters of what the parts of the service report. */
function countReports(registry: Registry, routes: readonly CountedRoute[]): Observer {
  const verdicts = counter(registry, 'takemark_verdicts_total', 'Verdicts returned', ['verdict', 'carrier']);
  const uploads = counter(registry, 'takemark_uploads_total', 'Posted uploads by outcome', ['outcome']);
  const uploadBytes = counter(registry, 'takemark_upload_bytes_total', 'Bytes of posted uploads by outcome', [
    'outcome',
  ]);
  const displaced = counter(
    registry,
    'takemark_displaced_total',
    'Forms and uploads evicted to make room for another',
    ['reason'],
  );
  const refused = counter(
    registry,
    'takemark_refused_total',
    'Calls refused because their partner had too many of their kind at the same time',
    ['reason'],
  );
  const issued = counter(registry, 'takemark_proofs_issued_total', 'Credentials issued', ['carrier']);
  const productEvents = counter(
    registry,
    'takemark_product_events_total',
    'Events reported by partner products',
    ['name'],
  );
  const events = {
    published: counter(registry, 'takemark_events_published_total', 'Events published to the bus', ['topic']),
    handled: counter(
      registry,
      'takemark_events_handled_total',
      'Events handled by the consumers of this process',
      ['topic'],
    ),
    dead: counter(
      registry,
      'takemark_dead_letters_total',
      'Events that the consumers of this process failed to handle',
      ['topic'],
    ),
  };
  const faults = counter(
    registry,
    'takemark_faults_total',
    'Internal failures by place; affected callers get the error code internal or unavailable',
    ['where'],
  );
  const dependencyErrors = counter(
    registry,
    'takemark_dependency_errors_total',
    'Internal failures that a server, a disk or a device outside the program caused',
    ['dependency'],
  );
  // Start each series at 0. Prometheus sees no increase in a series that starts at 1, so an alert would miss
  // that event.
  for (const outcome of UPLOAD_OUTCOMES) for (const each of [uploads, uploadBytes]) each.inc({ outcome }, 0);
  for (const reason of DISPLACEMENTS) displaced.inc({ reason }, 0);
  for (const reason of REFUSALS) refused.inc({ reason }, 0);
  for (const each of Object.values(events)) for (const topic of TOPICS) each.inc({ topic }, 0);
  for (const where of FAULT_PLACES) faults.inc({ where }, 0);
  for (const { path: where } of routes) faults.inc({ where }, 0);
  for (const dependency of DEPENDENCIES) dependencyErrors.inc({ dependency }, 0);
  return {
    verdict: (verdict, carrier) => verdicts.inc({ verdict, carrier }),
    upload: (outcome, bytes) => {
      uploads.inc({ outcome });
      uploadBytes.inc({ outcome }, bytes);
    },
    displaced: (reason) => displaced.inc({ reason }),
    refused: (reason) => refused.inc({ reason }),
    issued: (carrier) => issued.inc({ carrier }),
    productEvent: (name, count) => productEvents.inc({ name }, count),
    events: (topic, outcome, count) => events[outcome].inc({ topic }, count),
    fault: (where, error) => {
      faults.inc({ where });
      const dependency = dependencyOf(error);
      if (dependency !== undefined) dependencyErrors.inc({ dependency });
    },
  };
}

function counter<const Label extends string>(
  registry: Registry,
  name: string,
  help: string,
  labelNames: readonly Label[],
): Counter<Label> {
  return new Counter({ name, help, labelNames, registers: [registry] });
}

async function describe(registry: Registry): Promise<readonly MetricDescription[]> {
  const metrics = await registry.getMetricsAsJSON();
  return metrics.map(({ name, type, help }) => {
    // The types of the library leave out the labels.
    const { labelNames } = registry.getSingleMetric(name) as unknown as {
      readonly labelNames: readonly string[];
    };
    return { name, type: String(type), help, labels: labelNames };
  });
}
