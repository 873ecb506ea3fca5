import type { DestinationStream } from 'pino';
import type { EngineStats } from '../ports/audio-engine.js';
import type { Observer } from '../ports/observer.js';
import type { RequestLog } from '../ports/request-log.js';
import { createLog, describeError, type LogLevel } from './log.js';
import { LogOutput } from './log-output.js';
import { type AuditCounts, type ClockDifferences, createMetrics, type Metrics } from './metrics.js';

export interface TelemetryParts {
  readonly level: LogLevel;
  /** Read when metrics are collected; undefined while there is no engine. */
  readonly engineStats?: () => EngineStats | undefined;
  /** Events that wait to be published; undefined while there is no outbox. */
  readonly eventsWaiting: () => number | undefined;
  /** Events that a consumer of this process has not taken yet, by topic. */
  readonly lag: () => ReadonlyMap<string, number>;
  /** End of the partner listener's certificate, in unix seconds; undefined where it has none. */
  readonly tlsExpiresAt?: () => number | undefined;
  /** Differences between clocks; undefined while there is no store with servers of its own. */
  readonly clocks?: () => ClockDifferences | undefined;
  /** Findings of the auditor; undefined where another process goes through the stores. */
  readonly audit?: () => AuditCounts | undefined;
  /** Unix seconds at which the certificate that signs ends. */
  readonly signerNotAfter?: number;
  /** Standard output by default. */
  readonly destination?: DestinationStream;
}

export interface Telemetry {
  readonly observer: Observer;
  readonly requestLog: RequestLog;
  readonly metrics: Metrics['render'];
  /**
   * A line about the process itself: `event` names it, `facts` are addresses, versions, counts. Never a
   * secret.
   */
  note(event: string, facts?: Readonly<Record<string, string | number | boolean>>): void;
  /** A line about something that an operator should change. */
  warn(event: string, facts?: Readonly<Record<string, string | number | boolean>>): void;
  /** Writes what is buffered; call before the process ends. */
  flush(): void;
}

/** Log, metrics and the observer that the rest of the service reports through. */
export function createTelemetry({
  level,
  engineStats = () => undefined,
  eventsWaiting,
  lag,
  tlsExpiresAt = () => undefined,
  clocks,
  signerNotAfter,
  audit,
  destination,
}: TelemetryParts): Telemetry {
  const stdout = destination === undefined ? standardOutput() : undefined;
  const log = createLog(level, destination ?? stdout!);
  const metrics = createMetrics(engineStats, eventsWaiting, lag, tlsExpiresAt, clocks, signerNotAfter, audit);
  return {
    observer: {
      verdict: metrics.verdict,
      upload: metrics.upload,
      displaced: metrics.displaced,
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

/** Standard output; a process that exits writes what waits for it. */
function standardOutput(): LogOutput {
  const output = new LogOutput(1);
  process.once('exit', () => output.flushSync());
  return output;
}
