import { join } from 'node:path';
import { SLAB_BYTES } from '../../src/engine/ingest.js';
import { type HashRun, Kernel } from '../engine/kernel.js';
import type { BusboySink } from '../load/busboy-sink.js';
import type { UploadClient } from '../load/upload-client.js';
import { describeMachine } from '../machine.js';
import {
  type Comparison,
  type Figure,
  figure,
  held,
  interleave,
  type Measure,
  type Run,
  ratio,
  type Section,
} from '../measure.js';
import { Child } from '../service/child.js';
import type { Probe } from '../service/process-use.js';
import { ServiceProcess } from '../service/service-process.js';
import { percentile } from '../statistics.js';

const CONCURRENCIES = [4, 16] as const;
const KERNEL_SLABS = 96;

/** A run of one server at one concurrency, or of a kernel. */
interface Load {
  readonly megabytesPerSecond: number;
  readonly cpuSecondsPerGigabyte: number;
  readonly times: readonly number[];
  readonly lanesPerTask: number;
}

interface Server {
  readonly name: string;
  readonly port: number;
  readonly apiKey?: string;
  readonly probe: Child<Probe>;
  /** Process with the WASM engine. */
  readonly service?: ServiceProcess;
}

export const upload: Measure = { name: 'upload', run: measureUpload };

async function measureUpload(run: Run): Promise<Section> {
  const kernel = await Kernel.load();
  const client = new Child<UploadClient>(new URL('../load/upload-client.js', import.meta.url));
  const sink = new Child<BusboySink>(new URL('../load/busboy-sink.js', import.meta.url));
  const services: ServiceProcess[] = [];
  try {
    const busboy: Server = {
      name: 'busboy',
      port: await sink.call('listen'),
      probe: sink as unknown as Child<Probe>,
    };
    const wasm = await startServer(run, 'wasm', services);
    const native = await startServer(run, 'native', services);
    const load = (server: Server, connections: 1 | 4 | 16) => ({
      name: `${server.name} ${connections}`,
      once: () => loadOnce(run, client, server, connections),
    });
    const results = await interleave(run, 'upload', run.scale.rounds, [
      ...CONCURRENCIES.flatMap((connections) => [
        load(busboy, connections),
        load(wasm, connections),
        load(native, connections),
      ]),
      load(wasm, 1),
      load(native, 1),
      { name: 'one stream', once: async () => inMemory(() => kernel.single(KERNEL_SLABS)) },
      { name: 'four lanes', once: async () => inMemory(() => kernel.lanes(KERNEL_SLABS)) },
    ]);
    return report(run, results);
  } finally {
    await Promise.all([client.stop(), sink.stop(), ...services.map((service) => service.stop())]);
  }
}

async function startServer(run: Run, engine: 'wasm' | 'native', services: ServiceProcess[]): Promise<Server> {
  const service = await ServiceProcess.start({
    dataDir: join(run.dataDir, `upload-${engine}`),
    engine,
    profileDir: run.profileDir,
  });
  services.push(service);
  const apiKey = await service.createKey(await service.createPartner('volume'));
  return {
    name: engine,
    port: Number(service.partnerUrl.port),
    apiKey,
    probe: service.probe,
    ...(engine === 'wasm' ? { service } : {}),
  };
}

async function loadOnce(
  run: Run,
  client: Child<UploadClient>,
  server: Server,
  connections: 1 | 4 | 16,
): Promise<Load> {
  const { uploadBytes: bytes, uploadsEach } = run.scale;
  const before = { use: await server.probe.call('use'), engine: await server.service?.engineCounts() };
  const result = await client.call('upload', {
    port: server.port,
    apiKey: server.apiKey,
    connections,
    each: uploadsEach[connections],
    bytes,
  });
  const after = { use: await server.probe.call('use'), engine: await server.service?.engineCounts() };
  for (const wrong of result.wrong) run.wrong(`upload: ${server.name}: ${wrong}`);
  return {
    megabytesPerSecond: result.bytes / result.seconds / 1e6,
    cpuSecondsPerGigabyte: ((after.use.cpuSeconds - before.use.cpuSeconds) / result.bytes) * 1e9,
    times: result.times,
    lanesPerTask:
      before.engine === undefined || after.engine === undefined
        ? 0
        : (after.engine.lanes - before.engine.lanes) / (after.engine.tasks - before.engine.tasks),
  };
}

function inMemory(run: () => HashRun): Load {
  const before = process.cpuUsage();
  const { megabytesPerSecond } = run();
  const { user, system } = process.cpuUsage(before);
  return {
    megabytesPerSecond,
    cpuSecondsPerGigabyte: ((user + system) / 1e6 / (KERNEL_SLABS * SLAB_BYTES)) * 1e9,
    times: [],
    lanesPerTask: 0,
  };
}

const LABELS: Readonly<Record<string, string>> = {
  wasm: 'service',
  native: 'native engine',
  busboy: 'http + busboy',
};

