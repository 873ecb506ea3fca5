import type { DestinationStream } from 'pino';
import type { EngineStats } from '../ports/audio-engine.js';
import type { Observer } from '../ports/observer.js';
import type { RequestLog } from '../ports/request-log.js';
import { createLog, describeError, type LogLevel } from './log.js';
import { LogOutput } from './log-output.js';
import {
  type AuditCounts,
  type BuildInfo,
  type CertificateDates,
  type ClockDifferences,
  createMetrics,
  type Metrics,
} from './metrics.js';

export interface TelemetryParts {
  readonly level: LogLevel;
  /** Read when metrics are collected. Undefined until an engine exists. */
  readonly engineStats?: () => EngineStats | undefined;
  /** The number of events waiting to be published. Undefined until an outbox exists. */
  readonly eventsWaiting: () => number | undefined;
  /** The number of events per topic that this process's consumer has not handled yet. */
  readonly lag: () => ReadonlyMap<string, number>;
  /** The certificates that the process watches. */
  readonly certificates?: () => readonly CertificateDates[];
  /** The clock differences. Undefined until a store with servers is open. */
  readonly clocks?: () => ClockDifferences | undefined;
  /** The auditor's findings. Undefined if another process runs the auditor. */
  readonly audit?: () => AuditCounts | undefined;
  /** What distinguishes the running build from others. Absent in a tool, whose metrics are not read. */
  readonly build?: BuildInfo;
  /** Standard output by default. */
  readonly destination?: DestinationStream;
}

export interface Telemetry {
  readonly observer: Observer;
  readonly requestLog: RequestLog;
  readonly metrics: Metrics['render'];
  /**
   * Logs an event of the process itself. `facts` are addresses, versions and counts, never secrets.
   */
  note(event: string, facts?: Readonly<Record<string, string | number | boolean>>): void;
  /** Logs a condition that the operator should change. */
  warn(event: string, facts?: Readonly<Record<string, string | number | boolean>>): void;
  /** Writes buffered lines. Call it before the process ends. */
  flush(): void;
}

/** Creates the log, the metrics and the observer that the rest of the service reports to. */
export function createTelemetry({
  level,
  engineStats = () => undefined,
  eventsWaiting,
  lag,
  certificates = () => [],
  clocks,
  audit,
  build,
  destination,
}: TelemetryParts): Telemetry {
  const stdout = destination === undefined ? standardOutput() : undefined;
  const log = createLog(level, destination ?? stdout!);
  const metrics = createMetrics(engineStats, eventsWaiting, lag, certificates, clocks, audit, build);
  return {
    observer: {
      verdict: metrics.verdict,
      upload: metrics.upload,
      displaced: metrics.displaced,
      refused: metrics.refused,
      issued: metrics.issued,
      productEvent: metrics.productEvent,
      events: (topic, outcome, count) => {
        metrics.events(topic, outcome, count);
        if (outcome === 'dead') log.warn({ event: 'dead_letter', topic, count });
      },
      fault: (where, error) => {
        metrics.fault(where);
        log.error({ event: 'fault', where, error: describeError(error) });
      },
    },
    requestLog: {
      request: (record) => {
        metrics.request(record);
        const { listener, method, route, status, requestId, keyId, durationMs, bytesIn, bytesOut } = record;
        log.info({
          event: 'request',
          listener,
          method,
          route,
          status,
          requestId,
          keyId,
          durationMs: Math.round(durationMs * 1000) / 1000,
          bytesIn,
          bytesOut,
        });
      },
    },
    metrics: metrics.render,
    note: (event, facts = {}) => log.info({ event, ...facts }),
    warn: (event, facts = {}) => log.warn({ event, ...facts }),
    flush: () => stdout?.flushSync(),
  };
}

/** Returns standard output. When the process exits, waiting lines are written. */
function standardOutput(): LogOutput {
  const output = new LogOutput(1);
  process.once('exit', () => output.flushSync());
  return output;
}
