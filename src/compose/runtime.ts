import { type RuntimeWarning, runtimeWarning } from '../domain/runtime-support.js';
import type { Clock } from '../ports/clock.js';
import type { Telemetry } from '../telemetry/telemetry.js';

/** Logs and returns what is to be said against the Node that runs this process, where there is anything. */
export function noteRuntime(telemetry: Pick<Telemetry, 'note'>, clock: Clock): RuntimeWarning | undefined {
  const warning = runtimeWarning(process.version, clock.now());
  if (warning !== undefined) telemetry.note('runtime_outdated', { ...warning });
  return warning;
}
