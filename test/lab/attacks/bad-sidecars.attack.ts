import { strict as assert } from 'node:assert';
import { Agent, request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { collect } from '../../fixtures/service.js';
import { wav } from '../../fixtures/wav.js';
import type { Attack } from './attack.js';
import type { ConfinedService } from './confined-service.js';
import { uploadOnce } from './partner-calls.js';

const QUIET_MS = 10_000;
const ATTACK_MS = 20_000;
const VICTIM_EVERY_MS = 50;
/** The attacker's calls per second, which are three times the rate of its plan. */
const ATTACK_RATE = 150;
const TIMEOUT_MS = 60_000;
/** The smallest quiet p99, in milliseconds. Below it a ratio would show the noise of the machine. */
const LEAST_QUIET_MS = 10;
/** The largest ratio of the other partner's p99 during the attack to its quiet p99. */
const MAX_RATIO = 2;

export const attack: Attack = {
  id: 'bad-sidecars',
  title:
    'sidecars with a wrong signature, at three times the rate of a plan, do not slow other partners down',
  async run({ service, say }) {
    const victim = await service.partner('standard');
    const attacker = await service.partner('standard');
    const audio = wav(50_000);
    const sidecar = await issuePair(service, victim.partnerId, victim.apiKey, audio);
    const good = await verifyBody(service, victim.apiKey, audio, sidecar);
    const wrong = Buffer.from(sidecar);
    // The last byte of the signature.
    wrong[wrong.length - 1]! ^= 1;
    const bad = await verifyBody(service, attacker.apiKey, audio, wrong);

    const quiet = await verifyWhile(service, victim.apiKey, good, delay(QUIET_MS));
    say(`quiet: ${quiet.words}`);
    const counts = new Map<string, number>();
    const flood = verifyAt(service, attacker.apiKey, bad, counts);
    const attacked = await verifyWhile(service, victim.apiKey, good, flood);
    const ratio = attacked.p99 / Math.max(LEAST_QUIET_MS, quiet.p99);
    const outcomes = [...counts].map(([outcome, count]) => `${count} x ${outcome}`).join(', ');
    say(`the attacker: ${outcomes}; the other partner: ${attacked.words}, p99 ratio ${ratio.toFixed(2)}`);
    assert.deepEqual([quiet.others, attacked.others], [[], []], 'the pair is valid in every call');
    assert.ok((counts.get('200 tampered') ?? 0) > 0, 'the attacker gets verdicts within its plan');
    assert.equal(counts.get('200 valid'), undefined, 'a wrong signature is never valid');
    assert.ok(ratio <= MAX_RATIO, `the p99 of the other partner rose ${ratio.toFixed(2)} times`);
  },
};

/** Issues a pair. Returns its sidecar. */
async function issuePair(
  service: ConfinedService,
  partnerId: string,
  apiKey: string,
  audio: Uint8Array,
): Promise<Buffer> {
  const query = new URLSearchParams({
    partnerId,
    song: 'Song',
    fileName: 'take.wav',
    carrier: 'sidecar',
  });
  const issued = await fetch(`${service.operatorUrl}/proofs?${query}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${service.token}`, 'content-type': 'application/octet-stream' },
    body: Buffer.from(audio),
  });
  assert.equal(issued.status, 201, await issued.clone().text());
  const { proofId } = (await issued.json()) as { proofId: string };
  const sidecar = await fetch(`${service.partnerUrl}/v1/proofs/${proofId}/asset?part=sidecar`, {
    headers: { 'x-api-key': apiKey },
  });
  assert.equal(sidecar.status, 200);
  return Buffer.from(await sidecar.arrayBuffer());
}

/** Uploads the audio. Returns the body of a verify with the sidecar. */
async function verifyBody(
  service: ConfinedService,
  apiKey: string,
  audio: Uint8Array,
  sidecar: Buffer,
): Promise<Buffer> {
  const { status, uploadId } = await uploadOnce(service, apiKey, audio);
  assert.equal(status, 201);
  return Buffer.from(JSON.stringify({ uploadId, sidecar: sidecar.toString('base64') }));
}

/** Verifies again and again until `work` has ended. `others` are the outcomes that are not `200 valid`. */
async function verifyWhile(
  service: ConfinedService,
  apiKey: string,
  body: Buffer,
  work: Promise<unknown>,
): Promise<{ readonly p99: number; readonly others: readonly string[]; readonly words: string }> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  let isOver = false;
  const ended = work.finally(() => {
    isOver = true;
  });
  const times: number[] = [];
  const others: string[] = [];
  while (!isOver) {
    const began = performance.now();
    const outcome = await verify(service, apiKey, body, agent);
    times.push(performance.now() - began);
    if (outcome !== '200 valid') others.push(outcome);
    await delay(VICTIM_EVERY_MS);
  }
  await ended;
  agent.destroy();
  times.sort((one, other) => one - other);
  const at = (share: number): number => times[Math.min(times.length - 1, Math.floor(times.length * share))]!;
  return {
    p99: at(0.99),
    others,
    words: `${times.length} calls, p50 ${at(0.5).toFixed(1)}, p99 ${at(0.99).toFixed(1)} ms`,
  };
}

/** Verifies at the attack's rate, without waiting for the answers, and counts each outcome. */
async function verifyAt(
  service: ConfinedService,
  apiKey: string,
  body: Buffer,
  counts: Map<string, number>,
): Promise<void> {
  const agent = new Agent({ keepAlive: true });
  const calls: Promise<void>[] = [];
  const began = performance.now();
  for (let sent = 0; performance.now() - began < ATTACK_MS && service.running(); sent += 1) {
    calls.push(
      verify(service, apiKey, body, agent).then((outcome) => {
        counts.set(outcome, (counts.get(outcome) ?? 0) + 1);
      }),
    );
    await delay(Math.max(0, (sent * 1000) / ATTACK_RATE - (performance.now() - began)));
  }
  await Promise.all(calls);
  agent.destroy();
}

/** Returns the status with the verdict or the reason. A call without an answer is `0`. */
function verify(service: ConfinedService, apiKey: string, body: Buffer, agent: Agent): Promise<string> {
  return new Promise((resolve) => {
    const outgoing = request(
      {
        port: service.port,
        host: '127.0.0.1',
        method: 'POST',
        path: '/v1/verify',
        agent,
        timeout: TIMEOUT_MS,
        headers: { 'x-api-key': apiKey, 'content-type': 'application/json', 'content-length': body.length },
      },
      (response) =>
        void collect(response).then(
          (bytes) => {
            const { verdict, reason, code } = JSON.parse(bytes.toString()) as Record<string, string>;
            resolve(`${response.statusCode} ${verdict ?? reason ?? code}`);
          },
          () => resolve('0'),
        ),
    );
    outgoing.once('error', () => resolve('0')).once('timeout', () => outgoing.destroy(new Error('timeout')));
    outgoing.end(body);
  });
}
