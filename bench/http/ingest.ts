import type { BusboySink } from '../load/busboy-sink.js';
import type { UploadClient } from '../load/upload-client.js';
import { figure, interleave, type Measure, type Run, ratio, type Section } from '../measure.js';
import { Child } from '../service/child.js';
import { START_FLAGS } from '../service/service-process.js';
import type { SlabSink } from './slab-sink.js';

const CONNECTIONS = 4;

export const ingest: Measure = { name: 'ingest', run: measureIngest };

async function measureIngest(run: Run): Promise<Section> {
  const { rounds, uploadBytes: bytes, uploadsEach } = run.scale;
  const client = new Child<UploadClient>(new URL('../load/upload-client.js', import.meta.url));
  const busboy = new Child<BusboySink>(new URL('../load/busboy-sink.js', import.meta.url));
  const slabs = new Child<SlabSink>(new URL('./slab-sink.js', import.meta.url), { execArgv: START_FLAGS });
  try {
    const servers = [
      { name: 'busboy', port: await busboy.call('listen'), use: () => busboy.call('use') },
      { name: 'slabs', port: await slabs.call('listen'), use: () => slabs.call('use') },
    ];
    const loads = await interleave(
      run,
      'ingest',
      rounds,
      servers.map(({ name, port, use }) => ({
        name,
        once: async () => {
          const before = await use();
          const result = await client.call('upload', {
            port,
            connections: CONNECTIONS,
            each: 2 * uploadsEach[4],
            bytes,
          });
          for (const wrong of result.wrong) run.wrong(`ingest: ${wrong}`);
          const { cpuSeconds } = await use();
          return {
            speed: result.bytes / result.seconds / 1e6,
            cpu: ((cpuSeconds - before.cpuSeconds) / result.bytes) * 1e9,
          };
        },
      })),
    );
    const speeds = (name: string): readonly number[] => loads.get(name)!.map(({ speed }) => speed);
    const cpu = (name: string): readonly number[] => loads.get(name)!.map((load) => load.cpu);
    return {
      id: 'ingest',
      title: 'Ingest',
      method: `${CONNECTIONS} concurrent uploads of ${(bytes / 2 ** 20).toFixed(0)} MiB from another process. The real partner listener, form reader, slabs and scheduler, with a worker thread that acknowledges each task and hashes nothing: what taking bytes in costs before anything is computed.`,
      figures: [
        figure('ingest.slabs', 'partner listener, copy into slabs', 'MB/s', 'ours', speeds('slabs')),
        figure('ingest.busboy', 'node:http and busboy that discards', 'MB/s', 'baseline', speeds('busboy')),
        figure('ingest.slabs.cpu', 'partner listener, copy into slabs', 'CPU s/GB', 'ours', cpu('slabs')),
        figure(
          'ingest.busboy.cpu',
          'node:http and busboy that discards',
          'CPU s/GB',
          'baseline',
          cpu('busboy'),
        ),
      ],
      comparisons: [
        ratio(
          'ingest.slabs/busboy',
          'ingress with copy into slabs',
          'http + busboy that discards',
          'MB/s',
          speeds('slabs'),
          speeds('busboy'),
        ),
        ratio(
          'ingest.cpu/busboy',
          'CPU seconds a GB',
          'http + busboy that discards',
          'CPU s/GB',
          cpu('slabs'),
          cpu('busboy'),
        ),
      ],
      notes: [],
    };
  } finally {
    await Promise.all([client.stop(), busboy.stop(), slabs.stop()]);
  }
}
