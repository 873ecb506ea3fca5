/** Tests that issuing is atomic: a kill at any moment leaves an issued proof or none. */
import { type ChildProcess, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import t from 'tap';
import { MemorySink } from '../../src/cli/specimens/memory-sink.js';
import { seededDeviceKey, simulateTrace } from '../../src/cli/specimens/simulate-trace.js';
import { createClient } from '../../src/client/index.js';
import { writeClips } from '../capture/write-trace.js';
import { seeded } from '../fixtures/service.js';
import { keyNamesBelow, namesBelow } from '../fixtures/sharded-path.js';
import { wav } from '../fixtures/wav.js';

const KILLS = Number(process.env['TAKEMARK_ISSUE_KILLS'] ?? 4);
const SEED = Number(process.env['TAKEMARK_SEED'] ?? 20_261_121);
const MAIN = new URL('../../src/service/main.js', import.meta.url).pathname;

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
      // Production accepts no simulated trace.
      TAKEMARK_ENVIRONMENT: 'beta',
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
  const device = seededDeviceKey(SEED);
  await post('/devices', { deviceId: device.deviceId });

  interface Acked {
    readonly proofId: string;
    readonly asset: { readonly sha256: string };
    readonly key: string;
    readonly given: Given;
  }
  interface Given {
    readonly audio: Buffer;
    readonly trace?: Buffer;
  }
  const acked: Acked[] = [];
  const unanswered: { readonly key: string; readonly given: Given }[] = [];
  const issue = async (key: string, given: Given): Promise<Acked> => {
    const { audio, trace } = given;
    const form = new FormData();
    if (trace !== undefined) form.set('trace', new Blob([new Uint8Array(trace)]), 'take.trace');
    form.set('file', new Blob([new Uint8Array(audio)]), 'take.wav');
    const response = await fetch(
      `${running.operator}/proofs?partnerId=${partnerId}&song=Song&fileName=take.wav&carrier=embedded`,
      {
        method: 'POST',
        headers: {
          ...headers,
          'idempotency-key': key,
          ...(trace === undefined && { 'content-type': 'application/octet-stream' }),
        },
        body: trace === undefined ? new Uint8Array(audio) : form,
      },
    );
    if (response.status !== 201) throw new Error(`issuing answered ${response.status}`);
    return { ...((await response.json()) as Acked), key, given };
  };
  const traceOf = async (audio: Buffer, seed: number): Promise<Buffer> => {
    const to = new MemorySink();
    const exportSha256 = createHash('sha256').update(audio).digest('hex');
    await simulateTrace({ minutes: 2, seed, exportSha256, to, key: device });
    return to.bytes();
  };

  // The detail of so many placements exceeds the registry, and is an object beside the trace.
  const { bytes: large } = await writeClips(1000, { key: device });

  /** Returns what a lane sends. The first sends no trace, the second a small one, the third one with large bodies. */
  const giveTo = async (lane: number, seed: number): Promise<Given> => {
    const audio = wav(20_000 + Math.floor(random() * 200_000) * 4, { channels: 2 }, seed);
    if (lane === 0) return { audio };
    return { audio, trace: lane === 1 ? await traceOf(audio, seed) : large };
  };
  const LANES = [0, 1, 2] as const;

  // The duration of an issuing here determines the times of the kills: before, during and after
  // acknowledgements.
  const began = performance.now();
  acked.push(
    ...(await Promise.all(
      LANES.map(async (lane) => issue(`first-lane-${lane}-call`, await giveTo(lane, lane + 1))),
    )),
  );
  const pace = performance.now() - began;

  let slowest = 0;
  for (let kill = 0; kill < KILLS; kill += 1) {
    let killed = false;
    const work = LANES.map(async (lane) => {
      for (let i = 0; !killed; i += 1) {
        const key = `kill-${kill}-lane-${lane}-call-${i}`;
        const given = await giveTo(lane, (kill + 1) * 1000 + lane * 100 + i + 1);
        try {
          acked.push(await issue(key, given));
        } catch (error) {
          // A refusal must not count as a lost answer, because that would hide that nothing was issued.
          if (String(error).includes('answered')) throw error;
          unanswered.push({ key, given });
          return;
        }
      }
    });
    await delay(random() * pace);
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
  for (const { proofId, asset, key, given } of acked) {
    const file = Buffer.from(
      await (await fetch(`${running.operator}/proofs/${proofId}/asset`, { headers })).arrayBuffer(),
    );
    if (createHash('sha256').update(file).digest('hex') !== asset.sha256)
      wrong.push({ proofId, what: 'deliverable' });
    const { verdict, proofId: verified, evidenceReport } = await client.verifyFile(file);
    if (verdict !== 'valid' || verified !== proofId) wrong.push({ proofId, verdict });
    const { trace } = given;
    const sha256 = trace && createHash('sha256').update(trace).digest('hex');
    if (evidenceReport?.session?.evidence.traceSha256 !== sha256) wrong.push({ proofId, what: 'evidence' });
    if ((await issue(key, given)).proofId !== proofId) wrong.push({ proofId, what: 'issued twice' });
  }
  t.strictSame(wrong, [], `${acked.length} acknowledged proofs are there, whole, once and valid`);

  // A call without an answer may have taken effect or not. Its repetition gives one proof in both cases.
  const settled: Acked[] = [];
  for (const { key, given } of unanswered) settled.push(await issue(key, given));
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
  const filesIn = (place: string): readonly string[] => namesBelow(join(directory, place));
  const names = (proofs: readonly Acked[], ending: string): readonly string[] =>
    [...new Set(proofs.map(({ proofId }) => `${proofId}${ending}`))].sort();
  const all = [...acked, ...settled];
  const traced = all.filter(({ given }) => given.trace !== undefined);
  const withDetail = all.filter(({ given }) => given.trace === large);
  t.ok(withDetail.length > 0 && withDetail.length < traced.length && traced.length < all.length);
  t.strictSame(
    filesIn('assets'),
    [...names(all, '.asset'), ...names(traced, '.trace'), ...names(withDetail, '.detail')].sort(),
    'files of what was issued are there, and none of a killed issuing',
  );
  t.strictSame(keyNamesBelow(join(directory, 'content-keys')), names(all, '.key'), 'and so are the keys');
  t.comment(`slowest start after a kill: ${Math.round(slowest)} ms`);
});
