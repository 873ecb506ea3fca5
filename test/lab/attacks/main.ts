/**
 * Runs the attacks, each against its own service: `npm run attacks [-- --only id,...] [--keep-going]`. The
 * run fails if an attack succeeds, the service dies, or it does not answer afterwards.
 */
import { readdir } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import type { Attack } from './attack.js';
import { CONTAINER_MIB, ConfinedService } from './confined-service.js';

const HERE = new URL('./', import.meta.url);
const LIMIT_SECONDS = 120;
/** The time in which a busy service must answer after an attack, in milliseconds. */
const AFTERWARDS_MS = 30_000;

const { values } = parseArgs({
  options: { only: { type: 'string' }, list: { type: 'boolean', default: false } },
});
const attacks = await allAttacks();
const only = values.only?.split(',');
for (const id of only ?? [])
  if (!attacks.some((attack) => attack.id === id))
    throw new Error(`there is no attack ${id}; there are ${attacks.map((attack) => attack.id).join(', ')}`);
const chosen = attacks.filter(({ id }) => only?.includes(id) ?? true);
if (values.list) {
  for (const { id, title } of chosen) console.log(`${id.padEnd(28)} ${title}`);
  process.exit(0);
}
if (chosen.length === 0) throw new Error('there is no attack to run');

let failed = 0;
for (const attack of chosen) {
  const began = performance.now();
  const fault = await carryOut(attack);
  const seconds = ((performance.now() - began) / 1000).toFixed(1);
  if (fault === undefined) {
    console.log(`ok: ${attack.id}: ${attack.title} (${seconds} s)`);
    continue;
  }
  failed += 1;
  console.log(`FAILED: ${attack.id}: ${attack.title} (${seconds} s)\n  ${fault.replaceAll('\n', '\n  ')}`);
}
console.log(`${chosen.length - failed} passed, ${failed} failed`);
// Ends the process even if an abandoned attack has open sockets.
process.exit(failed === 0 ? 0 : 1);

async function allAttacks(): Promise<readonly Attack[]> {
  const names = (await readdir(HERE)).filter((name) => name.endsWith('.attack.js')).sort();
  return Promise.all(
    names.map(
      async (name) => ((await import(new URL(name, HERE).href)) as { readonly attack: Attack }).attack,
    ),
  );
}

/** @returns what went wrong */
async function carryOut(attack: Attack): Promise<string | undefined> {
  const service = await ConfinedService.start(attack.settings);
  const limit = (attack.limitSeconds ?? LIMIT_SECONDS) * 1000;
  let timer: NodeJS.Timeout | undefined;
  try {
    const tooLong = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error(`not over after ${limit / 1000} s`)), limit);
    });
    await Promise.race([
      attack.run({ service, say: (line) => console.log(`  ${attack.id}: ${line}`) }),
      tooLong,
    ]);
    if (!service.running()) return endOf(service);
    const health = await fetch(`${service.partnerUrl}/v1/health`, {
      signal: AbortSignal.timeout(AFTERWARDS_MS),
    });
    if (health.status !== 200) return `health answers ${health.status} afterwards`;
    const kills = await service.oomKills();
    if (kills > 0) return `the kernel killed ${kills} processes at the limit of ${CONTAINER_MIB} MiB`;
    console.log(`  ${attack.id}: at most ${(await service.peakMiB()).toFixed(0)} of ${CONTAINER_MIB} MiB`);
    return undefined;
  } catch (error) {
    const message = error instanceof Error ? (error.stack ?? error.message) : String(error);
    return service.running() ? message : `${endOf(service)}\n${message}`;
  } finally {
    clearTimeout(timer);
    await service.remove();
  }
}

function endOf(service: ConfinedService): string {
  const { code, signal, words } = service.ending()!;
  return `the service ended (code ${code}, signal ${signal}): ${words.slice(-1000)}`;
}
