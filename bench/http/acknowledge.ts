import type { TaskOutcome } from '../../src/core/engine/worker.js';

/** Acknowledges a worker's task and hashes nothing. */
export function acknowledge(): TaskOutcome {
  return {};
}
