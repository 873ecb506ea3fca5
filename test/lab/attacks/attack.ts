import type { ConfinedService } from './confined-service.js';

/** An attack on a running service. */
export interface Attack {
  /** The id on the command line. */
  readonly id: string;
  /** The property that must hold, as a sentence. */
  readonly title: string;
  /** Settings of the service beside its defaults. */
  readonly settings?: Readonly<Record<string, string>>;
  /** The time after which the attack counts as successful, in seconds. Default: 120. */
  readonly limitSeconds?: number;
  /** Rejects if the attack succeeds. Afterwards the runner checks that the service lives and answers. */
  run(context: AttackContext): Promise<void>;
}

export interface AttackContext {
  readonly service: ConfinedService;
  /** Adds a line with figures to the report of the run. */
  readonly say: (line: string) => void;
}
