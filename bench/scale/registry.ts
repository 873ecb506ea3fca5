import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { broadcastWaveFile } from '../fixtures/broadcast-wave.js';
import { createPartners, embeddedCalls, type Partner, Supply, uploadCopies } from '../http/verify-calls.js';
import type { PreparedCall, RequestClient } from '../load/request-client.js';
import type { UploadClient } from '../load/upload-client.js';
import { type Curve, type CurveLine, curveLine, type Measure, type Run, type Section } from '../measure.js';
import { Child } from '../service/child.js';
import type { MemoryUse } from '../service/process-use.js';
import { AUDIT_STEP, ServiceProcess } from '../service/service-process.js';
import { percentile } from '../statistics.js';
import { AT_ONCE, type Loaded, loadRegistry, SLICE, UNORDERED } from './registry-loader.js';

const OWNERS = 16;
/** The number of originals. A file has at most 65,000 names on ext4, so they are enough for 16 million proofs. */
const ORIGINALS = 256;
const FILE_BYTES = 24_000;
/** The number of originals that are verified, each as often as the others. */
const VERIFIED = 16;
/** The number of owners that verify. They are so many that no plan's limit of calls is measured. */
const VERIFYING = 4;
const VERIFY_CONNECTIONS = 16;
/** The number of reads in a round, one after the other. */
const READS = 500;
const PAGE_READS = 100;
/** The number of a page that is far from the first page of a list. */
const FAR_PAGE = 1000;
const WARM_UP_READS = 2000;

/** The rounds of everything that was measured with a registry of one size. */
interface Point {
  readonly size: number;
  readonly loadRates: readonly number[];
  /** The bytes of the store's files per proof. */
  readonly bytes: number;
  readonly starts: { readonly seconds: readonly number[]; readonly cpu: readonly number[] };
  readonly memory: { readonly ready: readonly MemoryUse[]; readonly worked: MemoryUse };
  readonly reads: {
    readonly median: readonly number[];
    readonly p99: readonly number[];
    readonly cpu: readonly number[];
  };
  readonly pages: { readonly first: readonly number[]; readonly far: readonly number[] };
  readonly farPage: number;
  readonly verifies: { readonly rates: readonly number[]; readonly cpu: readonly number[] };
  readonly steps: { readonly proofs: readonly number[]; readonly objects: readonly number[] };
}

export const scaleRegistry: Measure = { name: 'scale-registry', run: measureRegistries };

async function measureRegistries(run: Run): Promise<Section> {
  const points: Point[] = [];
  for (const size of run.scale.registries) {
    const dataDir = join(run.dataDir, `registry-${size}`);
    try {
      points.push(await measureRegistry(run, dataDir, size, size === run.scale.registries[0]));
    } finally {
      // Node's own removal has all names of a directory in memory at once.
      await promisify(execFile)('rm', ['-rf', dataDir]);
    }
  }
  return report(points, run.scale.curveRounds);
}

async function measureRegistry(run: Run, dataDir: string, size: number, isAudited: boolean): Promise<Point> {
  const { curveRounds: rounds } = run.scale;
  const say = (what: string): void => run.progress(`scale-registry: ${size} proofs, ${what}`);
  say('what the service issues');
  const { owners, issued } = await issueOriginals(dataDir);
  const loaded = await loadRegistry({
    dataDir,
    originals: issued.map(({ proofId }) => proofId),
    owners: owners.map(({ partnerId }) => partnerId),
    count: size - ORIGINALS,
    progress: (count) => say(`${count} loaded`),
  });
  const starts = { seconds: [] as number[], cpu: [] as number[] };
  const ready: MemoryUse[] = [];
  // The first start writes anew what the loading left in the log.
  let running = await startService(dataDir);
  for (let round = 1; round <= rounds; round += 1) {
    say(`start ${round}`);
    await running.stop();
    const began = performance.now();
    running = await startService(dataDir);
    starts.seconds.push((performance.now() - began) / 1000);
    starts.cpu.push((await running.probe.call('use')).cpuSeconds);
    ready.push(await running.probe.call('memory'));
  }
  const client = new Child<RequestClient>(new URL('../load/request-client.js', import.meta.url));
  try {
    const work = { run, service: running, client, owners, loaded, say };
    const reads = await measureReads(work);
    const pages = await measurePages(work);
    const verifies = await measureVerifies(work, issued.slice(0, VERIFIED));
    const worked = await running.probe.call('memory');
    const steps = {
      proofs: await timeSteps(running, 'proofs', rounds),
      objects: await timeSteps(running, 'objects', rounds),
    };
    if (isAudited) await audit(run, running);
    return {
      size,
      // Without the first one, in which everything was new.
      loadRates: loaded.rates.slice(1).slice(-rounds),
      bytes: loaded.bytes / size,
      starts,
      memory: { ready, worked },
      reads,
      ...pages,
      verifies,
      steps,
    };
  } finally {
    await Promise.all([client.stop(), running.stop()]);
  }
}

