/**
 * `npm run bench:capacity` measures what each call costs, on real servers that it starts. docs/operating/capacity.md has
 * the result.
 */
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { issuingForm } from '../../src/cli/issuing-form.js';
import { audioSource } from '../../src/client/source.js';
import { eachOf } from '../../src/core/async/each-of.js';
import { writeLongTrace } from '../evidence/long-trace.js';
import { broadcastWaveFile } from '../fixtures/broadcast-wave.js';
import { createPartners, embeddedCalls, type Slot, sha256 } from '../http/verify-calls.js';
import { jsonRequest } from '../load/form.js';
import type { PreparedCall, RequestClient } from '../load/request-client.js';
import type { UploadClient } from '../load/upload-client.js';
import { describeMachine } from '../machine.js';
import { Child } from '../service/child.js';
import type { ServiceProcess } from '../service/service-process.js';
import type { BucketUse } from './bucket-counter.js';
import { type CpuSeconds, Deployment, PARTS, type Part } from './deployment.js';
import { type Contention, chargeOnePartner } from './one-partner.js';

const USAGE = `npm run bench:capacity -- [options]
  --count <n>   files uploaded, calls of each kind; a quarter as many proofs are issued (4000)
  --large <n>   calls with large files and with traces, half as many with long ones (24)
  --settle <s>  seconds after which the auditor looks at what was issued, and no key is in memory (620)
  --out <dir>   where capacity.json goes (bench/results)
  --profile     CPU profiles of the service, beside it`;

const PARTNERS = 4;
/** The number of measured processes: a service and a process of consumers. */
const PROCESSES = 2;
const CONNECTIONS = 32;
const ISSUING_LANES = 8;
const FILE_BYTES = 24_000;
const LARGE_BYTES = 32 * 1024 * 1024;
const RANGE_BYTES = 64 * 1024;
/** The numbers of events in the two traces that come with an issuing. Their difference shows the cost of an event. */
const TRACES = { short: 1000, long: 100_000 };
/** The least time in seconds to measure the idle processes. It is longer if the time to settle is not over. */
const IDLE_SECONDS = 30;

interface Cost {
  readonly name: string;
  readonly calls: number;
  readonly seconds: number;
  /** The CPU microseconds per call, without those that idle processes take. */
  readonly cpu: Readonly<Record<Part, number>>;
  /** The bytes per call by table and topic, for one replica. */
  readonly bytes: Readonly<Record<string, number>>;
  /** The requests to the bucket per call, and the bytes sent with them. */
  readonly bucket: BucketUse;
}

interface Idle extends CpuSeconds {
  /** The requests to the bucket per second of one idle process. */
  readonly bucket: Readonly<Record<string, number>>;
}

interface Work extends Omit<Cost, 'cpu'> {
  /** The seconds until the last of its events was taken. */
  readonly elapsed: number;
  readonly cpuSeconds: CpuSeconds;
}

class Measurement {
  readonly #deployment: Deployment;
  readonly #works: Work[] = [];
  #stored: Readonly<Record<string, number>> | undefined;

  constructor(deployment: Deployment) {
    this.#deployment = deployment;
  }

