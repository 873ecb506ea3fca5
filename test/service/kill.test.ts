/** Issuing is atomic: killed at any moment there is an issued proof or none. */
import { type ChildProcess, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import t from 'tap';
import { createClient } from '../../src/client/index.js';
import { seeded } from '../fixtures/service.js';
import { wav } from '../fixtures/wav.js';

const KILLS = Number(process.env['TAKEMARK_ISSUE_KILLS'] ?? 12);
const SEED = Number(process.env['TAKEMARK_SEED'] ?? 20_261_121);
const MAIN = new URL('../../src/main.js', import.meta.url).pathname;

interface Running {
  readonly child: ChildProcess;
  readonly partner: string;
  readonly operator: string;
  readonly startedInMs: number;
}

async function start(directory: string): Promise<Running> {
  const began = performance.now();
  await rm(join(directory, 'endpoints.json'), { force: true });
  const child = spawn(process.execPath, [MAIN], {
    stdio: 'ignore',
    env: {
      PATH: process.env['PATH'],
      TAKEMARK_DATA_DIR: directory,
      TAKEMARK_PORT: '0',
      TAKEMARK_OPERATOR_PORT: '0',
      TAKEMARK_HOST: '127.0.0.1',
      TAKEMARK_LOG_LEVEL: 'silent',
    },
  });
  for (;;) {
    const text = await readFile(join(directory, 'endpoints.json'), 'utf8').catch(() => undefined);
    if (text !== undefined) {
      const { partner, operator } = JSON.parse(text) as { partner: number; operator: number };
      return {
        child,
        partner: `http://127.0.0.1:${partner}`,
        operator: `http://127.0.0.1:${operator}/operator/v1`,
        startedInMs: performance.now() - began,
      };
    }
    if (child.exitCode !== null) throw new Error(`the service ended with ${child.exitCode}`);
    await delay(10);
  }
}

t.test(`${KILLS} kills while issuing`, async (t) => {
  t.comment(`seed ${SEED}`);
  const random = seeded(SEED);
  const directory = await mkdtemp(join(tmpdir(), 'takemark-kill-'));
  t.teardown(() => rm(directory, { recursive: true, force: true }));
  let running = await start(directory);
  t.teardown(() => running.child.kill('SIGKILL'));
  const headers = {
    authorization: `Bearer ${(await readFile(join(directory, 'operator-token'), 'utf8')).trim()}`,
  };
  const post = async (path: string, body: unknown): Promise<Record<string, string>> =>
    (
      await fetch(`${running.operator}${path}`, {
        method: 'POST',
        headers: { ...headers, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      })
    ).json() as Promise<Record<string, string>>;
  const { partnerId } = await post('/partners', { name: 'Killed', plan: 'volume' });
  const { apiKey } = await post(`/partners/${partnerId}/keys`, { name: 'key' });

  interface Acked {
    readonly proofId: string;
    readonly asset: { readonly sha256: string };
    readonly key: string;
    readonly audio: Buffer;
  }
  const acked: Acked[] = [];
  const unanswered: { readonly key: string; readonly audio: Buffer }[] = [];
  const issue = async (key: string, audio: Buffer): Promise<Acked> => {
    const response = await fetch(
      `${running.operator}/proofs?partnerId=${partnerId}&song=Song&fileName=take.wav&carrier=embedded`,
      {
        method: 'POST',
        headers: { ...headers, 'content-type': 'application/octet-stream', 'idempotency-key': key },
        body: new Uint8Array(audio),
      },
    );
    if (response.status !== 201) throw new Error(`issuing answered ${response.status}`);
    return { ...((await response.json()) as Acked), key, audio };
  };

  let slowest = 0;
  for (let kill = 0; kill < KILLS; kill += 1) {
    let killed = false;
    const work = Array.from({ length: 3 }, async (_, lane) => {
      for (let i = 0; !killed; i += 1) {
        const key = `kill-${kill}-lane-${lane}-call-${i}`;
        const audio = wav(
          20_000 + Math.floor(random() * 200_000) * 4,
          { channels: 2 },
          kill * 1000 + lane * 100 + i + 1,
        );
        try {
          acked.push(await issue(key, audio));
        } catch (error) {
          // A refusal is no lost answer: it would hide that nothing was issued.
          if (String(error).includes('answered')) throw error;
          unanswered.push({ key, audio });
          return;
        }
      }
    });
    await delay(20 + random() * 250);
    running.child.kill('SIGKILL');
    await once(running.child, 'exit');
    killed = true;
    await Promise.all(work);
    running = await start(directory);
    slowest = Math.max(slowest, running.startedInMs);
  }

  const client = createClient({ baseUrl: running.partner, apiKey: apiKey! });
  t.teardown(() => client.close());
  const wrong: unknown[] = [];
  for (const { proofId, asset, key, audio } of acked) {
    const file = Buffer.from(
      await (await fetch(`${running.operator}/proofs/${proofId}/asset`, { headers })).arrayBuffer(),
    );
    if (createHash('sha256').update(file).digest('hex') !== asset.sha256)
      wrong.push({ proofId, what: 'deliverable' });
    const { verdict, proofId: verified } = await client.verifyFile(file);
    if (verdict !== 'valid' || verified !== proofId) wrong.push({ proofId, verdict });
    if ((await issue(key, audio)).proofId !== proofId) wrong.push({ proofId, what: 'issued twice' });
  }
  t.strictSame(wrong, [], `${acked.length} acknowledged proofs are there, whole, once and valid`);

  // A call that was not answered may have taken effect or not; said again it is one proof either way.
  const settled: Acked[] = [];
  for (const { key, audio } of unanswered) settled.push(await issue(key, audio));
  const known = new Set([...acked, ...settled].map(({ proofId }) => proofId));
  t.equal(
    known.size,
    acked.length + settled.length,
    `${settled.length} calls without an answer are one proof each`,
  );

  running.child.kill('SIGTERM');
  await once(running.child, 'exit');
  running = await start(directory);
  running.child.kill('SIGTERM');
  await once(running.child, 'exit');
  const entries = await readdir(join(directory, 'assets'), { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map(({ name }) => name);
  t.strictSame(
    files.filter((name) => ![...known].some((proofId) => name.includes(proofId))),
    [],
    'no file of a killed issuing is left',
  );
  t.equal(files.length, known.size, 'and no deliverable is missing');
  t.comment(`slowest start after a kill: ${Math.round(slowest)} ms`);
});