type IssuedProofs = readonly { readonly proofId: string; readonly deliverable: Buffer }[];

async function issueOriginals(
  dataDir: string,
): Promise<{ readonly owners: readonly Partner[]; readonly issued: IssuedProofs }> {
  const service = await startService(dataDir);
  try {
    const owners = await createPartners(service, OWNERS);
    const issued = [];
    for (let i = 0; i < ORIGINALS; i += 1) {
      const audio = broadcastWaveFile(FILE_BYTES, `Original ${i}`);
      issued.push(await service.issue(owners[0]!.partnerId, `Original ${i}`, audio, 'embedded'));
    }
    return { owners, issued };
  } finally {
    await service.stop();
  }
}

/** Starts a service whose auditor makes no pass of its own. The bench asks for its steps. */
function startService(dataDir: string): Promise<ServiceProcess> {
  return ServiceProcess.start({ dataDir, settings: { TAKEMARK_AUDIT_RATE: '0' } });
}

interface Work {
  readonly run: Run;
  readonly service: ServiceProcess;
  readonly client: Child<RequestClient>;
  /** The owners. The first one has half of the proofs. */
  readonly owners: readonly Partner[];
  readonly loaded: Loaded;
  readonly say: (what: string) => void;
}

interface Sent {
  readonly perSecond: number;
  /** The microseconds of each call. */
  readonly times: readonly number[];
  /** The CPU microseconds of the service per call. */
  readonly cpu: number;
}

/** Sends calls, one after the other where nothing else is said. */
async function send(
  { run, service, client }: Work,
  calls: readonly PreparedCall[],
  connections = 1,
): Promise<Sent> {
  const port = Number(service.partnerUrl.port);
  const before = await service.probe.call('use');
  const { wrong, seconds, times } = await client.call('send', { port, connections, calls });
  const after = await service.probe.call('use');
  for (const what of wrong.slice(0, 3))
    run.wrong(`scale-registry: ${wrong.length} wrong answers, for instance ${what}`);
  return {
    perSecond: calls.length / seconds,
    times: times.map((milliseconds) => milliseconds * 1000),
    cpu: ((after.cpuSeconds - before.cpuSeconds) / calls.length) * 1e6,
  };
}

async function measureReads(work: Work): Promise<Point['reads']> {
  const { run, loaded, say } = work;
  const owner = work.owners[0]!;
  const reads = (count: number): readonly PreparedCall[] =>
    Array.from({ length: count }, () => {
      const proofId = loaded.sample[Math.floor(Math.random() * loaded.sample.length)]!;
      return { request: getRequest(`/v1/proofs/${proofId}`, owner), expect: { proofId } };
    });
  await send(work, reads(WARM_UP_READS));
  const results: Sent[] = [];
  for (let round = 1; round <= run.scale.curveRounds; round += 1) {
    say(`reading, round ${round}`);
    results.push(await send(work, reads(READS)));
  }
  return {
    median: results.map(({ times }) => percentile(times, 50)),
    p99: results.map(({ times }) => percentile(times, 99)),
    cpu: results.map(({ cpu }) => cpu),
  };
}

