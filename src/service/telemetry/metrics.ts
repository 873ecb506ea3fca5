import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { DEPENDENCIES, type Dependency, DomainError } from '../../core/domain/errors.js';
import { FINDING_KINDS, type FindingKind } from '../../core/domain/finding.js';
import {
  VALIDITY_WARNINGS,
  type Validity,
  type ValidityWarning,
  type WatchedCertificate,
} from '../../core/domain/validity.js';
import type { EngineStats } from '../../core/ports/audio-engine.js';
import { TOPICS } from '../domain/events.js';
import { FAULT_PLACES, REFUSALS } from '../ports/observer.js';
import type { RequestRecord } from '../ports/request-log.js';

/** Gauges of the library whose names end like those of counters. Each also exists as a gauge by type. */
const MISNAMED = [
  'nodejs_active_handles_total',
  'nodejs_active_requests_total',
  'nodejs_active_resources_total',
];

/** The statuses of failures. Their series start at 0 for every route, so that an alert sees the first one. */
const FAILURES = [500, 503];

/** In seconds. A verify takes one to two milliseconds, an upload at most the 15 minutes of its slot. */
const DURATION_BUCKETS = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900,
];

/** What is free of a resource of a directory's file system, as a share from 0 to 1. */
export interface DirectorySpace {
  readonly directory: string;
  readonly resource: 'bytes' | 'inodes';
  readonly free: number;
}

/** The sources of gauges that exist only once the process is open. They are read when metrics are collected. */
export interface MetricSources {
  /** The age of the oldest waiting event in seconds. Undefined without any. */
  readonly oldestEventAge?: () => number | undefined;
  /** Rejects with a DomainError while the process is not ready. */
  readonly ready?: () => Promise<unknown>;
  /** The watched dependencies, each with whether it is missing. */
  readonly dependencies?: () => ReadonlyMap<Dependency, boolean>;
  readonly space?: () => Promise<readonly DirectorySpace[]>;
  readonly runsConsumers?: boolean;
}

/** A route whose counters of failures start at 0. */
export interface CountedRoute {
  readonly listener: string;
  readonly method: string;
  readonly path: string;
}

export interface Metrics {
  /** Adds sources of gauges. */
  measure(sources: MetricSources): void;
  request(record: RequestRecord): void;
  verdict(verdict: string, carrier: string): void;
  upload(outcome: string, bytes: number): void;
  displaced(reason: string): void;
  refused(reason: string): void;
  issued(carrier: string): void;
  productEvent(name: string, count: number): void;
  events(topic: string, outcome: 'published' | 'handled' | 'dead', count: number): void;
  fault(where: string, dependency: Dependency | undefined): void;
  render(): Promise<{ readonly mediaType: string; readonly text: string }>;
}

/** Clock differences in seconds. A positive value means that the clock is ahead. */
export interface ClockDifferences {
  /** The difference between this process's clock and the store's servers. */
  readonly processSeconds: number;
  /** The difference between the most deviant server and the other servers. */
  readonly nodesSeconds: number;
}

/** The version and commit of the running service. */
export interface BuildInfo {
  readonly version: string;
  readonly commit: string;
}

/** The auditor's findings, from the process that runs the auditor. */
export interface AuditCounts {
  readonly findings: ReadonlyMap<FindingKind, number>;
  /** The end of the last complete pass in unix seconds. */
  readonly endedAt?: number;
  /** The end of the last step of a pass in unix seconds. */
  readonly steppedAt?: number;
}

/** A watched certificate, and the warning that applies to it now. */
export interface CertificateDates {
  readonly certificate: WatchedCertificate;
  readonly validity: Validity;
  readonly warning: ValidityWarning | undefined;
}

