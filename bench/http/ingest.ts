import { figure, interleave, ratio, type Measure, type Run, type Section } from '../measure.js';
import type { BusboySink } from '../load/busboy-sink.js';
import type { UploadClient } from '../load/upload-client.js';
import { Child } from '../service/child.js';
import type { SlabSink } from './slab-sink.js';

const CONNECTIONS = 4;

export const ingest: Measure = { name: 'ingest', run: measureIngest };

async function measureIngest(run: Run): Promise<Section> {
  const { rounds, uploadBytes: bytes, uploadsEach } = run.scale;
  const client = new Child<UploadClient>(new URL('../load/upload-client.js', import.meta.url));
  const busboy = new Child<BusboySink>(new URL('../load/busboy-sink.js', import.meta.url));
  const slabs = new Child<SlabSink>(new URL('./slab-sink.js', import.meta.url));
  try {
    const ports = { busboy: await busboy.call('listen'), slabs: await slabs.call('listen') };
    const speeds = await interleave(
      run,
      'ingest',
      rounds,
      (['busboy', 'slabs'] as const).map((name) => ({
        name,
        once: async () => {
          const result = await client.call('upload', { port: ports[name], connections: CONNECTIONS, each: 2 * uploadsEach[4], bytes });
          for (const wrong of result.wrong) run.wrong(`ingest: ${wrong}`);
          return result.bytes / result.seconds / 1e6;
        },
      })),
    );
    const [baseline, ours] = [speeds.get('busboy')!, speeds.get('slabs')!];
    return {
      id: 'ingest',
      title: 'Ingest',
      method: `${CONNECTIONS} concurrent uploads of ${(bytes / 2 ** 20).toFixed(0)} MiB from another process. The real partner listener, form reader, slabs and scheduler, with a worker thread that acknowledges each task and hashes nothing: what taking bytes in costs before anything is computed.`,
      figures: [figure('ingest.slabs', 'partner listener, copy into slabs', 'MB/s', 'ours', ours), figure('ingest.busboy', 'node:http and busboy that discards', 'MB/s', 'baseline', baseline)],
      comparisons: [ratio('ingest.slabs/busboy', 'ingress with copy into slabs', 'http + busboy that discards', 'MB/s', ours, baseline)],
      notes: [],
    };
  } finally {
    await Promise.all([client.stop(), busboy.stop(), slabs.stop()]);
  }
}
