/** The common parts of the commands: options, servers, a summary, an exit code. */
import { randomInt } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { Ledger } from './ledger.js';
import { type Servers, type ServersOptions, startServers } from './servers.js';

const SHOWN = 50;

export interface Command {
  readonly kills: number;
  readonly seed: number;
  /** Whether to keep the logs and data directories of the processes. */
  readonly keep: boolean;
  readonly servers: Servers;
  readonly ledger: Ledger;
  readonly say: (line: string) => void;
}

export interface Prepared {
  /** The servers of the run. */
  readonly servers: Omit<ServersOptions, 'say'>;
  /** Removes what the run prepared, when the servers have ended. */
  close?(): Promise<void>;
}

export interface CommandOptions<Ready extends Prepared> {
  readonly name: string;
  /** Options of this command beside the common ones, with their defaults. */
  readonly options?: Readonly<Record<string, string>>;
  /** Returns the default number of kills. */
  readonly kills: (values: Values) => number;
  /**
   * Prepares the run from its seed and options.
   * @throws Error if an option is invalid
   */
  readonly prepare: (seed: number, values: Values) => Promise<Ready>;
}

export type Values = Readonly<Record<string, string>>;

/**
 * @param work returns what is added to the summary. The exit code is 1 if it throws or the ledger has
 * violations.
 */
export async function runCommand<Ready extends Prepared>(
  { name, options = {}, kills: usualKills, prepare }: CommandOptions<Ready>,
  work: (command: Command, prepared: Ready) => Promise<object>,
): Promise<void> {
  const { values } = parseArgs({
    options: {
      kills: { type: 'string' },
      seed: { type: 'string' },
      out: { type: 'string' },
      keep: { type: 'boolean', default: false },
      ...Object.fromEntries(
        Object.entries(options).map(
          ([option, value]) => [option, { type: 'string', default: value }] as const,
        ),
      ),
    },
  });
  const more = values as unknown as Values;
  const kills = Number(values.kills ?? usualKills(more));
  const seed = Number(values.seed ?? randomInt(1 << 30));
  if (!Number.isInteger(kills) || !Number.isInteger(seed))
    throw new Error(
      `usage: ${name} [--kills n] [--seed n] [--out file] [--keep]${Object.keys(options)
        .map((option) => ` [--${option} ...]`)
        .join('')}`,
    );
  const prepared = await prepare(seed, more);
  const began = performance.now();
  const say = (line: string): void =>
    console.log(`${((performance.now() - began) / 1000).toFixed(1).padStart(6)} s  ${line}`);
  say(`${name}, seed ${seed}`);
  const ledger = new Ledger(values.out === undefined ? undefined : `${values.out}.ledger`);
  const servers = await startServers({ ...prepared.servers, say }).catch(async (error: unknown) => {
    await prepared.close?.();
    throw error;
  });
  const remove = () => servers.remove().finally(() => prepared.close?.());
  let result: object = {};
  // An interrupted run removes its servers too.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => {
      showViolations(ledger);
      void remove().finally(() => process.exit(1));
    });
  }
  try {
    result = await work({ kills, seed, keep: values.keep, servers, ledger, say }, prepared);
  } catch (error) {
    ledger.violation(
      `the run ended early: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`,
    );
  } finally {
    await remove().catch((error: unknown) => ledger.violation(`the servers did not end: ${String(error)}`));
  }
  const summary = {
    name,
    seed,
    seconds: Math.round((performance.now() - began) / 1000),
    ...result,
    counts: ledger.counts,
    violations: ledger.violations,
  };
  if (values.out !== undefined) await writeFile(values.out, `${JSON.stringify(summary, undefined, 2)}\n`);
  for (const [what, count] of Object.entries(summary.counts))
    console.log(`${String(count).padStart(8)}  ${what}`);
  for (const [what, value] of Object.entries(result)) console.log(`${what}: ${JSON.stringify(value)}`);
  showViolations(ledger);
  say(`${ledger.violations.length} violations (${name}, seed ${seed})`);
  // Ends the process even if handles are still open.
  process.exit(ledger.violations.length === 0 ? 0 : 1);
}

function showViolations({ violations }: Ledger): void {
  for (const violation of violations.slice(0, SHOWN)) console.log(`VIOLATION ${violation}`);
}
