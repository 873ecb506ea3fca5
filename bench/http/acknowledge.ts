import type { TaskOutcome } from '../../src/core/engine/worker.js';

/** A worker's task that hashes nothing. */
export function acknowledge(): TaskOutcome {
  return {};
}
