/** `npm run bench:capacity`: what deploy/capacity.md is made of, measured on real servers that this command starts. */
import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { broadcastWaveFile } from '../fixtures/broadcast-wave.js';
import { jsonRequest } from '../load/form.js';
import type { PreparedCall, RequestClient } from '../load/request-client.js';
import type { UploadClient } from '../load/upload-client.js';
import { describeMachine } from '../machine.js';
import { Child } from '../service/child.js';
import { Deployment, PARTS, type Part } from './deployment.js';

const USAGE = `npm run bench:capacity -- [options]
  --count <n>   proofs issued, files uploaded, calls of each kind (2000)
  --out <dir>   where capacity.json goes (bench/results)`;

const PARTNERS = 4;
const CONNECTIONS = 32;
const ISSUING_LANES = 8;
const FILE_BYTES = 24_000;
const LARGE_BYTES = 32 * 1024 * 1024;
const LARGE_FILES = 24;
const IDLE_SECONDS = 15;
const WARM_UP_SHARE = 0.25;

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

class Measurement {
  readonly costs: Cost[] = [];
  readonly #deployment: Deployment;
  #idle: Readonly<Record<Part, number>> = { service: 0, consumers: 0, cassandra: 0, kafka: 0 };

  constructor(deployment: Deployment) {
    this.#deployment = deployment;
  }

  /** CPU seconds a second of processes that nobody calls. */
  get idle(): Readonly<Record<Part, number>> {
    return this.#idle;
  }

  async measureIdle(): Promise<void> {
    await this.#deployment.idle();
    const before = await this.#deployment.cpu();
    await sleep(IDLE_SECONDS * 1_000);
    const after = await this.#deployment.cpu();
    this.#idle = byPart((part) => (after[part] - before[part]) / IDLE_SECONDS);
  }

