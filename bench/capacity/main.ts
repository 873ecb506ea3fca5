/**
 * `npm run bench:capacity`: what deploy/capacity.md is made of, measured on real servers that this command
 * starts. `npm run build:capacity` makes the page of it.
 */
import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { eachOf } from '../../src/async/each-of.js';
import { broadcastWaveFile } from '../fixtures/broadcast-wave.js';
import { jsonRequest } from '../load/form.js';
import type { PreparedCall, RequestClient } from '../load/request-client.js';
import type { UploadClient } from '../load/upload-client.js';
import { describeMachine } from '../machine.js';
import { Child } from '../service/child.js';
import { type CpuSeconds, Deployment, PARTS, type Part } from './deployment.js';
import { type Contention, chargeOnePartner } from './one-partner.js';

const USAGE = `npm run bench:capacity -- [options]
  --count <n>   files uploaded, calls of each kind; a quarter as many proofs are issued (4000)
  --out <dir>   where capacity.json goes (bench/results)
  --profile     CPU profiles of the service, beside it`;

const PARTNERS = 4;
const CONNECTIONS = 32;
const ISSUING_LANES = 8;
const FILE_BYTES = 24_000;
const LARGE_BYTES = 32 * 1024 * 1024;
const LARGE_FILES = 24;
const IDLE_SECONDS = 15;

interface Cost {
  readonly name: string;
  readonly calls: number;
  readonly seconds: number;
  /** Microseconds of CPU a call, the idle processes' own taken off. */
  readonly cpu: Readonly<Record<Part, number>>;
  /** Bytes a call by table and topic, one replica. */
  readonly bytes: Readonly<Record<string, number>>;
}

interface Subject {
  readonly partnerId: string;
  readonly apiKey: string;
}

interface Work extends Pick<Cost, 'name' | 'calls' | 'seconds' | 'bytes'> {
  /** Seconds until the last of its events was taken. */
  readonly elapsed: number;
  readonly cpuSeconds: CpuSeconds;
}

class Measurement {
  readonly #deployment: Deployment;
  readonly #works: Work[] = [];

  constructor(deployment: Deployment) {
    this.#deployment = deployment;
  }

  /** Once all was measured: by then the compilers of the servers have nothing left to do. */
  async costs(): Promise<{ readonly idle: CpuSeconds; readonly costs: readonly Cost[] }> {
    await this.#deployment.idle();
    const before = await this.#deployment.cpu();
    await sleep(IDLE_SECONDS * 1000);
    const after = await this.#deployment.cpu();
    const idle = byPart((part) => (after[part] - before[part]) / IDLE_SECONDS);
    const costs = this.#works.map(({ name, calls, seconds, elapsed, cpuSeconds, bytes }) => ({
      name,
      calls,
      seconds,
      bytes,
      cpu: byPart((part) => Math.round(((cpuSeconds[part] - idle[part] * elapsed) / calls) * 1e6)),
    }));
    return { idle, costs };
  }

  async of<Result>(name: string, calls: number, work: () => Promise<Result>): Promise<Result> {
    say(`${name}: ${calls}`);
    const stored = await this.#deployment.storage();
    await this.#deployment.idle();
    const before = await this.#deployment.cpu();
    const began = performance.now();
    const result = await work();
    const seconds = (performance.now() - began) / 1000;
    // Work that a call left to do belongs to it.
    await this.#deployment.idle();
    const after = await this.#deployment.cpu();
    const elapsed = (performance.now() - began) / 1000;
    const stores = await this.#deployment.storage();
    const grown = Object.keys(stores).map(
      (place) => [place, Math.round((stores[place]! - (stored[place] ?? 0)) / calls)] as const,
    );
    this.#works.push({
      name,
      calls,
      seconds,
      elapsed,
      cpuSeconds: byPart((part) => after[part] - before[part]),
      bytes: Object.fromEntries(grown.filter(([, bytes]) => bytes > 0)),
    });
    return result;
  }
}

function byPart(value: (part: Part) => number): Readonly<Record<Part, number>> {
  return Object.fromEntries(PARTS.map((part) => [part, value(part)])) as Record<Part, number>;
}

