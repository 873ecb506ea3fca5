import process from 'node:process';
import { testSigning } from '../../fixtures/signing.js';
import { migrated, runHistory, type Stage } from './history.js';
import { Machine } from './machine.js';
import type { Fault } from './weather.js';

/** An order to play the histories of some seeds. */
export interface Order {
  readonly seeds: readonly number[];
  readonly faults: readonly Fault[];
}

/** The report of a player on one history. */
export interface Played {
  readonly seed: number;
  readonly violations: number;
  /** The number of calls that were answered with success. */
  readonly answered: number;
  readonly lines: readonly string[];
}

// A process that plays one history after another until its parent sends no more orders.
const signing = testSigning({ notBefore: Date.UTC(2026, 0, 1), notAfter: Date.UTC(2036, 0, 1) });
const stage: Stage = { database: await migrated(), signing, machine: Machine.install() };
process.on('message', ({ seeds, faults }: Order) => {
  void (async () => {
    for (const seed of seeds) {
      const { violations, answered, lines } = await runHistory(stage, seed, { faults });
      process.send!({ seed, violations: violations.length, answered, lines } satisfies Played);
    }
  })();
});