  /** Measures the idle processes. It is called late, when the compilers of the servers have nothing left to do. */
  async idle(seconds: number): Promise<Idle> {
    say(`idle: ${Math.round(seconds)} s`);
    await this.#deployment.idle();
    const [before, asked] = [await this.#deployment.cpu(), this.#deployment.bucket];
    await sleep(seconds * 1000);
    const [after, bucket] = [await this.#deployment.cpu(), grownBy(asked, this.#deployment.bucket)];
    return {
      ...byPart((part) => (after[part] - before[part]) / seconds),
      bucket: Object.fromEntries(
        Object.entries(bucket).map(([name, { requests }]) => [
          name,
          rounded(requests / seconds / PROCESSES, 4),
        ]),
      ),
    };
  }

  costs(idle: Idle): readonly Cost[] {
    return this.#works.map(({ elapsed, cpuSeconds, ...work }) => ({
      ...work,
      cpu: byPart((part) => Math.round(((cpuSeconds[part] - idle[part] * elapsed) / work.calls) * 1e6)),
    }));
  }

  /** @param calls absent where the result is their number */
  of(name: string, calls: undefined, work: () => Promise<number>): Promise<number>;
  of<Result>(name: string, calls: number, work: () => Promise<Result>): Promise<Result>;
  async of<Result>(name: string, planned: number | undefined, work: () => Promise<Result>): Promise<Result> {
    say(`${name}${planned === undefined ? '' : `: ${planned}`}`);
    // Nothing was written since, but by what was measured.
    const stored = (this.#stored ??= await this.#deployment.storage());
    await this.#deployment.idle();
    const [before, asked] = [await this.#deployment.cpu(), this.#deployment.bucket];
    const began = performance.now();
    const result = await work();
    const calls = planned ?? Number(result);
    const seconds = (performance.now() - began) / 1000;
    // Work that a call left to do belongs to it.
    await this.#deployment.idle();
    const [after, bucket] = [await this.#deployment.cpu(), grownBy(asked, this.#deployment.bucket)];
    const elapsed = (performance.now() - began) / 1000;
    const stores = await this.#deployment.storage();
    this.#stored = stores;
    const grown = Object.keys(stores).map(
      (place) => [place, Math.round((stores[place]! - (stored[place] ?? 0)) / calls)] as const,
    );
    for (const [place, bytes] of grown)
      if (place.endsWith('.dlq') && bytes > 0) say(`${name}: dead letters in ${place}`);
    this.#works.push({
      name,
      calls,
      seconds,
      elapsed,
      cpuSeconds: byPart((part) => after[part] - before[part]),
      bytes: Object.fromEntries(grown.filter(([, bytes]) => bytes > 0)),
      bucket: Object.fromEntries(
        Object.entries(bucket)
          // Processes that do nothing look at the installation's marks, too.
          .filter(([kind]) => !kind.endsWith(' installation'))
          .map(([kind, { requests, bytes }]) => [
            kind,
            { requests: rounded(requests / calls, 2), bytes: Math.round(bytes / calls) },
          ]),
      ),
    });
    return result;
  }
}

function grownBy(before: BucketUse, after: BucketUse): BucketUse {
  return Object.fromEntries(
    Object.entries(after)
      .map(([kind, { requests, bytes }]) => {
        const had = before[kind] ?? { requests: 0, bytes: 0 };
        return [kind, { requests: requests - had.requests, bytes: bytes - had.bytes }] as const;
      })
      .filter(([, { requests }]) => requests > 0),
  );
}

function rounded(value: number, digits: number): number {
  return Number(value.toFixed(digits));
}

function byPart(value: (part: Part) => number): Readonly<Record<Part, number>> {
  return Object.fromEntries(PARTS.map((part) => [part, value(part)])) as Record<Part, number>;
}

type Traces = Readonly<Record<keyof typeof TRACES, Uint8Array>>;

interface Scale {
  readonly count: number;
  readonly largeCount: number;
  readonly settleSeconds: number;
}

interface Measured {
  readonly idle: Idle;
  readonly costs: readonly Cost[];
  readonly onePartner: readonly Contention[];
}

