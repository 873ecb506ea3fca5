import { Deployment } from '../capacity/deployment.js';
import { broadcastWaveFile } from '../fixtures/broadcast-wave.js';
import { seededBytes } from '../fixtures/random.js';
import { createPartners, embeddedCalls, Supply, uploadCopies } from '../http/verify-calls.js';
import type { PreparedCall, RequestClient } from '../load/request-client.js';
import type { UploadClient } from '../load/upload-client.js';
import { describeMachine } from '../machine.js';
import { type Curve, curveLine, interleave, type Measure, type Run, type Section } from '../measure.js';
import { Child } from '../service/child.js';
import type { ServiceProcess } from '../service/service-process.js';
import { percentile } from '../statistics.js';

const COUNTS = [1, 2, 3, 4] as const;
/** Partners that call by turns: few, whose charges meet in few rows, and as many as there are connections. */
const CROWDS = [4, 64] as const;
const CONNECTIONS = 64;
const FILE_BYTES = 24_000;

/** Contenders of one number of processes: all of them at once, and one alone with the connections that each of them has. */
const KINDS = ['together', 'alone'] as const;
type Kind = (typeof KINDS)[number];

interface Rate {
  readonly perSecond: number;
  /** Milliseconds. */
  readonly p99: number;
  /** Microseconds of CPU a call, of all the processes that were called. */
  readonly services: number;
  readonly cassandra: number;
}

export const scaleProcesses: Measure = { name: 'scale-processes', run: measureProcesses };

async function measureProcesses(run: Run): Promise<Section> {
  const deployment = await Deployment.start({
    dataDir: run.dataDir,
    profileDir: run.profileDir,
    say: (line) => run.progress(`scale-processes: ${line}`),
  }).catch((cause: unknown) => {
    const { message } = cause as Error;
    throw new Error(`scale-processes has to start Cassandra, Kafka and S3 (deploy/services): ${message}`, {
      cause,
    });
  });
  const client = new Child<RequestClient>(new URL('../load/request-client.js', import.meta.url));
  try {
    const services = [deployment.service];
    for (const count of COUNTS.slice(1)) services.push(await deployment.startAnother(`service-${count}`));
    const { curveRounds: rounds, scaledVerifyCalls: calls } = run.scale;
    const supplies: Supply[] = [];
    const needed = calls * (COUNTS.length + COUNTS.length * KINDS.length * (rounds + 1));
    for (const partners of CROWDS)
      supplies.push(new Supply(await prepareCalls(run, deployment.service, partners, needed), calls));
    const verify = (count: number, kind: Kind, prepared: readonly PreparedCall[]) =>
      send(
        {
          run,
          deployment,
          client,
          services: services.slice(0, kind === 'alone' ? 1 : count),
          connections: Math.floor(CONNECTIONS / count),
        },
        prepared,
      );
    // Every process has compiled what it needs before the first round, also the ones that few calls go to.
    for (const _ of COUNTS)
      for (const supply of supplies) await verify(COUNTS.length, 'together', supply.next());
    const results = await interleave(
      run,
      'scale-processes',
      rounds,
      COUNTS.flatMap((count) =>
        KINDS.flatMap((kind) =>
          CROWDS.map((partners, at) => ({
            name: nameOf(partners, count, kind),
            once: () => verify(count, kind, supplies[at]!.next()),
          })),
        ),
      ),
    );
    return report(results, calls);
  } finally {
    await client.stop();
    await deployment.stop();
  }
}

function nameOf(partners: number, count: number, kind: Kind): string {
  return `${partners} partners, ${count} processes, ${kind}`;
}

/** Prepares calls that are each a new billable unit. */
async function prepareCalls(
  run: Run,
  service: ServiceProcess,
  partnerCount: number,
  count: number,
): Promise<readonly PreparedCall[]> {
  const uploads = new Child<UploadClient>(new URL('../load/upload-client.js', import.meta.url));
  try {
    const partners = await createPartners(service, partnerCount);
    const issued = await service.issue(
      partners[0]!.partnerId,
      'Scaled',
      broadcastWaveFile(FILE_BYTES, 'Scaled'),
      'embedded',
    );
    run.progress(`scale-processes: ${count} uploads to be verified`);
    const slots = await uploadCopies(service, uploads, partners, count, issued.deliverable);
    return shuffled(embeddedCalls(issued, slots));
  } finally {
    await uploads.stop();
  }
}

/** Shuffles the calls in the same order in every run, so that no process is given partners of its own. */
function shuffled(calls: readonly PreparedCall[]): readonly PreparedCall[] {
  const places = seededBytes('order', 4 * calls.length);
  return calls
    .map((call, index) => ({ call, place: places.readUInt32LE(4 * index) }))
    .sort((a, b) => a.place - b.place)
    .map(({ call }) => call);
}

