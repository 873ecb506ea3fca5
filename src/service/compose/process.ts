import { writeSync } from 'node:fs';
import type { Config } from '../config/config.js';
import { type RuntimeWarning, runtimeWarning } from '../domain/runtime-support.js';
import type { Clock } from '../ports/system.js';
import { crashLine } from '../telemetry/log.js';
import type { Telemetry } from '../telemetry/telemetry.js';

/**
 * Ends the process on an uncaught error or an unhandled rejection, with a log line that contains no message
 * of a library. Acknowledged work is already on disk, so nothing has to be saved.
 */
export function exitOnCrash(line: Parameters<typeof crashLine>[1]): void {
  process.on('uncaughtException', (error: unknown) => {
    writeSync(2, crashLine(error, line));
    process.exit(1);
  });
}

/**
 * Changes the log level of the process at SIGUSR2. Without a handler the signal would end a process that still starts.
 * @returns a function that receives the running service or consumers
 */
export function changeLevelOnSignal(): (running: { changeLogLevel(): void }) => void {
  let running: { changeLogLevel(): void } | undefined;
  process.on('SIGUSR2', () => running?.changeLogLevel());
  return (started) => {
    running = started;
  };
}

/** Logs and returns the warning about the Node version of this process, if there is one. */
export function noteRuntime(telemetry: Pick<Telemetry, 'warn'>, clock: Clock): RuntimeWarning | undefined {
  const warning = runtimeWarning(process.version, clock.now());
  if (warning !== undefined) telemetry.warn('runtime_outdated', { ...warning });
  return warning;
}

/** Logs the variables with the prefix that are not settings. */
export function noteUnknownSettings({ unknown }: Config, telemetry: Pick<Telemetry, 'warn'>): void {
  for (const { name, nearest } of unknown.misspelt) telemetry.warn('setting_unknown', { name, nearest });
  if (unknown.serviceLinks.length > 0)
    telemetry.warn('kubernetes_service_links', { count: unknown.serviceLinks.length });
}