async function measureAll(
  deployment: Deployment,
  { count, largeCount, settleSeconds, traces }: Scale & { readonly traces: Traces },
): Promise<Measured> {
  const { service } = deployment;
  const port = Number(service.partnerUrl.port);
  const uploads = new Child<UploadClient>(new URL('../load/upload-client.js', import.meta.url));
  const requests = new Child<RequestClient>(new URL('../load/request-client.js', import.meta.url));
  const measurement = new Measurement(deployment);
  try {
    const partners = await createPartners(service, PARTNERS);
    const embedded = await service.issue(
      partners[0]!.partnerId,
      'Measured',
      broadcastWaveFile(FILE_BYTES, 'Measured'),
      'embedded',
    );
    const pairAudio = broadcastWaveFile(FILE_BYTES, 'Pair');
    const pair = await service.issue(partners[0]!.partnerId, 'Pair', pairAudio, 'sidecar');

    const issue = async (
      calls: number,
      title: string,
      issuing: ServiceProcess = service,
    ): Promise<readonly string[]> => {
      const ids: string[] = [];
      let next = 0;
      await Promise.all(
        Array.from({ length: ISSUING_LANES }, async () => {
          for (let i = next++; i < calls; i = next++)
            ids[i] = await issuing.issueAlone(
              partners[i % PARTNERS]!.partnerId,
              `${title} ${i}`,
              broadcastWaveFile(FILE_BYTES, `${title} ${i}`),
              'embedded',
            );
        }),
      );
      return ids;
    };
    const issueLarge = async (calls: number, title: string): Promise<readonly string[]> => {
      const ids: string[] = [];
      await eachOf(Array.from({ length: calls }).keys(), 2, async (i) => {
        const audio = broadcastWaveFile(LARGE_BYTES, `${title} ${i}`);
        ids[i] = await service.issueAlone(
          partners[i % PARTNERS]!.partnerId,
          `${title} ${i}`,
          audio,
          'embedded',
        );
      });
      return ids;
    };
    const issueTraced = (calls: number, title: string, trace: Uint8Array): Promise<void> =>
      eachOf(Array.from({ length: calls }).keys(), 2, async (i) => {
        const { contentType, source } = issuingForm(
          { trace: await audioSource(trace) },
          await audioSource(broadcastWaveFile(FILE_BYTES, `${title} ${i}`)),
        );
        const form = await buffer(source.open());
        await service.issueAlone(
          partners[i % PARTNERS]!.partnerId,
          `${title} ${i}`,
          form,
          'embedded',
          contentType,
        );
      });
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
    const upload = async (calls: number, file: Uint8Array): Promise<readonly Slot[]> => {
      const lists = await Promise.all(
        partners.map(async ({ apiKey }) => {
          const ids = await uploads.call('storeMany', {
            port,
            apiKey,
            connections: CONNECTIONS / PARTNERS,
            count: calls / PARTNERS,
            files: [file],
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
    const pairs = (slots: readonly Slot[]): readonly PreparedCall[] =>
      slots.map(({ uploadId, apiKey }) => ({
        request: jsonRequest(
          '/v1/verify',
          { 'x-api-key': apiKey },
          JSON.stringify({ uploadId, sidecar: pair.deliverable.toString('base64') }),
        ),
        expect: { verdict: 'valid', proofId: pair.proofId, 'audio.sha256': sha256(pairAudio) },
      }));
    const readOf = (id: string, i: number): PreparedCall => ({
      request: `GET /v1/proofs/${id} HTTP/1.1\r\nhost: 127.0.0.1\r\nx-api-key: ${partners[i % PARTNERS]!.apiKey}\r\n\r\n`,
      expect: { proofId: id },
    });
    const reads = (calls: number): readonly PreparedCall[] =>
      Array.from({ length: calls }, () => readOf(embedded.proofId, 0));
    const file = (id: string) => ({ path: `/v1/proofs/${id}/asset` });
    const range = (id: string, i: number) => ({
      ...file(id),
      headers: { range: `bytes=${i * RANGE_BYTES}-${(i + 1) * RANGE_BYTES - 1}` },
    });
    const audit = async (part: 'proofs' | 'objects'): Promise<number> => {
      let looks = 0;
      for (let from: string | undefined = part; from?.split(':')[0] === part; ) {
        const { looked, next } = await service.auditStep(from);
        looks += looked;
        from = next;
      }
      return looks;
    };
    const large = (files: number): Promise<unknown> =>
      uploads.call('upload', {
        port,
        callers: [partners[0]!],
        connections: 4,
        each: files / 4,
        bytes: LARGE_BYTES,
      });

    say('warming up');
    const issued = Math.ceil(count / 4);
    const warm = await issue(issued, 'Warm');
    await each(warm, review);
    await each(warm, erasure);
    await send(embeddedCalls(embedded, await upload(count, embedded.deliverable)));
    await send(reads(count));
    await large(4);
    await issueLarge(4, 'Warm large');
    await issueTraced(4, 'Warm traced', traces.long);
    const pairSlots = await upload(count, pairAudio);
    const unknown = await deployment.elsewhere((other) => issue(count, 'Elsewhere', other));

    const taken = await measurement.of('issue', issued, () => issue(issued, 'Take'));
    const largeIds = await measurement.of('issue, 32 MiB', largeCount, () => issueLarge(largeCount, 'Large'));
    await measurement.of(`issue, trace of ${TRACES.short} events`, largeCount, () =>
      issueTraced(largeCount, 'Short', traces.short),
    );
    await measurement.of(`issue, trace of ${TRACES.long} events`, largeCount / 2, () =>
      issueTraced(largeCount / 2, 'Long', traces.long),
    );
    await measurement.of('read a proof, key in the bucket', count, () => send(unknown.map(readOf)));
    const settledAt = performance.now() + settleSeconds * 1000;
    await measurement.of('read a proof', count, () => send(reads(count)));
    await measurement.of('read a file, 32 MiB', largeCount, () => each(largeIds, file));
    await measurement.of('read 64 KiB of a file', largeCount * 8, () =>
      each(
        Array.from({ length: largeCount * 8 }, (_, i) => largeIds[i % largeCount]!),
        range,
      ),
    );
    const slots = await measurement.of('upload, 24 kB', count, () => upload(count, embedded.deliverable));
    await measurement.of('verify, embedded', count, () => send(embeddedCalls(embedded, slots)));
    await measurement.of('verify, pair', count, () => send(pairs(pairSlots)));
    await measurement.of('upload, 32 MiB', largeCount, () => large(largeCount));
    await measurement.of('create a review', issued, () => each(taken, review));
    const idle = await measurement.idle(Math.max(IDLE_SECONDS, (settledAt - performance.now()) / 1000));
    // The auditor leaves alone all that is younger than ten minutes; keys leave the memory by then, too.
    await measurement.of('audit: a proof', undefined, () => audit('proofs'));
    await measurement.of('audit: a file', undefined, () => audit('objects'));
    await measurement.of('erase', issued, () => each(taken, erasure));
    // Last: the sweep publishes what its stores leave, and the consumers know none of their codes.
    say('charges of one partner');
    const onePartner = await chargeOnePartner(deployment.cassandra);
    return { idle, costs: measurement.costs(idle), onePartner };
  } finally {
    await Promise.all([uploads.stop(), requests.stop()]);
  }
}

function report({ costs, idle }: Pick<Measured, 'costs' | 'idle'>): string {
  const lines = [
    `${'CPU microseconds a call'.padEnd(32)}${['calls/s', ...PARTS].map((name) => name.padStart(12)).join('')}`,
  ];
  for (const { name, calls, seconds, cpu } of costs)
    lines.push(
      `${name.padEnd(32)}${[Math.round(calls / seconds), ...PARTS.map((part) => cpu[part])].map((value) => String(value).padStart(12)).join('')}`,
    );
  lines.push(
    `${'idle, % of a core'.padEnd(44)}${PARTS.map((part) => (idle[part] * 100).toFixed(1).padStart(12)).join('')}`,
    '',
    'bytes a call on one replica',
  );
  for (const { name, bytes } of costs)
    lines.push(
      `${name.padEnd(32)}${Object.values(bytes).reduce((a, b) => a + b, 0)}: ${Object.entries(bytes)
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

function say(line: string): void {
  process.stderr.write(`${line}\n`);
}

const { values } = parseArgs({
  options: {
    count: { type: 'string', default: '4000' },
    large: { type: 'string', default: '24' },
    settle: { type: 'string', default: '620' },
    out: { type: 'string', default: 'bench/results' },
    profile: { type: 'boolean', default: false },
  },
});
const count = Number(values.count);
if (!Number.isInteger(count) || count < PARTNERS || count % PARTNERS !== 0) {
  say(`--count is a multiple of ${PARTNERS}\n\n${USAGE}`);
  process.exit(2);
}
const largeCount = Number(values.large);
if (!Number.isInteger(largeCount) || largeCount < PARTNERS || largeCount % PARTNERS !== 0) {
  say(`--large is a multiple of ${PARTNERS}\n\n${USAGE}`);
  process.exit(2);
}
const settleSeconds = Number(values.settle);
if (!Number.isInteger(settleSeconds) || settleSeconds < 0) {
  say(`--settle is a number of seconds\n\n${USAGE}`);
  process.exit(2);
}
const out = resolve(values.out);
await mkdir(out, { recursive: true });
const dataDir = await mkdtemp(join(out, 'data-'));
try {
  const traces = { short: await traceOf(TRACES.short), long: await traceOf(TRACES.long) };
  const deployment = await Deployment.start({
    dataDir,
    profileDir: values.profile ? join(out, 'profiles') : undefined,
    say,
  });
  try {
    const measured = await measureAll(deployment, { count, largeCount, settleSeconds, traces });
    await writeFile(
      join(out, 'capacity.json'),
      `${JSON.stringify(
        {
          measuredAt: new Date().toISOString().slice(0, 10),
          count,
          largeCount,
          settleSeconds,
          fileBytes: FILE_BYTES,
          largeBytes: LARGE_BYTES,
          rangeBytes: RANGE_BYTES,
          traces: TRACES,
          machine: describeMachine(),
          ...measured,
        },
        undefined,
        2,
      )}\n`,
    );
    process.stdout.write(`${report(measured)}\n\n${contentionReport(measured.onePartner)}\n`);
  } finally {
    await deployment.stop();
  }
} finally {
  await rm(dataDir, { recursive: true, force: true });
}

async function traceOf(events: number): Promise<Buffer> {
  const file = join(dataDir, `${events}.trace`);
  await writeLongTrace(file, events, false);
  return readFile(file);
}
