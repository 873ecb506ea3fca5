import { execFile } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { broadcastWaveFile } from '../fixtures/broadcast-wave.js';
import type { PatientClient, PatientResult } from '../load/patient-client.js';
import type { UploadClient } from '../load/upload-client.js';
import { type CurveLine, curveLine, type Measure, proportion, type Run, type Section } from '../measure.js';
import { Child } from '../service/child.js';
import { ServiceProcess } from '../service/service-process.js';
import { percentile } from '../statistics.js';
import { createPartners, embeddedCalls, uploadCopies } from './verify-calls.js';

/** The number of partners. Their plans allow more calls a second than one core can serve. */
const PARTNERS = 4;
const FILE_BYTES = 24_000;
const UPLOADS = 80;
const WARM_MS = 3000;
const SERVICE_CORE = 0;
const CLIENT_CORE = 1;

interface Measured extends PatientResult {
  /** The CPU seconds of the service in the measured time. */
  readonly cpuSeconds: number;
}

export const scaleOverload: Measure = { name: 'scale-overload', run: measureOverload };

async function measureOverload(run: Run): Promise<Section> {
  if (availableParallelism() < 2) throw new Error('scale-overload needs two cores');
  const { curveRounds: rounds, overloadConnections: counts, overloadMs: measuredMs } = run.scale;
  const client = new Child<PatientClient>(new URL('../load/patient-client.js', import.meta.url));
  const uploads = new Child<UploadClient>(new URL('../load/upload-client.js', import.meta.url));
  const service = await ServiceProcess.start({
    dataDir: join(run.dataDir, 'overload'),
    profileDir: run.profileDir,
  });
  const results = new Map<number, Measured[]>(counts.map((count) => [count, []]));
  try {
    const partners = await createPartners(service, PARTNERS);
    const issued = await service.issue(
      partners[0]!.partnerId,
      'Overload',
      broadcastWaveFile(FILE_BYTES, 'Overload'),
      'embedded',
    );
    const slots = await uploadCopies(service, uploads, partners, UPLOADS, issued.deliverable);
    const requests = embeddedCalls(issued, slots).map(({ request }) => request);
    await pin(service.probe.process.pid!, SERVICE_CORE);
    await pin(client.process.pid!, CLIENT_CORE);
    const port = Number(service.partnerUrl.port);
    for (let round = 1; round <= rounds; round += 1) {
      // The order turns, so that a change of the machine's load does not favour a number of connections.
      for (let i = 0; i < counts.length; i += 1) {
        const connections = counts[(i + round) % counts.length]!;
        run.progress(`scale-overload: round ${round}, ${connections} connections`);
        await client.call('open', { port, count: connections });
        const repeating = client.call('repeat', { requests, warmMs: WARM_MS, measuredMs });
        await delay(WARM_MS);
        const before = await service.probe.call('use');
        await delay(measuredMs);
        const after = await service.probe.call('use');
        const result = await repeating;
        for (const what of result.wrong.slice(0, 3)) run.wrong(`scale-overload: ${what}`);
        results.get(connections)!.push({ ...result, cpuSeconds: after.cpuSeconds - before.cpuSeconds });
      }
    }
  } finally {
    await Promise.all([client.stop(), uploads.stop(), service.stop()]);
  }
  return report(results, measuredMs);
}

/** Runs all threads of a process on one core, so that the load takes nothing from the service. */
async function pin(pid: number, core: number): Promise<void> {
  await promisify(execFile)('taskset', ['-acp', String(core), String(pid)]);
}

function report(results: ReadonlyMap<number, readonly Measured[]>, measuredMs: number): Section {
  const of = (value: (result: Measured) => number) =>
    [...results].map(([x, rounds]) => ({ x, rounds: rounds.map(value) }));
  const ofPeak = (id: string, what: string, unit: string, value: (result: Measured) => number) => {
    const points = of(value);
    const most = points.at(-1)!;
    const peaks = most.rounds.map((_, round) => Math.max(...points.map(({ rounds }) => rounds[round]!)));
    return proportion(
      id,
      `${what} at ${most.x} connections`,
      'the highest of its round',
      unit,
      most.rounds,
      peaks,
    );
  };
  // Where no call was answered in the measured time, calls took longer than that time.
  const timeOf = (times: readonly number[], percent: number): number =>
    times.length === 0 ? measuredMs : percentile(times, percent);
  const line = (label: string, value: (result: Measured) => number): CurveLine =>
    curveLine(label, 'ours', of(value));
  return {
    id: 'scale-overload',
    title: 'Verify beyond what a core can serve',
    method: `POST /v1/verify of the real service on the embedded store, by ${PARTNERS} partners of the plan volume, ${measuredMs / 1000} seconds for each number of kept-alive connections. Service and client have a core each. Each connection sends its next call as soon as it has an answer. After a 503 the connection waits for Retry-After and up to as long again, as the client of this product does. Goodput is the number of verdicts a second.`,
    figures: [],
    comparisons: [
      ofPeak('overload.goodput', 'goodput', 'verdicts/s', ({ times, seconds }) => times.length / seconds),
      // This ratio holds even if other work takes a part of the core.
      ofPeak(
        'overload.goodput.cpu',
        'goodput of a CPU second',
        'verdicts/CPU s',
        ({ times, cpuSeconds }) => times.length / cpuSeconds,
      ),
    ],
    curves: [
      {
        id: 'overload.verdicts',
        title: 'Verdicts and refusals',
        x: { label: 'connections', unit: '' },
        y: { label: 'a second', unit: 'calls/s' },
        lines: [
          line('verdicts', ({ times, seconds }) => times.length / seconds),
          line('503 with Retry-After', ({ refused, seconds }) => refused / seconds),
          line('verdicts of a CPU second', ({ times, cpuSeconds }) => times.length / cpuSeconds),
        ],
      },
      {
        id: 'overload.times',
        title: 'Time of a call with a verdict',
        x: { label: 'connections', unit: '' },
        y: { label: 'time', unit: 'ms' },
        lines: [line('p50', ({ times }) => timeOf(times, 50)), line('p99', ({ times }) => timeOf(times, 99))],
      },
    ],
    notes: [],
  };
}
