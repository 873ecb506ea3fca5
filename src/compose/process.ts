import { writeSync } from 'node:fs';
import { type RuntimeWarning, runtimeWarning } from '../domain/runtime-support.js';
import type { Clock } from '../ports/system.js';
import { crashLine } from '../telemetry/log.js';
import type { Telemetry } from '../telemetry/telemetry.js';

/**
 * Ends the process when an error is not caught, with a log line that holds no message of a library.
 * Rejections that nobody handles come here too. What was acknowledged is on disk, so there is nothing to
 * save.
 */
export function exitOnCrash(): void {
  process.on('uncaughtException', (error: unknown) => {
    writeSync(2, crashLine(error));
    process.exit(1);
  });
}

/** Logs and returns what is to be said against the Node that runs this process, where there is anything. */
export function noteRuntime(telemetry: Pick<Telemetry, 'note'>, clock: Clock): RuntimeWarning | undefined {
  const warning = runtimeWarning(process.version, clock.now());
  if (warning !== undefined) telemetry.note('runtime_outdated', { ...warning });
  return warning;
}
