import { strict as assert } from 'node:assert';
import { Agent, request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import type { Attack } from './attack.js';
import type { ConfinedService } from './confined-service.js';
import { issueRich } from './rich-proofs.js';

const PROOFS = 100;
const ATTACK_MS = 25_000;
const QUIET_MS = 10_000;
const VICTIM_EVERY_MS = 50;
const TIMEOUT_MS = 60_000;
/** The smallest quiet p99, in milliseconds. Below it a ratio would show the noise of the machine. */
const LEAST_QUIET_MS = 10;
/** The largest ratio of the victim's p99 during the attack to its quiet p99. */
const MAX_RATIO = 20;

export const attack: Attack = {
  id: 'proof-lists',
  title: 'lists of rich proofs, at the whole rate of a plan, neither end the process nor slow others down',
  limitSeconds: 900,
  async run({ service, say }) {
    const victim = await service.partner('standard');
    const attacker = await service.partner('trial');
    await issueRich(service, attacker.partnerId, PROOFS, { detail: true });
    const quiet = await victimAfter(service, victim.apiKey, () => delay(QUIET_MS));
    say(`quiet: ${quiet.words}`);
    for (const [plan, rate] of [
      ['trial', 5],
      ['standard', 50],
    ] as const) {
      await service.operator('PUT', `/partners/${attacker.partnerId}/plan`, { plan });
      const counts = new Map<string, number>();
      const attacked = await victimAfter(service, victim.apiKey, async () => {
        for (const [outcome, count] of await listAt(service, attacker.apiKey, rate))
          counts.set(outcome, count);
      });
      const ratio = attacked.p99 / Math.max(LEAST_QUIET_MS, quiet.p99);
      const lists = [...counts].map(([outcome, count]) => `${count} x ${outcome}`).join(', ');
      say(
        `${plan} at ${rate}/s: lists ${lists}; the other partner: ${attacked.words}, p99 ratio ${ratio.toFixed(1)}; ` +
          `peak ${(await service.peakMiB()).toFixed(0)} MiB`,
      );
      assert.equal(attacked.failed, 0, 'every call of the other partner is answered');
      assert.ok((counts.get('200') ?? 0) > 0, 'the attacker still gets lists within its plan');
      assert.ok(ratio <= MAX_RATIO, `the p99 of the other partner rose ${ratio.toFixed(1)} times`);
    }
  },
};

interface Victim {
  readonly p99: number;
  readonly failed: number;
  readonly words: string;
}

/** Makes the calls of an ordinary partner until `work` has ended. */
async function victimAfter(
  service: ConfinedService,
  apiKey: string,
  work: () => Promise<unknown>,
): Promise<Victim> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  let isOver = false;
  const ended = work().finally(() => {
    isOver = true;
  });
  const times: number[] = [];
  let failed = 0;
  while (!isOver) {
    const began = performance.now();
    if ((await statusOf(service, '/v1/partner/usage', apiKey, agent)) !== 200) failed += 1;
    times.push(performance.now() - began);
    await delay(VICTIM_EVERY_MS);
  }
  await ended;
  agent.destroy();
  times.sort((one, other) => one - other);
  const at = (share: number): number => times[Math.min(times.length - 1, Math.floor(times.length * share))]!;
  const words = `${times.length} calls, ${failed} failed, p50 ${at(0.5).toFixed(1)}, p99 ${at(0.99).toFixed(1)} ms`;
  return { p99: at(0.99), failed, words };
}

/** Sends lists at a rate, without waiting for the answers. Returns the number of each outcome. */
async function listAt(
  service: ConfinedService,
  apiKey: string,
  rate: number,
): Promise<ReadonlyMap<string, number>> {
  const agent = new Agent({ keepAlive: true });
  const counts = new Map<string, number>();
  const calls: Promise<void>[] = [];
  const began = performance.now();
  while (performance.now() - began < ATTACK_MS && service.running()) {
    calls.push(
      statusOf(service, '/v1/proofs?limit=100', apiKey, agent).then((status) => {
        counts.set(String(status), (counts.get(String(status)) ?? 0) + 1);
      }),
    );
    await delay(1000 / rate);
  }
  await Promise.all(calls);
  agent.destroy();
  return counts;
}

/** Returns the status of a GET. A connection that is cut, and a call without an answer, count as 0. */
function statusOf(service: ConfinedService, path: string, apiKey: string, agent: Agent): Promise<number> {
  return new Promise((resolve) => {
    const outgoing = request(
      {
        port: service.port,
        host: '127.0.0.1',
        path,
        agent,
        timeout: TIMEOUT_MS,
        headers: { 'x-api-key': apiKey },
      },
      (response) =>
        response
          .resume()
          .once('end', () => resolve(response.statusCode!))
          .once('error', () => resolve(0)),
    );
    outgoing.once('error', () => resolve(0)).once('timeout', () => outgoing.destroy(new Error('timeout')));
    outgoing.end();
  });
}
