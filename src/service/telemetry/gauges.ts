import { Gauge, type Registry } from 'prom-client';
import { type Dependency, DomainError } from '../../core/domain/errors.js';
import { FINDING_KINDS, type FindingKind } from '../../core/domain/finding.js';
import {
  VALIDITY_WARNINGS,
  type Validity,
  type ValidityWarning,
  type WatchedCertificate,
} from '../../core/domain/validity.js';
import type { EngineStats } from '../../core/ports/audio-engine.js';

/** What is free of a resource of a directory's file system, as a share from 0 to 1. */
export interface DirectorySpace {
  readonly directory: string;
  readonly resource: 'bytes' | 'inodes';
  readonly free: number;
}

/** The differences of clocks in seconds. A positive value means that the clock is ahead. */
export interface ClockDifferences {
  /** The difference between this process's clock and the store's servers. */
  readonly processSeconds: number;
  /** The difference between the most deviant server and the other servers. */
  readonly nodesSeconds: number;
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

/**
 * The sources of gauges. They are read when metrics are collected. A source that is absent does not exist in
 * the process, or not yet.
 */
export interface MetricSources {
  readonly engineStats?: () => EngineStats;
  /** The number of events waiting to be published. */
  readonly eventsWaiting?: () => number;
  /** The age of the oldest waiting event in seconds. Undefined without any. */
  readonly oldestEventAge?: () => number | undefined;
  /** The number of events per topic that this process's consumer has not handled yet. */
  readonly lag?: () => ReadonlyMap<string, number>;
  /** The certificates that the process watches. */
  readonly certificates?: () => readonly CertificateDates[];
  /** The clock differences to the servers of the store. */
  readonly clocks?: () => ClockDifferences;
  /** The auditor's findings. Undefined if another process runs the auditor. */
  readonly audit?: () => AuditCounts | undefined;
  /** Rejects with a DomainError while the process is not ready. */
  readonly ready?: () => Promise<unknown>;
  /** The watched dependencies, each with whether it is missing. */
  readonly dependencies?: () => ReadonlyMap<Dependency, boolean>;
  readonly space?: () => Promise<readonly DirectorySpace[]>;
  readonly runsConsumers?: boolean;
  /** The number of processes among which the limits of plans are divided. Absent if the process serves no partners. */
  readonly processes?: () => number;
}

/** A value of a gauge without labels. If it is undefined, the gauge keeps its former value, or 0. */
type Value = number | undefined;
/** The series of a gauge with labels. A series that is missing here is absent from the metrics. */
type Series = readonly (readonly [labels: Readonly<Record<string, string>>, value: number])[];

type GaugeRow = {
  readonly name: string;
  readonly help: string;
  /** Returns whether the gauge exists. Without this function it always exists. */
  readonly exists?: (sources: MetricSources) => boolean;
} & (
  | { readonly read: (sources: MetricSources) => Value }
  | {
      readonly labelNames: readonly string[];
      readonly read: (sources: MetricSources) => Series | Promise<Series>;
    }
);

/** Returns a row with a number of the engine. */
function ofEngine(name: string, help: string, read: (stats: EngineStats) => number): GaugeRow {
  return { name, help, read: ({ engineStats }) => engineStats && read(engineStats()) };
}

/** Returns a row with a clock difference. Without servers of the store there is no such gauge. */
function ofClocks(name: string, help: string, read: (clocks: ClockDifferences) => number): GaugeRow {
  return {
    name,
    help,
    exists: ({ clocks }) => clocks !== undefined,
    read: ({ clocks }) => clocks && read(clocks()),
  };
}

/** Returns a row with a date of every certificate. */
function ofCertificates(name: string, help: string, read: (validity: Validity) => number): GaugeRow {
  return {
    name,
    help,
    labelNames: ['certificate'],
    read: ({ certificates }) =>
      (certificates?.() ?? []).map(({ certificate, validity }) => [{ certificate }, read(validity)]),
  };
}

/**
 * Returns a row with the expiry of one certificate. Without the certificate the gauge must be absent, because
 * 0 would look like an expired certificate.
 */
function ofExpiry(name: string, help: string, wanted: WatchedCertificate): GaugeRow {
  const read = ({ certificates }: MetricSources): Value =>
    certificates?.().find(({ certificate }) => certificate === wanted)?.validity.notAfter;
  return { name, help, exists: (sources) => read(sources) !== undefined, read };
}

/** Every gauge of the service. */
const GAUGES: readonly GaugeRow[] = [
  {
    name: 'takemark_outbox_waiting',
    help: 'Events waiting to be published, as known by this process',
    read: ({ eventsWaiting }) => eventsWaiting?.(),
  },
  {
    name: 'takemark_outbox_oldest_seconds',
    help: 'Age of the oldest event that waits to be published, in seconds, as known by this process; 0 without any',
    read: ({ oldestEventAge }) => oldestEventAge?.() ?? 0,
  },
  {
    name: 'takemark_ready',
    help: '1 if the process is ready. Otherwise 0, and the label has the reason of /readyz',
    labelNames: ['reason'],
    async read({ ready }) {
      if (ready === undefined) return [];
      const reason = await reasonOf(ready);
      return [[{ reason: reason ?? '' }, reason === undefined ? 1 : 0]];
    },
  },
  {
    name: 'takemark_dependency_missing',
    help: '1 if a dependency does not answer. The process serves most calls without it',
    labelNames: ['dependency'],
    read: ({ dependencies }) =>
      [...(dependencies?.() ?? [])].map(([dependency, isMissing]) => [{ dependency }, isMissing ? 1 : 0]),
  },
  {
    name: 'takemark_disk_free_ratio',
    help: 'Free share of the file system of a directory, from 0 to 1',
    labelNames: ['directory', 'resource'],
    read: async ({ space }) =>
      ((await space?.()) ?? []).map(({ directory, resource, free }) => [{ directory, resource }, free]),
  },
  {
    name: 'takemark_consumers',
    help: '1 if the process runs the consumers of events',
    read: ({ runsConsumers }) => (runsConsumers === true ? 1 : 0),
  },
  {
    name: 'takemark_processes',
    help: 'Processes among which the rates of plans are divided, as known by this process',
    exists: ({ processes }) => processes !== undefined,
    read: ({ processes }) => processes?.(),
  },
  {
    // A disconnected consumer must report no value instead of 0.
    name: 'takemark_events_behind',
    help: 'Consumer lag: events in the bus that this process has not handled yet, as known by this process',
    labelNames: ['topic'],
    read: ({ lag }) => [...(lag?.() ?? [])].map(([topic, count]) => [{ topic }, count]),
  },
  {
    // Another process may run the auditor by now.
    name: 'takemark_audit_findings',
    help: 'Findings of the auditor in its last complete pass, or in its current pass if that has more',
    labelNames: ['kind'],
    read({ audit }) {
      const found = audit?.();
      return found === undefined
        ? []
        : FINDING_KINDS.map((kind) => [{ kind }, found.findings.get(kind) ?? 0]);
    },
  },
  {
    name: 'takemark_audit_pass_ended_seconds',
    help: 'End of the last complete auditor pass, in unix seconds',
    // Without a label, the gauge would be 0 before the first pass.
    labelNames: ['pass'],
    read: ({ audit }) => seriesOf({ pass: 'whole' }, audit?.()?.endedAt),
  },
  {
    name: 'takemark_audit_step_ended_seconds',
    help: 'End of the last auditor step, in unix seconds',
    labelNames: ['pass'],
    read: ({ audit }) => seriesOf({ pass: 'any' }, audit?.()?.steppedAt),
  },
  ofCertificates(
    'takemark_certificate_begins_seconds',
    'Start of the validity of a certificate, in unix seconds',
    ({ notBefore }) => notBefore,
  ),
  ofCertificates(
    'takemark_certificate_expires_seconds',
    'End of the validity of a certificate, in unix seconds',
    ({ notAfter }) => notAfter,
  ),
  {
    name: 'takemark_certificate_warning',
    help: '1 for the warning that applies to a certificate: its validity has not begun, ends within so many days, or has ended',
    labelNames: ['certificate', 'warning'],
    read: ({ certificates }) =>
      (certificates?.() ?? []).flatMap(({ certificate, warning }) =>
        VALIDITY_WARNINGS.map((each) => [{ certificate, warning: each }, each === warning ? 1 : 0] as const),
      ),
  },
  ofExpiry(
    'takemark_tls_certificate_expires_seconds',
    "Expiry of the partner listener's certificate, in unix seconds",
    'tls',
  ),
  ofExpiry(
    'takemark_signing_certificate_expires_seconds',
    'Expiry of the signing certificate, in unix seconds',
    'signing',
  ),
  ofClocks(
    'takemark_clock_ahead_seconds',
    "Seconds that this process's clock is ahead of the store's servers",
    ({ processSeconds }) => processSeconds,
  ),
  ofClocks(
    'takemark_store_clock_ahead_seconds',
    'Seconds that the most deviant clock of the store servers is ahead of the others',
    ({ nodesSeconds }) => nodesSeconds,
  ),
  ofEngine(
    'takemark_engine_uploads_in_flight',
    'Uploads in the engine',
    ({ uploadsInFlight }) => uploadsInFlight,
  ),
  ofEngine('takemark_engine_slabs_in_use', 'Memory slabs in use', ({ slabsInUse }) => slabsInUse),
  ofEngine('takemark_engine_slabs', 'Memory slabs in the pool', ({ slabs }) => slabs),
  ofEngine(
    'takemark_engine_kernel_lanes',
    'Uploads that the kernel hashes side by side: 4 or 8, or 1 with the native engine',
    ({ kernelLanes }) => kernelLanes,
  ),
  ofEngine(
    'takemark_engine_hash_differences',
    'Uploads since the start whose digests differed between eight lanes and the SHA-256 of Node',
    ({ hashDifferences }) => hashDifferences,
  ),
  ofEngine('takemark_engine_tasks', 'Worker tasks run since the start', ({ tasks }) => tasks),
  ofEngine(
    'takemark_engine_lanes',
    'Uploads processed by worker tasks since the start',
    ({ lanes }) => lanes,
  ),
  ofEngine('takemark_engine_bytes', 'Bytes measured since the start', ({ bytes }) => bytes),
  ofEngine(
    'takemark_engine_worker_restarts',
    'Workers replaced since the start',
    ({ workerRestarts }) => workerRestarts,
  ),
];

/** Registers each gauge that exists and is not registered yet. `sources` is called at each collection. */
export function registerGauges(registry: Registry, sources: () => MetricSources): void {
  for (const row of GAUGES) {
    if (registry.getSingleMetric(row.name) !== undefined || row.exists?.(sources()) === false) continue;
    const { name, help } = row;
    const registers = [registry];
    if ('labelNames' in row)
      new Gauge({
        name,
        help,
        labelNames: row.labelNames,
        registers,
        async collect() {
          const series = await row.read(sources());
          this.reset();
          for (const [labels, value] of series) this.set(labels, value);
        },
      });
    else
      new Gauge({
        name,
        help,
        registers,
        collect() {
          const value = row.read(sources());
          if (value !== undefined) this.set(value);
        },
      });
  }
}

/** Returns one series, or none without a value. */
function seriesOf(labels: Readonly<Record<string, string>>, value: number | undefined): Series {
  return value === undefined ? [] : [[labels, value]];
}

/** Returns why a process is not ready, or undefined if it is. */
async function reasonOf(ready: () => Promise<unknown>): Promise<string | undefined> {
  try {
    await ready();
    return undefined;
  } catch (error) {
    return (error instanceof DomainError ? error.reason : undefined) ?? 'internal';
  }
}