async function measureAll(deployment: Deployment, count: number): ReturnType<Measurement['costs']> {
  const { service } = deployment;
  const port = Number(service.partnerUrl.port);
  const uploads = new Child<UploadClient>(new URL('../load/upload-client.js', import.meta.url));
  const requests = new Child<RequestClient>(new URL('../load/request-client.js', import.meta.url));
  const measurement = new Measurement(deployment);
  try {
    const partners: readonly Subject[] = await Promise.all(
      Array.from({ length: PARTNERS }, async () => {
        const partnerId = await service.createPartner('volume');
        return { partnerId, apiKey: await service.createKey(partnerId) };
      }),
    );
    const { proofId, deliverable } = await service.issue(
      partners[0]!.partnerId,
      'Measured',
      broadcastWaveFile(FILE_BYTES, 'Measured'),
      'embedded',
    );
    const pairAudio = broadcastWaveFile(FILE_BYTES, 'Pair');
    const pair = await service.issue(partners[0]!.partnerId, 'Pair', pairAudio, 'sidecar');

    const issue = async (calls: number, title: string): Promise<readonly string[]> => {
      const ids: string[] = [];
      let next = 0;
      await Promise.all(
        Array.from({ length: ISSUING_LANES }, async () => {
          for (let i = next++; i < calls; i = next++)
            ids[i] = (
              await service.issue(
                partners[i % PARTNERS]!.partnerId,
                `${title} ${i}`,
                broadcastWaveFile(FILE_BYTES, `${title} ${i}`),
                'embedded',
              )
            ).proofId;
        }),
      );
      return ids;
    };
    /** Gives a call of the issuing partner for each of the proofs. */
    const each = (
      ids: readonly string[],
      call: (proofId: string, i: number) => RequestInit & { path: string },
    ) =>
      eachOf(ids.keys(), ISSUING_LANES, async (i) => {
        const { path, ...init } = call(ids[i]!, i);
        const response = await fetch(new URL(path, service.partnerUrl), {
          ...init,
          headers: { ...init.headers, 'x-api-key': partners[i % PARTNERS]!.apiKey },
        });
        if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
        await response.arrayBuffer();
      });
    const review = (proofId: string, i: number) => ({
      path: '/v1/partner/reviews',
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        proofId,
        bindings: {
          creatorId: `creator-${i}`,
          accountId: 'account-1',
          submissionId: `submission-${i}`,
          trackId: `track-${i}`,
        },
      }),
    });
    const erasure = (proofId: string) => ({ path: `/v1/proofs/${proofId}`, method: 'DELETE' });
    const upload = async (
      calls: number,
      file: Uint8Array,
    ): Promise<readonly { readonly uploadId: string; readonly apiKey: string }[]> => {
      const lists = await Promise.all(
        partners.map(async ({ apiKey }) => {
          const ids = await uploads.call('storeMany', {
            port,
            apiKey,
            connections: CONNECTIONS / PARTNERS,
            count: calls / PARTNERS,
            file,
          });
          return ids.map((uploadId) => ({ uploadId, apiKey }));
        }),
      );
      return Array.from({ length: calls / PARTNERS }, (_, i) => lists.map((list) => list[i]!)).flat();
    };
    const send = async (calls: readonly PreparedCall[]): Promise<void> => {
      const { wrong } = await requests.call('send', { port, connections: CONNECTIONS, calls });
      if (wrong.length > 0) throw new Error(`${wrong.length} wrong answers, for instance ${wrong[0]}`);
    };
    const embedded = (slots: Awaited<ReturnType<typeof upload>>): readonly PreparedCall[] =>
      slots.map(({ uploadId, apiKey }) => ({
        request: jsonRequest('/v1/verify', { 'x-api-key': apiKey }, JSON.stringify({ uploadId })),
        expect: { verdict: 'valid', proofId, 'audio.sha256': sha256(deliverable) },
      }));
    const pairs = (slots: Awaited<ReturnType<typeof upload>>): readonly PreparedCall[] =>
      slots.map(({ uploadId, apiKey }) => ({
        request: jsonRequest(
          '/v1/verify',
          { 'x-api-key': apiKey },
          JSON.stringify({ uploadId, sidecar: pair.deliverable.toString('base64') }),
        ),
        expect: { verdict: 'valid', proofId: pair.proofId, 'audio.sha256': sha256(pairAudio) },
      }));
    const reads = (calls: number): readonly PreparedCall[] =>
      Array.from({ length: calls }, () => ({
        request: `GET /v1/proofs/${proofId} HTTP/1.1\r\nhost: 127.0.0.1\r\nx-api-key: ${partners[0]!.apiKey}\r\n\r\n`,
        expect: { proofId },
      }));
    const large = (files: number): Promise<unknown> =>
      uploads.call('upload', {
        port,
        apiKey: partners[0]!.apiKey,
        connections: 4,
        each: files / 4,
        bytes: LARGE_BYTES,
      });

    say('warming up');
    const issued = Math.ceil(count / 4);
    const warm = await issue(issued, 'Warm');
    await each(warm, review);
    await each(warm, erasure);
    await send(embedded(await upload(count, deliverable)));
    await send(reads(count));
    await large(4);

    const taken = await measurement.of('issue', issued, () => issue(issued, 'Take'));
    const slots = await measurement.of('upload, 24 kB', count, () => upload(count, deliverable));
    await measurement.of('verify, embedded', count, () => send(embedded(slots)));
    const pairSlots = await upload(count, pairAudio);
    await measurement.of('verify, pair', count, () => send(pairs(pairSlots)));
    await measurement.of('read a proof', count, () => send(reads(count)));
    await measurement.of('create a review', issued, () => each(taken, review));
    await measurement.of('erase', issued, () => each(taken, erasure));
    await measurement.of('upload, 32 MiB', LARGE_FILES, () => large(LARGE_FILES));
    return await measurement.costs();
  } finally {
    await Promise.all([uploads.stop(), requests.stop()]);
  }
}

