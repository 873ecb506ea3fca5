import { MAX_UPLOAD_BYTES } from '../../src/service/domain/upload.js';
import { type Curve, curveLine, interleave, type Measure, type Run, type Section } from '../measure.js';
import { percentile } from '../statistics.js';
import {
  CONNECTIONS_OF_CALLER,
  UPLOAD_SERVERS,
  type UploadServer,
  UploadServers,
  type Uploads,
} from './upload-servers.js';

const MIB = 1024 * 1024;
const SERVERS = ['busboy', 'wasm', 'native'] as const satisfies readonly UploadServer[];
/** The size of a file in MiB where the number of uploads grows. Where the size grows, that number is `AT_ONCE`. */
const FILE_MIB = 1;
const AT_ONCE = 16;
/** The most uploads of a point. Small files would otherwise be uploaded by the thousand. */
const MOST_UPLOADS = 1024;

export const scaleUploads: Measure = { name: 'scale-uploads', run: measureScaleUploads };

/** The work of a point of a curve, with its place on the axis. */
interface Point {
  readonly x: number;
  readonly connections: number;
  readonly mebibytes: number;
}

interface Axis {
  readonly id: string;
  readonly title: string;
  readonly x: Curve['x'];
  readonly points: readonly Point[];
}

/** A quantity that is taken from the uploads of one round. */
interface Quantity {
  readonly id: string;
  readonly y: Curve['y'];
  of(uploads: Uploads): number;
}

const QUANTITIES: readonly Quantity[] = [
  { id: 'speed', y: { label: 'Throughput', unit: 'MB/s' }, of: (uploads) => uploads.megabytesPerSecond },
  {
    id: 'cpu',
    y: { label: 'Processor time', unit: 'CPU s/GB' },
    of: (uploads) => uploads.cpuSecondsPerGigabyte,
  },
  {
    id: 'p99',
    y: { label: 'p99 of an upload', unit: 'ms' },
    of: (uploads) => percentile(uploads.times, 99) * 1000,
  },
];

async function measureScaleUploads(run: Run): Promise<Section> {
  const { curveRounds, uploadsAtOnce, uploadMebibytes } = run.scale;
  const axes: readonly Axis[] = [
    {
      id: 'at-once',
      title: `the number of uploads at once, files of ${FILE_MIB} MiB`,
      x: { label: 'uploads at once', unit: '' },
      points: uploadsAtOnce.map((connections) => ({ x: connections, connections, mebibytes: FILE_MIB })),
    },
    {
      id: 'size',
      title: `the size of a file, ${AT_ONCE} at once`,
      x: { label: 'size of a file', unit: 'MiB' },
      points: uploadMebibytes.map((mebibytes) => ({ x: mebibytes, connections: AT_ONCE, mebibytes })),
    },
  ];
  const nameOf = (axis: Axis, { x }: Point, server: UploadServer): string => `${server}, ${axis.id} ${x}`;
  const servers = await UploadServers.start(run, 'scale-uploads', Math.max(...uploadsAtOnce));
  try {
    const results = await interleave(
      run,
      'scale-uploads',
      curveRounds,
      axes.flatMap((axis) =>
        axis.points.flatMap((point) =>
          SERVERS.map((server) => ({
            name: nameOf(axis, point, server),
            once: () => servers.load(server, loadOf(run, point)),
          })),
        ),
      ),
    );
    const curves = axes.flatMap((axis) =>
      QUANTITIES.map(({ id, y, of }) => ({
        id: `scale-uploads.${axis.id}.${id}`,
        title: `${y.label} over ${axis.title}`,
        x: axis.x,
        y,
        lines: SERVERS.map((server) =>
          curveLine(
            UPLOAD_SERVERS[server],
            ROLES[server],
            axis.points.map((point) => ({
              x: point.x,
              rounds: results.get(nameOf(axis, point, server))!.map(of),
            })),
          ),
        ),
      })),
    );
    return section(run, curves);
  } finally {
    await servers.stop();
  }
}

const ROLES = { busboy: 'baseline', wasm: 'ours', native: 'ours' } as const;

/** Returns the uploads of a point: as many as make up the bytes of the run, at least one for each connection. */
function loadOf({ scale }: Run, { connections, mebibytes }: Point) {
  const bytes = Math.min(Math.round(mebibytes * MIB), MAX_UPLOAD_BYTES);
  const uploads = Math.min(scale.curveBytes / bytes, MOST_UPLOADS);
  return { connections, each: Math.max(1, Math.floor(uploads / connections)), bytes };
}

function section({ scale }: Run, curves: readonly Curve[]): Section {
  return {
    id: 'scale-uploads',
    title: 'Uploads, as they grow in number and size',
    method: [
      `Uploads as in “Upload, end to end”, ${scale.curveBytes / MIB} MiB of them a point, at most ${MOST_UPLOADS} uploads and`,
      `at least one on each connection. Each ${CONNECTIONS_OF_CALLER} connections are a partner of the largest plan at a loopback`,
      'address of its own.',
      'Throughput and time are those of the posts, CPU is that of the whole server process, making the slots included. Every digest',
      'is checked; a refusal is a wrong answer.',
    ].join(' '),
    figures: [],
    comparisons: [],
    curves,
    notes: [`A file has at most ${MAX_UPLOAD_BYTES / MIB} MiB, which is where the size ends.`],
  };
}