/** Sends calls to all of these processes at once, the same number to each over so many connections. */
async function send(
  {
    run,
    deployment,
    client,
    services,
    connections,
  }: {
    readonly run: Run;
    readonly deployment: Deployment;
    readonly client: Child<RequestClient>;
    readonly services: readonly ServiceProcess[];
    readonly connections: number;
  },
  calls: readonly PreparedCall[],
): Promise<Rate> {
  const cpu = async () => ({
    services: services.reduce((sum, service) => sum + deployment.cpuOf(service), 0),
    cassandra: (await deployment.cpu()).cassandra,
  });
  const share = Math.ceil(calls.length / services.length);
  const before = await cpu();
  const began = performance.now();
  const results = await Promise.all(
    services.map((service, at) =>
      client.call('send', {
        port: Number(service.partnerUrl.port),
        connections,
        calls: calls.slice(at * share, (at + 1) * share),
      }),
    ),
  );
  const seconds = (performance.now() - began) / 1000;
  const after = await cpu();
  const wrong = results.flatMap((result) => result.wrong);
  for (const what of wrong.slice(0, 3))
    run.wrong(`scale-processes: ${wrong.length} wrong answers, for instance ${what}`);
  const each = (part: keyof typeof before): number => ((after[part] - before[part]) / calls.length) * 1e6;
  return {
    perSecond: calls.length / seconds,
    p99: percentile(
      results.flatMap(({ times }) => times),
      99,
    ),
    services: each('services'),
    cassandra: each('cassandra'),
  };
}

function report(results: ReadonlyMap<string, readonly Rate[]>, calls: number): Section {
  const line = (
    label: string,
    { partners, kind = 'together' }: { readonly partners: number; readonly kind?: Kind },
    value: (rate: Rate) => number,
    role: 'ours' | 'other' = 'ours',
  ) =>
    curveLine(
      label,
      role,
      COUNTS.map((count) => ({ x: count, rounds: results.get(nameOf(partners, count, kind))!.map(value) })),
    );
  const curve = (id: string, title: string, y: Curve['y'], lines: Curve['lines']): Curve => ({
    id: `scale-processes.${id}`,
    title,
    x: { label: 'service processes', unit: 'processes' },
    y,
    lines,
  });
  const { cores } = describeMachine();
  return {
    id: 'scale-processes',
    title: 'Processes of a cluster',
    method: [
      'POST /v1/verify of a credentialed file, each call a new billable unit, over 1 to',
      `${COUNTS.length} service processes on one Cassandra node, one Kafka broker and one S3`,
      'server, all on this machine.',
      `The calls are those of ${CROWDS[0]} partners, whose charges meet in as many rows, or of ${CROWDS[1]}.`,
      `One client has ${CONNECTIONS} kept-alive connections in all, spread evenly, and sends`,
      `${calls} calls a round; verdict, proof and digest of every answer are checked.`,
      'All processes run from the beginning, with one consumer process, and those that are not',
      'called do nothing but their periodic work.',
      'Fewer calls at once in a process cost more each, since less of them is done together:',
      'so one process is called by itself, too, over as many connections as each of so many has.',
      'CPU is that of the called processes, with the processes that read credentials, and',
      `Cassandra's beside it; work that a call leaves to the relay counts where it falls into`,
      'the round.',
    ].join(' '),
    figures: [],
    comparisons: [],
    curves: [
      curve(
        'rate',
        'Verify, by processes',
        { label: 'calls a second, in total', unit: 'calls/s' },
        CROWDS.map((partners) => line(`${partners} partners`, { partners }, ({ perSecond }) => perSecond)),
      ),
      ...CROWDS.map((partners) =>
        curve(
          `cpu-${partners}`,
          `CPU of a verify, by processes, ${partners} partners`,
          { label: 'CPU a call', unit: 'CPU µs a call' },
          [
            line('processes together', { partners }, ({ services: cpu }) => cpu),
            line('one with a share', { partners, kind: 'alone' }, ({ services: cpu }) => cpu, 'other'),
            line('Cassandra, together', { partners }, ({ cassandra }) => cassandra),
            line('Cassandra, share', { partners, kind: 'alone' }, ({ cassandra }) => cassandra, 'other'),
          ],
        ),
      ),
      curve(
        'p99',
        'p99 of a verify, by processes',
        { label: 'time of a call, p99', unit: 'ms' },
        CROWDS.map((partners) => line(`${partners} partners`, { partners }, ({ p99 }) => p99)),
      ),
    ],
    notes: [
      [
        `This machine has ${cores} cores, which services, consumers, servers and client share.`,
        'Where that is fewer than there are busy processes, the curves show what a call costs as',
        'processes are added, and no speed-up.',
      ].join(' '),
    ],
  };
}
