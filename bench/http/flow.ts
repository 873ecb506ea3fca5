import { join } from 'node:path';
import { broadcastWaveFile } from '../fixtures/broadcast-wave.js';
import type { UploadClient } from '../load/upload-client.js';
import { figure, interleave, type Measure, type Run, type Section } from '../measure.js';
import { Child } from '../service/child.js';
import { ServiceProcess } from '../service/service-process.js';
import { createPartners } from './verify-calls.js';

const CONNECTIONS = 16;
/** The number of partners. Several are needed, so that the plan's limit of concurrent uploads is not measured. */
const PARTNERS = 4;
/** The sizes of the files in kB, before the credential is added. */
const SIZES = [24, 100, 300, 1000] as const;

interface Rate {
  readonly perSecond: number;
  /** The CPU microseconds of the service per flow. */
  readonly cpu: number;
}

export const flow: Measure = { name: 'flow', run: measureFlow };

async function measureFlow(run: Run): Promise<Section> {
  const client = new Child<UploadClient>(new URL('../load/upload-client.js', import.meta.url));
  const service = await ServiceProcess.start({
    dataDir: join(run.dataDir, 'flow'),
    profileDir: run.profileDir,
    main: run.serviceMain,
  });
  try {
    const callers = await createPartners(service, PARTNERS);
    const count = run.scale.flows;
    const contenders = [];
    for (const size of SIZES) {
      const { proofId, deliverable } = await service.issue(
        callers[0]!.partnerId,
        `Flow ${size}`,
        broadcastWaveFile(size * 1000, `Flow ${size}`),
        'embedded',
      );
      contenders.push({
        name: String(size),
        once: async (): Promise<Rate> => {
          const before = await service.probe.call('use');
          const { seconds } = await client.call('flow', {
            port: Number(service.partnerUrl.port),
            callers,
            connections: CONNECTIONS,
            count,
            file: deliverable,
            proofId,
          });
          const after = await service.probe.call('use');
          return {
            perSecond: count / seconds,
            cpu: ((after.cpuSeconds - before.cpuSeconds) / count) * 1e6,
          };
        },
      });
    }
    const results = await interleave(run, 'flow', run.scale.verifyRounds, contenders);
    return report(results, count);
  } finally {
    await Promise.all([client.stop(), service.stop()]);
  }
}

function report(results: ReadonlyMap<string, readonly Rate[]>, count: number): Section {
  return {
    id: 'flow',
    title: 'Flow of a small file',
    method: `Slot, upload and verify of one file of the real service on the embedded store, ${CONNECTIONS} kept-alive connections from another process, ${count} flows a round. The digest of each upload and the verdict and proof of each verify are checked.`,
    figures: SIZES.flatMap((size) => {
      const rates = results.get(String(size))!;
      return [
        figure(
          `flow.${size}`,
          `${size} kB`,
          'flows/s',
          'ours',
          rates.map(({ perSecond }) => perSecond),
        ),
        figure(
          `flow.${size}.cpu`,
          `${size} kB`,
          'CPU µs a flow',
          'ours',
          rates.map(({ cpu }) => cpu),
        ),
      ];
    }),
    comparisons: [],
    notes: [],
  };
}
