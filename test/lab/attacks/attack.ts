import type { ConfinedService } from './confined-service.js';

/** An attack on a running service, as whoever means it harm would carry it out. */
export interface Attack {
  /** As the command line names it. */
  readonly id: string;
  /** Property that must hold, as a sentence. */
  readonly title: string;
  /** Settings of the service beside its defaults. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Seconds after which it counts as successful; 120 by default. */
  readonly limitSeconds?: number;
  /** Rejects where the attack succeeds. The runner looks afterwards whether the service lives and answers. */
  run(context: AttackContext): Promise<void>;
}

export interface AttackContext {
  readonly service: ConfinedService;
  /** A line with figures for the report of the run. */
  readonly say: (line: string) => void;
}