function report(run: Run, results: ReadonlyMap<string, readonly Load[]>): Section {
  const of = (name: string): readonly Load[] => results.get(name)!;
  const speed = (name: string): readonly number[] => of(name).map((load) => load.megabytesPerSecond);
  const cpu = (name: string): readonly number[] => of(name).map((load) => load.cpuSecondsPerGigabyte);
  const times = (name: string): readonly number[] =>
    of(name).flatMap((load) => load.times.map((seconds) => seconds * 1000));
  const figures: Figure[] = [];
  const comparisons: Comparison[] = [];
  for (const connections of CONCURRENCIES) {
    for (const server of ['wasm', 'native', 'busboy']) {
      const name = `${server} ${connections}`;
      const role = server === 'busboy' ? 'baseline' : 'ours';
      figures.push(
        figure(
          `upload.${server}.${connections}`,
          `${LABELS[server]}, ${connections} at once`,
          'MB/s',
          role,
          speed(name),
        ),
      );
      figures.push(
        figure(
          `upload.${server}.${connections}.cpu`,
          `${LABELS[server]}, ${connections} at once`,
          'CPU s/GB',
          role,
          cpu(name),
        ),
      );
      if (server === 'busboy') continue;
      for (const percent of [50, 99])
        figures.push(
          figure(
            `upload.${server}.${connections}.p${percent}`,
            `${LABELS[server]}, ${connections} at once, p${percent}`,
            'ms',
            'ours',
            of(name).map((load) => percentile(load.times, percent) * 1000),
          ),
        );
    }
    comparisons.push(
      ratio(
        `upload.${connections}/busboy`,
        `service, ${connections} uploads at once`,
        'http + busboy that discards',
        'MB/s',
        speed(`wasm ${connections}`),
        speed(`busboy ${connections}`),
      ),
    );
    comparisons.push(
      ratio(
        `upload.${connections}.cpu`,
        `CPU seconds a GB, ${connections} at once`,
        'busboy + one pass of four lanes',
        'CPU s/GB',
        cpu(`wasm ${connections}`),
        sums(cpu(`busboy ${connections}`), cpu('four lanes')),
      ),
    );
    comparisons.push(
      held(
        `upload.${connections}.lanes`,
        `lanes a task, ${connections} at once`,
        'count of the engine',
        'lanes',
        of(`wasm ${connections}`).map((load) => load.lanesPerTask),
      ),
    );
    comparisons.push(
      ratio(
        `upload.${connections}.tail`,
        `p99 of an upload's time, ${connections} at once`,
        'its own p50',
        'ms',
        [percentile(times(`wasm ${connections}`), 99)],
        [percentile(times(`wasm ${connections}`), 50)],
      ),
    );
    comparisons.push(
      ratio(
        `upload.${connections}/native`,
        `service, ${connections} at once`,
        'the same on the native engine',
        'MB/s',
        speed(`wasm ${connections}`),
        speed(`native ${connections}`),
      ),
    );
    comparisons.push(
      ratio(
        `upload.${connections}.cpu/native`,
        `CPU seconds a GB, ${connections} at once`,
        'the same on the native engine',
        'CPU s/GB',
        cpu(`wasm ${connections}`),
        cpu(`native ${connections}`),
      ),
    );
    comparisons.push(
      ratio(
        `upload.native.${connections}.tail`,
        `p99 of an upload's time, ${connections} at once, native engine`,
        'its own p50',
        'ms',
        [percentile(times(`native ${connections}`), 99)],
        [percentile(times(`native ${connections}`), 50)],
      ),
    );
  }
  figures.push(figure('upload.wasm.1', 'service, one upload alone', 'MB/s', 'ours', speed('wasm 1')));
  figures.push(
    figure('upload.native.1', 'service, native engine, one upload alone', 'MB/s', 'ours', speed('native 1')),
  );
  figures.push(
    figure('upload.kernel.single', 'one stream of the core, in memory', 'MB/s', 'other', speed('one stream')),
  );
  figures.push(
    figure('upload.kernel.lanes', 'four lanes of the core, in memory', 'MB/s', 'other', speed('four lanes')),
  );
  comparisons.push(
    ratio(
      'upload.1/kernel',
      'one upload alone',
      'one stream of the core, in memory',
      'MB/s',
      speed('wasm 1'),
      speed('one stream'),
    ),
  );
  return {
    id: 'upload',
    title: 'Upload, end to end',
    method: `Uploads of ${(run.scale.uploadBytes / 2 ** 20).toFixed(0)} MiB broadcast WAVE through the partner listener of the real service: slot, signed fields, parse, digests, facts on disk. The client is another process on the same machine; every upload has different bytes and its digest is checked. The baseline takes the same posts and throws the bytes away. CPU is that of the whole server process, its workers included.`,
    figures,
    comparisons,
    notes: [
      describeMachine().shaInstructions === false
        ? 'Without SHA instructions, as on this processor, the lanes win over node:crypto in speed. With them the native engine needs 1.7 to 2 times less CPU a gigabyte than the lanes, on the thread that also serves the sockets.'
        : 'With SHA instructions node:crypto needs less CPU a gigabyte than the lanes, on the thread that also serves the sockets; without them the lanes win. Both are shown side by side.',
    ],
  };
}

function sums(a: readonly number[], b: readonly number[]): readonly number[] {
  return a.map((value, round) => value + b[round]!);
}
