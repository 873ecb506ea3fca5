/**
 * Measures what reads of proofs cost: `node dist/test/lab/attacks/read-costs.js [--proofs n] [--detail]`. The
 * processor time is the kernel's (schedstat), of the main thread and of the whole process.
 */
import { readdir, readFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { ConfinedService } from './confined-service.js';
import { uploadOnce } from './partner-calls.js';
import { issueRich } from './rich-proofs.js';

const WARM_UP = 200;
const ROUNDS = 200;
/** The plan of the measured partner. No read of this run reaches its rates. */
const PLAN = {
  name: 'measured',
  monthlyQuota: 1_000_000,
  requestsPerSecond: 1_000_000,
  burst: 1_000_000,
  concurrentUploads: 8,
  rotationsPerDay: 5,
};

const { values } = parseArgs({
  options: { proofs: { type: 'string', default: '100' }, detail: { type: 'boolean', default: false } },
});

interface Cost {
  readonly main: number;
  readonly all: number;
}

/** Returns the processor time so far, in milliseconds. */
async function costOf(pid: number): Promise<Cost> {
  const of = async (task: string): Promise<number> =>
    Number((await readFile(`/proc/${pid}/task/${task}/schedstat`, 'utf8')).split(' ')[0]) / 1e6;
  const tasks = await readdir(`/proc/${pid}/task`);
  const each = await Promise.all(tasks.map((task) => of(task).catch(() => 0)));
  return { main: await of(String(pid)), all: each.reduce((sum, one) => sum + one, 0) };
}

const service = await ConfinedService.start();
try {
  await service.operator('POST', '/plans', PLAN);
  const { partnerId, apiKey } = await service.partner(PLAN.name);
  const proofIds = await issueRich(service, partnerId, Number(values.proofs), { detail: values.detail });
  const proofId = proofIds[0]!;
  const get = async (path: string): Promise<string> => {
    const response = await fetch(`${service.partnerUrl}/v1/${path}`, { headers: { 'x-api-key': apiKey } });
    if (response.status !== 200) throw new Error(`${path}: ${response.status} ${await response.text()}`);
    return response.text();
  };
  const file = Buffer.from(
    await (
      await fetch(`${service.partnerUrl}/v1/proofs/${proofId}/asset`, { headers: { 'x-api-key': apiKey } })
    ).arrayBuffer(),
  );
  const { uploadId } = await uploadOnce(service, apiKey, file);
  const verify = async (): Promise<string> => {
    const response = await fetch(`${service.partnerUrl}/v1/verify`, {
      method: 'POST',
      headers: { 'x-api-key': apiKey, 'content-type': 'application/json' },
      body: JSON.stringify({ uploadId }),
    });
    const text = await response.text();
    if (!text.includes('"verdict":"valid"')) throw new Error(text.slice(0, 300));
    return text;
  };
  const reads: Readonly<Record<string, (round: number) => Promise<string>>> = {
    'limit=100': () => get('proofs?limit=100'),
    'default list': () => get('proofs'),
    'include=evidenceReport': () => get('proofs?include=evidenceReport'),
    record: (round) => get(`records/${proofIds[round % proofIds.length]}`),
    proof: (round) => get(`proofs/${proofIds[round % proofIds.length]}`),
    verify,
    usage: () => get('partner/usage'),
  };
  for (const [name, read] of Object.entries(reads)) {
    for (let round = 0; round < WARM_UP; round += 1) await read(round);
    const before = await costOf(service.pid);
    let bytes = 0;
    for (let round = 0; round < ROUNDS; round += 1) bytes += (await read(round)).length;
    const after = await costOf(service.pid);
    const each = (part: keyof Cost): string => ((after[part] - before[part]) / ROUNDS).toFixed(2);
    console.log(
      `${name.padEnd(24)} main ${each('main')} ms, process ${each('all')} ms, ${Math.round(bytes / ROUNDS / 1000)} kB`,
    );
  }
} finally {
  await service.remove();
}