/** Walks to a far page, or to the last one, and reads it and the first one by turns. */
async function measurePages(work: Work): Promise<Pick<Point, 'pages' | 'farPage'>> {
  const { run, service, say } = work;
  const owner = work.owners[0]!;
  const pages = { first: [] as number[], far: [] as number[] };
  let path = '/v1/proofs';
  let first: PreparedCall | undefined;
  for (let page = 1; ; page += 1) {
    if (page % 100 === 0) say(`page ${page} of the list`);
    const response = await fetch(new URL(path, service.partnerUrl), {
      headers: { 'x-api-key': owner.apiKey },
    });
    const { proofs, nextCursor } = (await response.json()) as {
      proofs: readonly { readonly proofId: string }[];
      nextCursor?: string;
    };
    const call = {
      request: getRequest(path, owner),
      expect: { 'proofs.0.proofId': proofs[0]!.proofId, 'proofs.length': proofs.length },
    };
    first ??= call;
    const next = nextCursor === undefined ? undefined : `/v1/proofs?cursor=${nextCursor}`;
    if (next === undefined || page === FAR_PAGE) {
      for (let round = 0; round <= run.scale.curveRounds; round += 1) {
        for (const [name, each] of [
          ['first', first],
          ['far', call],
        ] as const) {
          const { times } = await send(
            work,
            Array.from({ length: PAGE_READS }, () => each),
          );
          if (round > 0) pages[name].push(percentile(times, 50));
        }
      }
      return { pages, farPage: page };
    }
    path = next;
  }
}

async function measureVerifies(work: Work, issued: IssuedProofs): Promise<Point['verifies']> {
  const { run, service, owners, say } = work;
  const { curveRounds: rounds, scaledVerifyCalls: calls } = run.scale;
  const uploads = new Child<UploadClient>(new URL('../load/upload-client.js', import.meta.url));
  const all: PreparedCall[][] = [];
  try {
    const copies = Math.ceil((calls * (rounds + 1)) / issued.length / VERIFYING) * VERIFYING;
    say(`${copies * issued.length} uploads to be verified`);
    for (const each of issued) {
      const slots = await uploadCopies(
        service,
        uploads,
        owners.slice(0, VERIFYING),
        copies,
        each.deliverable,
      );
      all.push([...embeddedCalls(each, slots)]);
    }
  } finally {
    await uploads.stop();
  }
  const supply = new Supply(
    all[0]!.flatMap((_, copy) => all.map((list) => list[copy]!)),
    calls,
  );
  const results: Sent[] = [];
  for (let round = 0; round <= rounds; round += 1) {
    const sent = await send(work, supply.next(), VERIFY_CONNECTIONS);
    if (round > 0) results.push(sent);
  }
  return { rates: results.map(({ perSecond }) => perSecond), cpu: results.map(({ cpu }) => cpu) };
}

/** Returns the milliseconds of steps in a part of the auditor's pass, from its second step on. */
async function timeSteps(service: ServiceProcess, part: string, rounds: number): Promise<readonly number[]> {
  const times: number[] = [];
  let from = part;
  for (let step = 0; step <= rounds; step += 1) {
    const began = performance.now();
    const { next } = await service.auditStep(from);
    if (step > 0) times.push(performance.now() - began);
    from = next?.split(':')[0] === part ? next : part;
  }
  return times;
}

/** Runs a whole pass of the auditor, which must find nothing. */
async function audit(run: Run, service: ServiceProcess): Promise<void> {
  for (let from: string | undefined = 'proofs'; from !== undefined; ) {
    const { findings, next } = await service.auditStep(from);
    for (const finding of findings.slice(0, 3)) run.wrong(`scale-registry: ${JSON.stringify(finding)}`);
    from = next;
  }
}

function getRequest(path: string, { apiKey }: Partner): string {
  return `GET ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\nx-api-key: ${apiKey}\r\n\r\n`;
}

