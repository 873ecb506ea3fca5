import { writeSync } from 'node:fs';
import { type RuntimeWarning, runtimeWarning } from '../domain/runtime-support.js';
import type { Clock } from '../ports/system.js';
import { crashLine } from '../telemetry/log.js';
import type { Telemetry } from '../telemetry/telemetry.js';

/**
 * Ends the process on an uncaught error or an unhandled rejection, with a log line that contains no message
 * of a library. Acknowledged work is already on disk, so nothing has to be saved.
 */
export function exitOnCrash(): void {
  process.on('uncaughtException', (error: unknown) => {
    writeSync(2, crashLine(error));
    process.exit(1);
  });
}

/** Logs and returns the warning about the Node version of this process, if there is one. */
export function noteRuntime(telemetry: Pick<Telemetry, 'note'>, clock: Clock): RuntimeWarning | undefined {
  const warning = runtimeWarning(process.version, clock.now());
  if (warning !== undefined) telemetry.note('runtime_outdated', { ...warning });
  return warning;
}
