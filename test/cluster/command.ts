/** Parts that the commands have in common: options, servers of their own, a summary, an exit code. */
import { randomInt } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { Ledger } from './ledger.js';
import { type Servers, startServers } from './servers.js';

const SHOWN = 50;

export interface Command {
  readonly kills: number;
  readonly seed: number;
  /** Tells whether logs and data directories of the processes stay. */
  readonly keep: boolean;
  readonly servers: Servers;
  readonly ledger: Ledger;
  readonly say: (line: string) => void;
}

/**
 * @param work whose result goes into the summary; the exit code is 1 where it throws or the ledger has
 * violations
 */
export async function runCommand(
  {
    name,
    nodes,
    defaultKills,
  }: { readonly name: string; readonly nodes: 1 | 3; readonly defaultKills: number },
  work: (command: Command) => Promise<object>,
): Promise<void> {
  const { values } = parseArgs({
    options: {
      kills: { type: 'string', default: String(defaultKills) },
      seed: { type: 'string' },
      out: { type: 'string' },
      keep: { type: 'boolean', default: false },
    },
  });
  const kills = Number(values.kills);
  const seed = Number(values.seed ?? randomInt(1 << 30));
  if (!Number.isInteger(kills) || !Number.isInteger(seed))
    throw new Error(`usage: ${name} [--kills n] [--seed n] [--out file] [--keep]`);
  const began = performance.now();
  const say = (line: string): void =>
    console.log(`${((performance.now() - began) / 1000).toFixed(1).padStart(6)} s  ${line}`);
  say(`${name}, seed ${seed}`);
  const ledger = new Ledger(values.out === undefined ? undefined : `${values.out}.ledger`);
  const servers = await startServers({ nodes, say });
  let more: object = {};
  // Whoever gives up on the run does not want its servers either.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => {
      showViolations(ledger);
      void servers.remove().finally(() => process.exit(1));
    });
  }
  try {
    more = await work({ kills, seed, keep: values.keep, servers, ledger, say });
  } catch (error) {
    ledger.violation(
      `the run ended early: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`,
    );
  } finally {
    await servers
      .remove()
      .catch((error: unknown) => ledger.violation(`the servers did not end: ${String(error)}`));
  }
  const summary = {
    name,
    seed,
    seconds: Math.round((performance.now() - began) / 1000),
    ...more,
    counts: ledger.counts,
    violations: ledger.violations,
  };
  if (values.out !== undefined) await writeFile(values.out, `${JSON.stringify(summary, undefined, 2)}\n`);
  for (const [what, count] of Object.entries(summary.counts))
    console.log(`${String(count).padStart(8)}  ${what}`);
  for (const [what, result] of Object.entries(more)) console.log(`${what}: ${JSON.stringify(result)}`);
  showViolations(ledger);
  say(`${ledger.violations.length} violations (${name}, seed ${seed})`);
  // Whatever is left open by then, a run has an end.
  process.exit(ledger.violations.length === 0 ? 0 : 1);
}

function showViolations({ violations }: Ledger): void {
  for (const violation of violations.slice(0, SHOWN)) console.log(`VIOLATION ${violation}`);
}