function report(points: readonly Point[], rounds: number): Section {
  const line = (label: string, values: (point: Point) => readonly number[]): CurveLine =>
    curveLine(
      label,
      'ours',
      points
        .map((point) => ({ x: point.size, rounds: values(point) }))
        .filter((point) => point.rounds.length > 0),
    );
  const megabytes = (uses: readonly MemoryUse[], kind: keyof MemoryUse): readonly number[] =>
    uses.flatMap((use) => (use[kind] === undefined ? [] : [use[kind] / 1e6]));
  const curve = (id: string, title: string, y: Curve['y'], lines: Curve['lines']): Curve => ({
    id: `scale-registry.${id}`,
    title,
    x: { label: 'proofs in the registry', unit: 'proofs' },
    y,
    lines: lines.filter((each) => each.points.length > 0),
  });
  const curves = [
    curve('start', 'Start', { label: 'until ready', unit: 's' }, [
      line('time', ({ starts }) => starts.seconds),
      line('CPU, all threads', ({ starts }) => starts.cpu),
    ]),
    curve('memory', 'Memory', { label: 'RSS', unit: 'MB' }, [
      line('when ready', ({ memory }) => megabytes(memory.ready, 'rssBytes')),
      line('after the calls', ({ memory }) => megabytes([memory.worked], 'rssBytes')),
      line('after the calls, without mapped files', ({ memory }) => megabytes([memory.worked], 'ownBytes')),
    ]),
    curve('read', 'Reading a proof', { label: 'one call', unit: 'µs' }, [
      line('median', ({ reads }) => reads.median),
      line('p99', ({ reads }) => reads.p99),
      line('CPU of the service', ({ reads }) => reads.cpu),
    ]),
    curve('list', 'Listing proofs', { label: 'one call, median', unit: 'µs' }, [
      line('first page', ({ pages }) => pages.first),
      line(`page ${FAR_PAGE}`, ({ pages }) => pages.far),
    ]),
    curve('verify', 'Cost of a verify', { label: 'CPU a call', unit: 'CPU µs a call' }, [
      line('embedded, each a new unit', ({ verifies }) => verifies.cpu),
    ]),
    curve('verify-rate', 'Rate of verify', { label: 'calls a second', unit: 'calls/s' }, [
      line('embedded, each a new unit', ({ verifies }) => verifies.rates),
    ]),
    curve('audit', 'Step of the auditor', { label: 'one step', unit: 'ms' }, [
      line(`${AUDIT_STEP} proofs`, ({ steps }) => steps.proofs),
      line(`${AUDIT_STEP} files`, ({ steps }) => steps.objects),
    ]),
    curve('write', 'Registering a proof', { label: 'proofs a second', unit: 'proofs/s' }, [
      line('reserved and issued in the store', ({ loadRates }) => loadRates),
    ]),
    curve('disk', 'Disk', { label: 'files of the store', unit: 'bytes a proof' }, [
      line('once compactions have ended', ({ bytes }) => [bytes]),
    ]),
  ];
  return {
    id: 'scale-registry',
    title: 'A registry that grows',
    method: [
      `The real service on the embedded store, with registries of different sizes. ${ORIGINALS}`,
      `proofs of each are issued by the service; the others are registered by the store's own`,
      `calls with ${AT_ONCE} at once, as copies of these with id, time, title and digests of`,
      'their own, over a year.',
      'So their rows, codes, encrypted content, indexes and audit entries are those of a real',
      'registry.',
      'A copy has the content key and the deliverable of its original under its own names, as',
      'hard links: the directories have as many names as in reality, and fewer files.',
      'No signature is made for a copy.',
      `One partner has half of the proofs, ${OWNERS - 1} others share the rest.`,
      'The auditor goes through the smallest registry and must find nothing.',
      'A start is that of a process until it has announced its ports, looked at every 30 ms.',
      `Reads are of random proofs of the largest partner, ${READS} a round, one after the`,
      `other; pages have 50 entries, and each is read ${PAGE_READS} times a round.`,
      `Verifies are of ${VERIFIED} originals over ${VERIFY_CONNECTIONS} connections, each a new`,
      'unit; every answer is checked.',
      'Memory is the RSS, with and without the pages of mapped files, which the system takes',
      'back when it needs them.',
      `An auditor's step looks at ${AUDIT_STEP} things; the service makes none of its own`,
      'meanwhile.',
      `Digests come in no order with the last ${UNORDERED} proofs, and ascend with those before,`,
      "which spares loading most of LevelDB's merging.",
      `The rate of registering is that of the last ${rounds * SLICE} proofs, and none is given`,
      `for a registry with fewer than ${2 * SLICE}.`,
      `Bytes are those of the store's files as no compaction has changed them for four seconds,`,
      'without keys and deliverables.',
    ].join(' '),
    figures: [],
    comparisons: [],
    curves: curves.filter(({ lines }) => lines.length > 0),
    notes: points
      .filter(({ farPage }) => farPage < FAR_PAGE)
      .map(
        ({ size, farPage }) =>
          `The list of the registry of ${size} proofs ends with page ${farPage}, which takes the place of page ${FAR_PAGE}.`,
      ),
  };
}