  /** @param per that the bytes and the CPU are divided by: calls, or what they carry */
  async of<Result>(name: string, calls: number, work: () => Promise<Result>): Promise<Result> {
    say(`${name}: ${calls}`);
    const stored = await this.#deployment.storage();
    await this.#deployment.idle();
    const before = await this.#deployment.cpu();
    const began = performance.now();
    const result = await work();
    const seconds = (performance.now() - began) / 1_000;
    // What a call left to do belongs to it.
    await this.#deployment.idle();
    const after = await this.#deployment.cpu();
    const elapsed = (performance.now() - began) / 1_000;
    const stores = await this.#deployment.storage();
    const grown = Object.keys(stores).map((place) => [place, Math.round((stores[place]! - (stored[place] ?? 0)) / calls)] as const);
    this.costs.push({
      name,
      calls,
      seconds,
      cpu: byPart((part) => Math.round(((after[part] - before[part] - this.#idle[part] * elapsed) / calls) * 1e6)),
      bytes: Object.fromEntries(grown.filter(([, bytes]) => bytes > 0)),
    });
    return result;
  }
}

function byPart(value: (part: Part) => number): Readonly<Record<Part, number>> {
  return Object.fromEntries(PARTS.map((part) => [part, value(part)])) as Record<Part, number>;
}

async function measureAll(deployment: Deployment, count: number): Promise<Measurement> {
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
    const { proofId, deliverable } = await service.issue(partners[0]!.partnerId, 'Measured', broadcastWaveFile(FILE_BYTES, 'Measured'), 'embedded');
    const pairAudio = broadcastWaveFile(FILE_BYTES, 'Pair');
    const pair = await service.issue(partners[0]!.partnerId, 'Pair', pairAudio, 'sidecar');

    const issue = async (calls: number, title: string): Promise<void> => {
      let next = 0;
      await Promise.all(
        Array.from({ length: ISSUING_LANES }, async () => {
          for (let i = next++; i < calls; i = next++) await service.issue(partners[i % PARTNERS]!.partnerId, `${title} ${i}`, broadcastWaveFile(FILE_BYTES, `${title} ${i}`), 'embedded');
        }),
      );
    };
    const upload = async (calls: number, file: Uint8Array): Promise<readonly { readonly uploadId: string; readonly apiKey: string }[]> => {
      const lists = await Promise.all(
        partners.map(async ({ apiKey }) => {
          const ids = await uploads.call('storeMany', { port, apiKey, connections: CONNECTIONS / PARTNERS, count: calls / PARTNERS, file });
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
      slots.map(({ uploadId, apiKey }) => ({ request: jsonRequest('/v1/verify', { 'x-api-key': apiKey }, JSON.stringify({ uploadId })), expect: { verdict: 'valid', proofId, 'audio.sha256': sha256(deliverable) } }));
    const pairs = (slots: Awaited<ReturnType<typeof upload>>): readonly PreparedCall[] =>
      slots.map(({ uploadId, apiKey }) => ({
        request: jsonRequest('/v1/verify', { 'x-api-key': apiKey }, JSON.stringify({ uploadId, sidecar: pair.deliverable.toString('base64') })),
        expect: { verdict: 'valid', proofId: pair.proofId, 'audio.sha256': sha256(pairAudio) },
      }));
    const reads = (calls: number): readonly PreparedCall[] =>
      Array.from({ length: calls }, () => ({ request: `GET /v1/proofs/${proofId} HTTP/1.1\r\nhost: 127.0.0.1\r\nx-api-key: ${partners[0]!.apiKey}\r\n\r\n`, expect: { proofId } }));
    const large = (files: number): Promise<unknown> => uploads.call('upload', { port, apiKey: partners[0]!.apiKey, connections: 4, each: files / 4, bytes: LARGE_BYTES });

    say('warming up');
    const few = Math.ceil((count * WARM_UP_SHARE) / PARTNERS) * PARTNERS;
    await issue(few, 'Warm');
    await send(embedded(await upload(few, deliverable)));
    await send(pairs(await upload(few, pairAudio)));
    await send(reads(few));
    await large(4);
    await measurement.measureIdle();

    await measurement.of('issue, 24 kB', count, () => issue(count, 'Take'));
    const slots = await measurement.of('upload, 24 kB', count, () => upload(count, deliverable));
    await measurement.of('verify, embedded', count, () => send(embedded(slots)));
    const pairSlots = await upload(count, pairAudio);
    await measurement.of('verify, pair', count, () => send(pairs(pairSlots)));
    await measurement.of('read a proof', count, () => send(reads(count)));
    await measurement.of('upload, 32 MiB', LARGE_FILES, () => large(LARGE_FILES));
    return measurement;
  } finally {
    await Promise.all([uploads.stop(), requests.stop()]);
  }
}

function report({ costs, idle }: Measurement): string {
  const lines = [`${'CPU microseconds a call'.padEnd(24)}${['calls/s', ...PARTS].map((name) => name.padStart(12)).join('')}`];
  for (const { name, calls, seconds, cpu } of costs) lines.push(`${name.padEnd(24)}${[Math.round(calls / seconds), ...PARTS.map((part) => cpu[part])].map((value) => String(value).padStart(12)).join('')}`);
  lines.push(`${'idle, % of a core'.padEnd(36)}${PARTS.map((part) => (idle[part] * 100).toFixed(1).padStart(12)).join('')}`, '', 'bytes a call on one replica');
  for (const { name, bytes } of costs) lines.push(`${name.padEnd(24)}${Object.values(bytes).reduce((a, b) => a + b, 0)}: ${Object.entries(bytes).sort(([, a], [, b]) => b - a).map(([place, size]) => `${place} ${size}`).join(', ')}`);
  return lines.join('\n');
}

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

function say(line: string): void {
  process.stderr.write(`${line}\n`);
}

const { values } = parseArgs({ options: { count: { type: 'string', default: '2000' }, out: { type: 'string', default: 'bench/results' } } });
const count = Number(values.count);
if (!Number.isInteger(count) || count < PARTNERS || count % PARTNERS !== 0) {
  say(`--count is a multiple of ${PARTNERS}\n\n${USAGE}`);
  process.exit(2);
}
const out = resolve(values.out);
await mkdir(out, { recursive: true });
const dataDir = await mkdtemp(join(out, 'data-'));
try {
  const deployment = await Deployment.start({ dataDir, say });
  try {
    const measurement = await measureAll(deployment, count);
    await writeFile(join(out, 'capacity.json'), `${JSON.stringify({ machine: describeMachine(), idle: measurement.idle, costs: measurement.costs }, undefined, 2)}\n`);
    process.stdout.write(`${report(measurement)}\n`);
  } finally {
    await deployment.stop();
  }
} finally {
  await rm(dataDir, { recursive: true, force: true });
}
