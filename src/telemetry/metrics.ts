import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { TOPICS } from '../domain/events.js';
import { FINDING_KINDS, type FindingKind } from '../domain/finding.js';
import type { EngineStats } from '../ports/audio-engine.js';
import type { RequestRecord } from '../ports/request-log.js';

/** Seconds: verify takes one to two milliseconds, an upload up to its slot's 15 minutes. */
const DURATION_BUCKETS = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900,
];

export interface Metrics {
  request(record: RequestRecord): void;
  verdict(verdict: string, carrier: string): void;
  upload(outcome: string, bytes: number): void;
  displaced(reason: string): void;
  issued(carrier: string): void;
  productEvent(name: string, count: number): void;
  events(topic: string, outcome: 'published' | 'handled' | 'dead', count: number): void;
  fault(where: string): void;
  render(): Promise<{ readonly mediaType: string; readonly text: string }>;
}

/** Seconds; positive where a clock is ahead. */
export interface ClockDifferences {
  /** Difference of this process's clock from those of the store's servers. */
  readonly processSeconds: number;
  /** Difference of the server that differs most from the other ones. */
  readonly nodesSeconds: number;
}

/** Findings of the auditor, from the process that goes through the stores. */
export interface AuditCounts {
  readonly findings: ReadonlyMap<FindingKind, number>;
  /** Unix seconds at which the last whole pass ended. */
  readonly endedAt?: number;
  /** Unix seconds at which the last step of a pass ended. */
  readonly steppedAt?: number;
}

