import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { UploadClient } from '../load/upload-client.js';
import { figure, held, type Measure, proportion, type Run, type Section } from '../measure.js';
import { Child } from '../service/child.js';
import { ServiceProcess } from '../service/service-process.js';

const CONNECTIONS = 16;
const SETTLE_MS = 500;
const WARM_UP_BYTES = 1024 * 1024;

export const memory: Measure = { name: 'memory', run: measureMemory };

async function measureMemory(run: Run): Promise<Section> {
  const { memoryBytes, memoryRounds } = run.scale;
  const client = new Child<UploadClient>(new URL('../load/upload-client.js', import.meta.url));
  const grown = { small: [] as number[], large: [] as number[] };
  const rest: number[] = [];
  try {
    for (let round = 1; round <= memoryRounds; round += 1) {
      for (const size of ['small', 'large'] as const) {
        run.progress(`memory: ${size} files, round ${round} of ${memoryRounds}`);
        const { base, peak } = await once(run, client, memoryBytes[size], `memory-${size}-${round}`);
        grown[size].push((peak - base) / CONNECTIONS / 1e6);
        rest.push(base / 1e6);
      }
    }
  } finally {
    await client.stop();
  }
  const mib = (bytes: number): string => `${bytes / 2 ** 20} MiB`;
  return {
    id: 'memory',
    title: 'Memory',
    method: `Largest RSS of a freshly started service during ${CONNECTIONS} concurrent uploads, less its RSS after one small upload, divided by the uploads in flight. Looked at every 10 ms; a new process each time, so that no page was touched before.`,
    figures: [
      figure('memory.figure.large', `an upload of ${mib(memoryBytes.large)}`, 'MB', 'ours', grown.large),
      figure('memory.figure.small', `an upload of ${mib(memoryBytes.small)}`, 'MB', 'ours', grown.small),
      figure('memory.rest', 'the service at rest', 'MB', 'other', rest),
    ],
    comparisons: [
      held(
        'memory.large',
        `RSS an upload in flight, ${mib(memoryBytes.large)} files`,
        'the service at rest',
        'MB',
        grown.large,
      ),
      proportion(
        'memory.size',
        `growth with the file, ${mib(memoryBytes.large)}`,
        `uploads of ${mib(memoryBytes.small)}`,
        'MB',
        grown.large,
        grown.small,
      ),
    ],
    notes: [],
  };
}

async function once(
  run: Run,
  client: Child<UploadClient>,
  bytes: number,
  name: string,
): Promise<{ readonly base: number; readonly peak: number }> {
  const service = await ServiceProcess.start({ dataDir: join(run.dataDir, name), main: run.serviceMain });
  try {
    const apiKey = await service.createKey(await service.createPartner('volume'));
    const port = Number(service.partnerUrl.port);
    const upload = async (connections: number, size: number): Promise<void> => {
      const { wrong } = await client.call('upload', {
        port,
        callers: [{ apiKey }],
        connections,
        each: 1,
        bytes: size,
      });
      for (const what of wrong) run.wrong(`memory: ${what}`);
    };
    await upload(1, WARM_UP_BYTES);
    await sleep(SETTLE_MS);
    const { rssBytes: base } = await service.probe.call('use');
    await service.probe.call('watchMemory');
    await upload(CONNECTIONS, bytes);
    return { base, peak: await service.probe.call('memoryPeak') };
  } finally {
    await service.stop();
  }
}
