import { writeSync } from 'node:fs';
import { crashLine } from '../telemetry/log.js';

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