/** Creates the metrics of the process. Every label value is from a closed list. */
export function createMetrics(
  engineStats: () => EngineStats | undefined,
  eventsWaiting: () => number | undefined,
  lag: () => ReadonlyMap<string, number>,
  certificates: () => readonly CertificateDates[],
  clocks?: () => ClockDifferences | undefined,
  audit: () => AuditCounts | undefined = () => undefined,
  build?: BuildInfo,
  routes: readonly CountedRoute[] = [],
): Metrics {
  let sources: MetricSources = {};
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry });
  for (const name of MISNAMED) registry.removeSingleMetric(name);
  if (build !== undefined)
    new Gauge({
      name: 'takemark_build_info',
      help: 'Always 1. The labels have the version and the commit of the process',
      labelNames: ['version', 'commit'],
      registers,
    }).set({ ...build }, 1);
  const requests = new Counter({
    name: 'takemark_requests_total',
    help: 'Requests answered',
    labelNames: ['listener', 'method', 'route', 'status'],
    registers,
  });
  const durations = new Histogram({
    name: 'takemark_request_duration_seconds',
    help: 'Seconds from the request head to the end of the response',
    labelNames: ['listener', 'route'],
    buckets: DURATION_BUCKETS,
    registers,
  });
  const verdicts = new Counter({
    name: 'takemark_verdicts_total',
    help: 'Verdicts returned',
    labelNames: ['verdict', 'carrier'],
    registers,
  });
  const uploads = new Counter({
    name: 'takemark_uploads_total',
    help: 'Posted uploads by outcome',
    labelNames: ['outcome'],
    registers,
  });
  const uploadBytes = new Counter({
    name: 'takemark_upload_bytes_total',
    help: 'Bytes of posted uploads by outcome',
    labelNames: ['outcome'],
    registers,
  });
  const displaced = new Counter({
    name: 'takemark_displaced_total',
    help: 'Forms and uploads evicted to make room for another',
    labelNames: ['reason'],
    registers,
  });
  const refused = new Counter({
    name: 'takemark_refused_total',
    help: 'Calls refused because their partner had too many of their kind at the same time',
    labelNames: ['reason'],
    registers,
  });
  for (const reason of REFUSALS) refused.inc({ reason }, 0);
  const issued = new Counter({
    name: 'takemark_proofs_issued_total',
    help: 'Credentials issued',
    labelNames: ['carrier'],
    registers,
  });
  const productEvents = new Counter({
    name: 'takemark_product_events_total',
    help: 'Events reported by partner products',
    labelNames: ['name'],
    registers,
  });
  const events = {
    published: new Counter({
      name: 'takemark_events_published_total',
      help: 'Events published to the bus',
      labelNames: ['topic'],
      registers,
    }),
    handled: new Counter({
      name: 'takemark_events_handled_total',
      help: 'Events handled by the consumers of this process',
      labelNames: ['topic'],
      registers,
    }),
    dead: new Counter({
      name: 'takemark_dead_letters_total',
      help: 'Events that the consumers of this process failed to handle',
      labelNames: ['topic'],
      registers,
    }),
  };
  // Start each series at 0. Prometheus sees no increase in a series that starts at 1, so an alert would miss
  // that event.
  for (const counter of Object.values(events)) for (const topic of TOPICS) counter.inc({ topic }, 0);
  const faults = new Counter({
    name: 'takemark_faults_total',
    help: 'Internal failures by place; affected callers get the error code internal or unavailable',
    labelNames: ['where'],
    registers,
  });
  for (const where of FAULT_PLACES) faults.inc({ where }, 0);
  for (const { listener, method, path: route } of routes) {
    for (const status of FAILURES) requests.inc({ listener, method, route, status }, 0);
    faults.inc({ where: route }, 0);
  }
  const dependencyErrors = new Counter({
    name: 'takemark_dependency_errors_total',
    help: 'Internal failures that a server, a disk or a device outside the program caused',
    labelNames: ['dependency'],
    registers,
  });
  for (const dependency of DEPENDENCIES) dependencyErrors.inc({ dependency }, 0);

  new Gauge({
    name: 'takemark_outbox_waiting',
    help: 'Events waiting to be published, as known by this process',
    registers,
    collect() {
      const waiting = eventsWaiting();
      if (waiting !== undefined) this.set(waiting);
    },
  });
  new Gauge({
    name: 'takemark_outbox_oldest_seconds',
    help: 'Age of the oldest event that waits to be published, in seconds, as known by this process; 0 without any',
    registers,
    collect() {
      this.set(sources.oldestEventAge?.() ?? 0);
    },
  });
  new Gauge({
    name: 'takemark_ready',
    help: '1 if the process is ready. Otherwise 0, and the label has the reason of /readyz',
    labelNames: ['reason'],
    registers,
    async collect() {
      const reason = await reasonOf(sources.ready);
      this.reset();
      if (sources.ready !== undefined) this.set({ reason: reason ?? '' }, reason === undefined ? 1 : 0);
    },
  });
  new Gauge({
    name: 'takemark_dependency_missing',
    help: '1 if a dependency does not answer without which the process still serves most calls',
    labelNames: ['dependency'],
    registers,
    collect() {
      for (const [dependency, isMissing] of sources.dependencies?.() ?? [])
        this.set({ dependency }, isMissing ? 1 : 0);
    },
  });
  new Gauge({
    name: 'takemark_disk_free_ratio',
    help: 'Free share of the file system of a directory, from 0 to 1',
    labelNames: ['directory', 'resource'],
    registers,
    async collect() {
      const spaces = (await sources.space?.()) ?? [];
      this.reset();
      for (const { directory, resource, free } of spaces) this.set({ directory, resource }, free);
    },
  });
  new Gauge({
    name: 'takemark_consumers',
    help: '1 if the process runs the consumers of events',
    registers,
    collect() {
      this.set(sources.runsConsumers === true ? 1 : 0);
    },
  });
  new Gauge({
    name: 'takemark_events_behind',
    help: 'Consumer lag: events in the bus that this process has not handled yet, as known by this process',
    labelNames: ['topic'],
    registers,
    collect() {
      // A disconnected consumer must report no value instead of 0.
      this.reset();
      for (const [topic, count] of lag()) this.set({ topic }, count);
    },
  });
  new Gauge({
    name: 'takemark_audit_findings',
    help: 'Findings of the auditor in its last complete pass, or in its current pass if that has more',
    labelNames: ['kind'],
    registers,
    collect() {
      // Another process may run the auditor by now.
      this.reset();
      const found = audit();
      if (found !== undefined)
        for (const kind of FINDING_KINDS) this.set({ kind }, found.findings.get(kind) ?? 0);
    },
  });
  new Gauge({
    name: 'takemark_audit_pass_ended_seconds',
    help: 'End of the last complete auditor pass, in unix seconds',
    // Without a label, the gauge would be 0 before the first pass.
    labelNames: ['pass'],
    registers,
    collect() {
      this.reset();
      const endedAt = audit()?.endedAt;
      if (endedAt !== undefined) this.set({ pass: 'whole' }, endedAt);
    },
  });
  new Gauge({
    name: 'takemark_audit_step_ended_seconds',
    help: 'End of the last auditor step, in unix seconds',
    labelNames: ['pass'],
    registers,
    collect() {
      this.reset();
      const steppedAt = audit()?.steppedAt;
      if (steppedAt !== undefined) this.set({ pass: 'any' }, steppedAt);
    },
  });
  const dates = (name: string, help: string, of: (validity: Validity) => number) =>
    new Gauge({
      name,
      help,
      labelNames: ['certificate'],
      registers,
      collect() {
        for (const { certificate, validity } of certificates()) this.set({ certificate }, of(validity));
      },
    });
  dates(
    'takemark_certificate_begins_seconds',
    'Start of the validity of a certificate, in unix seconds',
    ({ notBefore }) => notBefore,
  );
  dates(
    'takemark_certificate_expires_seconds',
    'End of the validity of a certificate, in unix seconds',
    ({ notAfter }) => notAfter,
  );
  new Gauge({
    name: 'takemark_certificate_warning',
    help: '1 for the warning that applies to a certificate: its validity has not begun, ends within so many days, or has ended',
    labelNames: ['certificate', 'warning'],
    registers,
    collect() {
      for (const { certificate, warning } of certificates())
        for (const each of VALIDITY_WARNINGS)
          this.set({ certificate, warning: each }, each === warning ? 1 : 0);
    },
  });
  // A series without its certificate must be absent: 0 would look like an expired certificate.
  const expires = (name: string, help: string, wanted: WatchedCertificate) => {
    if (certificates().some(({ certificate }) => certificate === wanted))
      new Gauge({
        name,
        help,
        registers,
        collect() {
          const found = certificates().find(({ certificate }) => certificate === wanted);
          if (found !== undefined) this.set(found.validity.notAfter);
        },
      });
  };
  expires(
    'takemark_tls_certificate_expires_seconds',
    "Expiry of the partner listener's certificate, in unix seconds",
    'tls',
  );
  expires(
    'takemark_signing_certificate_expires_seconds',
    'Expiry of the signing certificate, in unix seconds',
    'signing',
  );
  if (clocks !== undefined) {
    const difference = (name: string, help: string, of: (clocks: ClockDifferences) => number) =>
      new Gauge({
        name,
        help,
        registers,
        collect() {
          const found = clocks();
          if (found !== undefined) this.set(of(found));
        },
      });
    difference(
      'takemark_clock_ahead_seconds',
      "Seconds that this process's clock is ahead of the store's servers",
      ({ processSeconds }) => processSeconds,
    );
    difference(
      'takemark_store_clock_ahead_seconds',
      'Seconds that the most deviant clock of the store servers is ahead of the others',
      ({ nodesSeconds }) => nodesSeconds,
    );
  }
  const gauge = (name: string, help: string, value: (stats: EngineStats) => number) =>
    new Gauge({
      name,
      help,
      registers,
      collect() {
        const stats = engineStats();
        if (stats !== undefined) this.set(value(stats));
      },
    });
  gauge('takemark_engine_uploads_in_flight', 'Uploads in the engine', (stats) => stats.uploadsInFlight);
  gauge('takemark_engine_slabs_in_use', 'Memory slabs in use', (stats) => stats.slabsInUse);
  gauge('takemark_engine_slabs', 'Memory slabs in the pool', (stats) => stats.slabs);
  gauge('takemark_engine_tasks', 'Worker tasks run since the start', (stats) => stats.tasks);
  gauge(
    'takemark_engine_kernel_lanes',
    'Uploads that the kernel hashes side by side: 4 or 8, or 1 with the native engine',
    (stats) => stats.kernelLanes,
  );
  gauge(
    'takemark_engine_hash_differences',
    'Uploads since the start whose digests differed between eight lanes and the SHA-256 of Node',
    (stats) => stats.hashDifferences,
  );
  gauge('takemark_engine_lanes', 'Uploads processed by worker tasks since the start', (stats) => stats.lanes);
  gauge('takemark_engine_bytes', 'Bytes measured since the start', (stats) => stats.bytes);
  gauge(
    'takemark_engine_worker_restarts',
    'Workers replaced since the start',
    (stats) => stats.workerRestarts,
  );

  return {
    measure: (added) => {
      sources = { ...sources, ...added };
    },
    request: ({ listener, method, route, status, durationMs }) => {
      requests.inc({ listener, method, route, status });
      durations.observe({ listener, route }, durationMs / 1000);
    },
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
    fault: (where, dependency) => {
      faults.inc({ where });
      if (dependency !== undefined) dependencyErrors.inc({ dependency });
    },
    render: async () => ({ mediaType: registry.contentType, text: await registry.metrics() }),
  };
}

/** Returns why a process is not ready, or undefined if it is. */
async function reasonOf(ready: MetricSources['ready']): Promise<string | undefined> {
  try {
    await ready?.();
    return undefined;
  } catch (error) {
    return (error instanceof DomainError ? error.reason : undefined) ?? 'internal';
  }
}