function report({ costs, idle }: Awaited<ReturnType<Measurement['costs']>>): string {
  const lines = [
    `${'CPU microseconds a call'.padEnd(24)}${['calls/s', ...PARTS].map((name) => name.padStart(12)).join('')}`,
  ];
  for (const { name, calls, seconds, cpu } of costs)
    lines.push(
      `${name.padEnd(24)}${[Math.round(calls / seconds), ...PARTS.map((part) => cpu[part])].map((value) => String(value).padStart(12)).join('')}`,
    );
  lines.push(
    `${'idle, % of a core'.padEnd(36)}${PARTS.map((part) => (idle[part] * 100).toFixed(1).padStart(12)).join('')}`,
    '',
    'bytes a call on one replica',
  );
  for (const { name, bytes } of costs)
    lines.push(
      `${name.padEnd(24)}${Object.values(bytes).reduce((a, b) => a + b, 0)}: ${Object.entries(bytes)
        .sort(([, a], [, b]) => b - a)
        .map(([place, size]) => `${place} ${size}`)
        .join(', ')}`,
    );
  return lines.join('\n');
}

function contentionReport(results: readonly Contention[]): string {
  return [
    'charges of one partner',
    ...results.map(
      ({ stores, inFlight, chargesPerSecond, p50, p99 }) =>
        `${String(stores).padStart(4)} stores, ${inFlight} at once: ${chargesPerSecond}/s, p50 ${p50} ms, p99 ${p99} ms`,
    ),
  ].join('\n');
}

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

function say(line: string): void {
  process.stderr.write(`${line}\n`);
}

const { values } = parseArgs({
  options: {
    count: { type: 'string', default: '4000' },
    out: { type: 'string', default: 'bench/results' },
    profile: { type: 'boolean', default: false },
  },
});
const count = Number(values.count);
if (!Number.isInteger(count) || count < PARTNERS || count % PARTNERS !== 0) {
  say(`--count is a multiple of ${PARTNERS}\n\n${USAGE}`);
  process.exit(2);
}
const out = resolve(values.out);
await mkdir(out, { recursive: true });
const dataDir = await mkdtemp(join(out, 'data-'));
try {
  const deployment = await Deployment.start({
    dataDir,
    profileDir: values.profile ? join(out, 'profiles') : undefined,
    say,
  });
  try {
    const measured = await measureAll(deployment, count);
    say('charges of one partner');
    const onePartner = await chargeOnePartner(deployment.cassandra);
    await writeFile(
      join(out, 'capacity.json'),
      `${JSON.stringify({ measuredAt: new Date().toISOString().slice(0, 10), count, largeBytes: LARGE_BYTES, machine: describeMachine(), ...measured, onePartner }, undefined, 2)}\n`,
    );
    process.stdout.write(`${report(measured)}\n\n${contentionReport(onePartner)}\n`);
  } finally {
    await deployment.stop();
  }
} finally {
  await rm(dataDir, { recursive: true, force: true });
}