/** Counters of the process. Every label comes from a closed list. */
export function createMetrics(
  engineStats: () => EngineStats | undefined,
  eventsWaiting: () => number | undefined,
  lag: () => ReadonlyMap<string, number>,
  tlsExpiresAt: () => number | undefined,
  clocks?: () => ClockDifferences | undefined,
  signerNotAfter?: number,
  audit: () => AuditCounts | undefined = () => undefined,
): Metrics {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry });
  const requests = new Counter({
    name: 'takemark_requests_total',
    help: 'Answered requests',
    labelNames: ['listener', 'method', 'route', 'status'],
    registers,
  });
  const durations = new Histogram({
    name: 'takemark_request_duration_seconds',
    help: 'Time from the request head to the end of the answer',
    labelNames: ['listener', 'route'],
    buckets: DURATION_BUCKETS,
    registers,
  });
  const verdicts = new Counter({
    name: 'takemark_verdicts_total',
    help: 'Verdicts given',
    labelNames: ['verdict', 'carrier'],
    registers,
  });
  const uploads = new Counter({
    name: 'takemark_uploads_total',
    help: 'Posted uploads by how they ended',
    labelNames: ['outcome'],
    registers,
  });
  const uploadBytes = new Counter({
    name: 'takemark_upload_bytes_total',
    help: 'Bytes of posted uploads',
    labelNames: ['outcome'],
    registers,
  });
  const displaced = new Counter({
    name: 'takemark_displaced_total',
    help: 'Forms and uploads that lost their place to another',
    labelNames: ['reason'],
    registers,
  });
  const issued = new Counter({
    name: 'takemark_proofs_issued_total',
    help: 'Credentials issued',
    labelNames: ['carrier'],
    registers,
  });
  const productEvents = new Counter({
    name: 'takemark_product_events_total',
    help: 'Events reported by products of partners',
    labelNames: ['name'],
    registers,
  });
  const events = {
    published: new Counter({
      name: 'takemark_events_published_total',
      help: 'Events that the bus keeps',
      labelNames: ['topic'],
      registers,
    }),
    handled: new Counter({
      name: 'takemark_events_handled_total',
      help: 'Events that a consumer of this process took',
      labelNames: ['topic'],
      registers,
    }),
    dead: new Counter({
      name: 'takemark_dead_letters_total',
      help: 'Events that a consumer of this process gave up',
      labelNames: ['topic'],
      registers,
    }),
  };
  // A series that begins with its first event has not risen for Prometheus: nobody would be told of that event.
  for (const counter of Object.values(events)) for (const topic of TOPICS) counter.inc({ topic }, 0);
  const faults = new Counter({
    name: 'takemark_faults_total',
    help: 'Failures that callers see as internal or unavailable',
    labelNames: ['where'],
    registers,
  });

  new Gauge({
    name: 'takemark_outbox_waiting',
    help: 'Events that wait to be published, as far as this process knows',
    registers,
    collect() {
      const waiting = eventsWaiting();
      if (waiting !== undefined) this.set(waiting);
    },
  });
  new Gauge({
    name: 'takemark_events_behind',
    help: 'Events that this process was to take from the bus by now and has not, as far as it knows',
    labelNames: ['topic'],
    registers,
    collect() {
      // A consumer that lost its connection says nothing rather than nought.
      this.reset();
      for (const [topic, count] of lag()) this.set({ topic }, count);
    },
  });
  new Gauge({
    name: 'takemark_audit_findings',
    help: 'Findings of the auditor in its last whole pass, or in the present one where these are more',
    labelNames: ['kind'],
    registers,
    collect() {
      // Another process may go through the stores by now.
      this.reset();
      const found = audit();
      if (found !== undefined)
        for (const kind of FINDING_KINDS) this.set({ kind }, found.findings.get(kind) ?? 0);
    },
  });
  new Gauge({
    name: 'takemark_audit_pass_ended_seconds',
    help: 'Unix seconds at which the last whole pass of the auditor ended',
    // Without a label there would be a nought before the first pass.
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
    help: 'Unix seconds at which the auditor last looked at something',
    labelNames: ['pass'],
    registers,
    collect() {
      this.reset();
      const steppedAt = audit()?.steppedAt;
      if (steppedAt !== undefined) this.set({ pass: 'any' }, steppedAt);
    },
  });
  // Without a certificate there is no such series: nought would look like one that has ended.
  if (tlsExpiresAt() !== undefined) {
    new Gauge({
      name: 'takemark_tls_certificate_expires_seconds',
      help: "When the partner listener's certificate ends, in unix seconds",
      registers,
      collect() {
        this.set(tlsExpiresAt()!);
      },
    });
  }
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
      "Seconds by which this process's clock is ahead of the store's servers",
      ({ processSeconds }) => processSeconds,
    );
    difference(
      'takemark_store_clock_ahead_seconds',
      "Seconds by which the store's server whose clock differs most is ahead of the others",
      ({ nodesSeconds }) => nodesSeconds,
    );
  }
  if (signerNotAfter !== undefined) {
    new Gauge({
      name: 'takemark_signing_certificate_expires_seconds',
      help: 'Unix seconds at which the certificate that signs ends',
      registers,
    }).set(signerNotAfter);
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
  gauge('takemark_engine_uploads_in_flight', 'Uploads the engine holds', (stats) => stats.uploadsInFlight);
  gauge('takemark_engine_slabs_in_use', 'Slabs that hold bytes', (stats) => stats.slabsInUse);
  gauge('takemark_engine_slabs', 'Slabs of the pool', (stats) => stats.slabs);
  gauge('takemark_engine_tasks', 'Worker tasks run since the start', (stats) => stats.tasks);
  gauge('takemark_engine_lanes', 'Uploads carried by those tasks', (stats) => stats.lanes);
  gauge('takemark_engine_bytes', 'Bytes measured since the start', (stats) => stats.bytes);
  gauge(
    'takemark_engine_worker_restarts',
    'Workers replaced since the start',
    (stats) => stats.workerRestarts,
  );

  return {
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
    issued: (carrier) => issued.inc({ carrier }),
    productEvent: (name, count) => productEvents.inc({ name }, count),
    events: (topic, outcome, count) => events[outcome].inc({ topic }, count),
    fault: (where) => faults.inc({ where }),
    render: async () => ({ mediaType: registry.contentType, text: await registry.metrics() }),
  };
}
