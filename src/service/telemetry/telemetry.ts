import type { DestinationStream } from 'pino';
import { defined } from '../../core/domain/defined.js';
import { dependencyOf } from '../../core/domain/errors.js';
import type { Observer } from '../ports/observer.js';
import type { RequestLog } from '../ports/request-log.js';
import { Folds } from './folds.js';
import { createLog, describeError, type LogFormat, type LogLevel, nextLevel } from './log.js';
import { LogOutput } from './log-output.js';
import { createMetrics, type Metrics, type MetricsParts } from './metrics.js';

export interface TelemetryParts extends MetricsParts {
  readonly level: LogLevel;
  readonly logFormat?: LogFormat;
  /** True if request lines have the address of the caller. */
  readonly logsAddresses?: boolean;
  /** The destination of the log. The default is standard output. */
  readonly destination?: DestinationStream;
}

export interface Telemetry {
  readonly observer: Observer;
  readonly requestLog: RequestLog;
  readonly metrics: Metrics['render'];
  readonly measure: Metrics['measure'];
  /**
   * Logs an event of the process itself. `facts` are addresses, versions and counts, never secrets.
   */
  note(event: string, facts?: Readonly<Record<string, string | number | boolean>>): void;
  /** Logs a condition that the operator should change. */
  warn(event: string, facts?: Readonly<Record<string, string | number | boolean>>): void;
  /** Changes the level of the log to the next one: the configured level, then debug, info and warn. */
  changeLogLevel(): void;
  /** Writes buffered lines. Call it before the process ends. */
  flush(): void;
}

/** Creates the log, the metrics and the observer that the rest of the service reports to. */
export function createTelemetry({
  level,
  logFormat,
  logsAddresses = false,
  destination,
  ...metricsParts
}: TelemetryParts): Telemetry {
  const folds = new Folds();
  const stdout = destination === undefined ? standardOutput(folds) : undefined;
  const log = createLog(
    { level, ...defined({ format: logFormat, version: metricsParts.build?.version }) },
    destination ?? stdout!,
  );
  let currentLevel = level;
  /** Writes a line, or counts it for the next line of its kind. At the level debug every line is written. */
  const fold = (kind: string, write: (count: number) => void, count?: number): void => {
    if (log.isLevelEnabled('debug')) write(count ?? 1);
    else folds.add(kind, write, count);
  };
  const metrics = createMetrics(metricsParts);
  return {
    observer: {
      ...metrics,
      events: (topic, outcome, count) => {
        metrics.events(topic, outcome, count);
        if (outcome === 'dead')
          fold(
            `dead_letter ${topic}`,
            (folded) => log.warn({ event: 'dead_letter', topic, count: folded }, 'dead_letter'),
            count,
          );
      },
      fault: (where, error, call) => {
        metrics.fault(where, error);
        const dependency = dependencyOf(error);
        // Pino omits undefined members.
        const { requestId, traceId, partnerId, route } = call ?? {};
        const facts = { event: 'fault', where, dependency, requestId, traceId, partnerId, route };
        fold(`fault ${where} ${dependency} ${kindOf(error)}`, (count) =>
          log.error({ ...facts, ...countOf(count), error: describeError(error) }, 'fault'),
        );
      },
    },
    requestLog: {
      request: (record) => {
        metrics.request(record);
        const { listener, method, route, status, requestId, traceId, keyId, partnerId, code, reason } =
          record;
        // Pino omits undefined members.
        const facts = {
          event: 'request',
          listener,
          method,
          route,
          status,
          requestId,
          traceId,
          keyId,
          partnerId,
          operator: record.operator,
          address: logsAddresses ? record.address : undefined,
          code,
          reason,
          durationMs: Math.round(record.durationMs * 1000) / 1000,
          bytesIn: record.bytesIn,
          bytesOut: record.bytesOut,
        };
        if (status < 500) log.info(facts, 'request');
        else
          fold(`request ${listener} ${method} ${route} ${status} ${reason} ${partnerId}`, (count) =>
            log.info({ ...facts, ...countOf(count) }, 'request'),
          );
      },
    },
    metrics: metrics.render,
    measure: metrics.measure,
    note: (event, facts = {}) => log.info({ event, ...facts }, event),
    warn: (event, facts = {}) => log.warn({ event, ...facts }, event),
    changeLogLevel: () => {
      const from = currentLevel;
      currentLevel = nextLevel(level, from);
      const noteChange = () => log.warn({ event: 'log_level', from, to: currentLevel }, 'log_level');
      // At the quieter of both levels the line might not be written.
      const wasWritten = log.isLevelEnabled('warn');
      if (wasWritten) noteChange();
      log.level = currentLevel;
      if (!wasWritten) noteChange();
    },
    flush: () => {
      folds.flush();
      stdout?.flushSync();
    },
  };
}

/** Returns the count of a folded line. A line of one event has none. */
function countOf(count: number): { readonly count?: number } {
  return count === 1 ? {} : { count };
}

/** Returns the name and the code of an error. Errors with the same name and code are of one kind. */
function kindOf(error: unknown): string {
  if (!(error instanceof Error)) return typeof error;
  const { code, reason, cause } = error as { code?: unknown; reason?: unknown; cause?: unknown };
  const causeCode = cause instanceof Error ? ` ${cause.name} ${(cause as { code?: unknown }).code}` : '';
  return `${error.name} ${code} ${reason}${causeCode}`;
}

/** Returns standard output. When the process exits, folded and waiting lines are written. */
function standardOutput(folds: Folds): LogOutput {
  const output = new LogOutput(1);
  process.once('exit', () => {
    folds.flush();
    output.flushSync();
  });
  return output;
}
