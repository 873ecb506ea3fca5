import { SLAB_BYTES } from '../../src/core/engine/ingest.js';
import { type HashRun, Kernel } from '../engine/kernel.js';
import { describeMachine } from '../machine.js';
import {
  type Comparison,
  type Figure,
  figure,
  held,
  interleave,
  type Measure,
  proportion,
  type Run,
  ratio,
  type Section,
} from '../measure.js';
import { percentile } from '../statistics.js';
import { UPLOAD_SERVERS, type UploadServer, UploadServers, type Uploads } from './upload-servers.js';

const CONCURRENCIES = [4, 16] as const;
const KERNEL_SLABS = 192;

export const upload: Measure = { name: 'upload', run: measureUpload };

async function measureUpload(run: Run): Promise<Section> {
  const { uploadBytes: bytes, uploadsEach } = run.scale;
  const kernel = await Kernel.load();
  const servers = await UploadServers.start(run, 'upload', Math.max(...CONCURRENCIES));
  try {
    const load = (server: UploadServer, connections: 1 | 4 | 16) => ({
      name: `${server} ${connections}`,
      once: () => servers.load(server, { connections, each: uploadsEach[connections], bytes }),
    });
    const results = await interleave(run, 'upload', run.scale.rounds, [
      ...CONCURRENCIES.flatMap((connections) => [
        load('busboy', connections),
        load('wasm', connections),
        load('native', connections),
      ]),
      load('wasm', 1),
      load('native', 1),
      { name: 'one stream', once: async () => inMemory(() => kernel.single(KERNEL_SLABS)) },
      { name: 'four lanes', once: async () => inMemory(() => kernel.lanes(KERNEL_SLABS)) },
    ]);
    return report(run, results, await servers.kernelLanes());
  } finally {
    await servers.stop();
  }
}

function inMemory(run: () => HashRun): Uploads {
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

function report(run: Run, results: ReadonlyMap<string, readonly Uploads[]>, kernelLanes: number): Section {
  const of = (name: string): readonly Uploads[] => results.get(name)!;
  const speed = (name: string): readonly number[] => of(name).map((load) => load.megabytesPerSecond);
  const cpu = (name: string): readonly number[] => of(name).map((load) => load.cpuSecondsPerGigabyte);
  const times = (name: string): readonly number[] =>
    of(name).flatMap((load) => load.times.map((seconds) => seconds * 1000));
  const figures: Figure[] = [];
  const comparisons: Comparison[] = [];
  for (const connections of CONCURRENCIES) {
    for (const server of ['wasm', 'native', 'busboy'] as const) {
      const name = `${server} ${connections}`;
      const role = server === 'busboy' ? 'baseline' : 'ours';
      figures.push(
        figure(
          `upload.${server}.${connections}`,
          `${UPLOAD_SERVERS[server]}, ${connections} at once`,
          'MB/s',
          role,
          speed(name),
        ),
      );
      figures.push(
        figure(
          `upload.${server}.${connections}.cpu`,
          `${UPLOAD_SERVERS[server]}, ${connections} at once`,
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
            `${UPLOAD_SERVERS[server]}, ${connections} at once, p${percent}`,
            'ms',
            'ours',
            of(name).map((load) => percentile(load.times, percent) * 1000),
          ),
        );
    }
    for (const [server, id] of [
      ['wasm', `upload.${connections}`],
      ['native', `upload.native.${connections}`],
    ] as const)
      comparisons.push(
        ratio(
          `${id}/busboy`,
          `${UPLOAD_SERVERS[server]}, ${connections} uploads at once`,
          'http + busboy that discards',
          'MB/s',
          speed(`${server} ${connections}`),
          speed(`busboy ${connections}`),
        ),
      );
    comparisons.push(
      proportion(
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
      proportion(
        `upload.${connections}.tail`,
        `p99 of an upload's time, ${connections} at once`,
        'its own p50',
        'ms',
        [percentile(times(`wasm ${connections}`), 99)],
        [percentile(times(`wasm ${connections}`), 50)],
      ),
    );
    comparisons.push(
      proportion(
        `upload.${connections}/native`,
        `service, ${connections} at once`,
        'the same on the native engine',
        'MB/s',
        speed(`wasm ${connections}`),
        speed(`native ${connections}`),
      ),
    );
    comparisons.push(
      proportion(
        `upload.${connections}.cpu/native`,
        `CPU seconds a GB, ${connections} at once`,
        'the same on the native engine',
        'CPU s/GB',
        cpu(`wasm ${connections}`),
        cpu(`native ${connections}`),
      ),
    );
    comparisons.push(
      proportion(
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
    proportion(
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
      `The WASM engine hashed up to ${kernelLanes} uploads side by side. TAKEMARK_EIGHT_LANES in the environment of the bench is the setting of its services.`,
      describeMachine().shaInstructions === false
        ? 'Without SHA instructions, as on this processor, the lanes win over node:crypto in speed. With them the native engine needs 1.7 to 2 times less CPU a gigabyte than the lanes.'
        : 'With SHA instructions node:crypto needs less CPU a gigabyte than the lanes; without them the lanes win. Both are shown side by side.',
    ],
  };
}

function sums(a: readonly number[], b: readonly number[]): readonly number[] {
  return a.map((value, round) => value + b[round]!);
}
