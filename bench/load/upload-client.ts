/** Child process: uploads with real slots and real form fields, and checks what is answered. */
import { createHash } from 'node:crypto';
import { broadcastWave } from '../fixtures/broadcast-wave.js';
import { seededBytes } from '../fixtures/random.js';
import { answerCalls } from '../service/child.js';
import { Connection, openConnections, type Reply } from './connection.js';
import { jsonRequest, uploadRequest } from './form.js';

/** A caller that uploads. The service applies its limits by key and by address to each caller separately. */
export interface Caller {
  readonly apiKey: string;
  /** The loopback address. If it is absent, the system chooses one. */
  readonly address?: string;
}

export interface UploadLoad {
  readonly port: number;
  /** The callers that the connections take in turn. Absent for a sink, which answers any form with its byte count. */
  readonly callers?: readonly Caller[] | undefined;
  /** The number of uploads at once, each on a connection of its own. */
  readonly connections: number;
  /** The number of uploads one after the other on each connection. */
  readonly each: number;
  readonly bytes: number;
}

export interface UploadLoadResult {
  /** The seconds from the first byte sent to the last answer. */
  readonly seconds: number;
  readonly bytes: number;
  /** The seconds from the first byte of each upload to its answer. */
  readonly times: readonly number[];
  readonly wrong: readonly string[];
}

interface Take {
  readonly parts: readonly Uint8Array[];
  readonly bytes: number;
  readonly sha256: string;
}

interface Slot {
  readonly uploadId?: string;
  readonly path: string;
  readonly fields: Readonly<Record<string, string>>;
}

const STEP = 4099;
const MOST_CONNECTIONS = 256;
const takes = new Map<string, Take>();
let samples: Buffer = Buffer.alloc(0);

/**
 * Returns the file of a connection. The files have the same random samples from different offsets, so that no
 * byte of the samples has the same place in two files. Bytes that end up in the wrong upload give a wrong digest.
 */
function takeOf(connection: number, bytes: number): Take {
  const name = `${connection} ${bytes}`;
  const known = takes.get(name);
  if (known !== undefined) return known;
  const { head, dataBytes, tail } = broadcastWave(bytes, `Take ${connection}`);
  const needed = dataBytes + MOST_CONNECTIONS * STEP;
  if (samples.length < needed) samples = seededBytes('samples', needed);
  const parts = [head, samples.subarray(connection * STEP, connection * STEP + dataBytes), tail];
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part);
  const take = { parts, bytes: head.length + dataBytes + tail.length, sha256: hash.digest('hex') };
  takes.set(name, take);
  return take;
}

async function mint(connection: Connection, apiKey: string | undefined): Promise<Slot> {
  if (apiKey === undefined)
    return { path: '/uploads/upl_bench', fields: { policy: 'p'.repeat(160), signature: 's'.repeat(43) } };
  const { status, body } = await connection.request([
    jsonRequest('/v1/uploads', { 'x-api-key': apiKey }, '{"purpose":"verify"}'),
  ]);
  const { uploadId, url, fields } = JSON.parse(body.toString()) as {
    uploadId?: string;
    url: string;
    fields: Record<string, string>;
  };
  if (status !== 201 || uploadId === undefined)
    throw new Error(`a slot was refused: ${status} ${body.toString()}`);
  return { uploadId, path: new URL(url).pathname, fields };
}

/** Notes an upload that is refused or cut off as wrong; the load goes on without it. */
async function upload({
  port,
  callers,
  connections: count,
  each,
  bytes,
}: UploadLoad): Promise<UploadLoadResult> {
  const caller = (connection: number): Caller | undefined => callers?.[connection % callers.length];
  const connections = await Promise.all(
    Array.from({ length: count }, (_, i) => Connection.open(port, caller(i)?.address)),
  );
  const wrong: string[] = [];
  const times: number[] = [];
  let answered = 0;
  const noted = async (work: () => Promise<void>): Promise<void> => {
    try {
      await work();
    } catch (error) {
      wrong.push((error as Error).message);
    }
  };
  try {
    const jobs: { readonly connection: Connection; readonly take: Take; readonly slots: Slot[] }[] = [];
    for (const [index, connection] of connections.entries()) {
      const job = { connection, take: takeOf(index, bytes), slots: [] as Slot[] };
      jobs.push(job);
      await noted(async () => {
        while (job.slots.length < each) job.slots.push(await mint(connection, caller(index)?.apiKey));
      });
    }
    const start = performance.now();
    const uploadAll = async ({ connection, take, slots }: (typeof jobs)[number]): Promise<void> => {
      for (const slot of slots) {
        const began = performance.now();
        const reply = await connection.request(uploadRequest(slot.path, slot.fields, take.parts));
        times.push((performance.now() - began) / 1000);
        answered += take.bytes;
        checkAnswer(reply, take, slot);
      }
    };
    await Promise.all(jobs.map((job) => noted(() => uploadAll(job))));
    return { seconds: (performance.now() - start) / 1000, bytes: answered, times, wrong };
  } finally {
    for (const connection of connections) connection.close();
  }
}

/** @throws Error where the answer is not that of the take; a sink, which gives no slots, hashes nothing */
function checkAnswer({ status, body }: Reply, take: Take, { uploadId }: Slot): void {
  const text = body.toString();
  const answer = JSON.parse(text) as { uploadId?: string; bytes?: number; sha256?: string };
  const right =
    status === 201 &&
    answer.bytes === take.bytes &&
    (uploadId === undefined || (answer.sha256 === take.sha256 && answer.uploadId === uploadId));
  if (!right) throw new Error(`upload of ${take.bytes} bytes with digest ${take.sha256}: ${status} ${text}`);
}

export interface StoreLoad {
  readonly port: number;
  readonly apiKey: string;
  readonly connections: number;
  readonly count: number;
  /** The files in turn. */
  readonly files: readonly Uint8Array[];
}

/** Uploads files into a slot each. Returns the ids in the order of the files. */
async function storeMany({
  port,
  apiKey,
  connections: count,
  count: uploads,
  files,
}: StoreLoad): Promise<string[]> {
  const digests = files.map((file) => createHash('sha256').update(file).digest('hex'));
  const connections = await openConnections(port, count);
  const ids: string[] = [];
  let next = 0;
  try {
    await Promise.all(
      connections.map(async (connection) => {
        while (next < uploads) {
          const index = next++;
          const { uploadId, path, fields } = await mint(connection, apiKey);
          const file = files[index % files.length]!;
          const { status, body } = await connection.request(uploadRequest(path, fields, [file]));
          const answer = JSON.parse(body.toString()) as { sha256?: string };
          if (status !== 201 || answer.sha256 !== digests[index % files.length])
            throw new Error(`an upload was refused: ${status} ${body.toString()}`);
          ids[index] = uploadId!;
        }
      }),
    );
    return ids;
  } finally {
    for (const connection of connections) connection.close();
  }
}

export interface FlowLoad {
  readonly port: number;
  readonly callers: readonly Caller[];
  readonly connections: number;
  readonly count: number;
  /** A credentialed file, which each flow uploads and verifies. */
  readonly file: Uint8Array;
  readonly proofId: string;
}

/**
 * Verifies a file many times as a partner does: a slot, an upload, a verify.
 * @throws Error for an answer that is not the verdict `valid` of the proof
 */
async function flow({
  port,
  callers,
  connections: count,
  count: flows,
  file,
  proofId,
}: FlowLoad): Promise<{ readonly seconds: number }> {
  const connections = await openConnections(port, count);
  let next = 0;
  const once = async (connection: Connection, { apiKey }: Caller): Promise<void> => {
    const { uploadId, path, fields } = await mint(connection, apiKey);
    await connection.request(uploadRequest(path, fields, [file]));
    const { status, body } = await connection.request([
      jsonRequest('/v1/verify', { 'x-api-key': apiKey }, JSON.stringify({ uploadId })),
    ]);
    const answer = JSON.parse(body.toString()) as { verdict?: string; proofId?: string };
    if (status !== 200 || answer.verdict !== 'valid' || answer.proofId !== proofId)
      throw new Error(`a flow was answered with ${status} ${body.toString()}`);
  };
  try {
    const start = performance.now();
    await Promise.all(
      connections.map(async (connection, index) => {
        while (next < flows) {
          next += 1;
          await once(connection, callers[index % callers.length]!);
        }
      }),
    );
    return { seconds: (performance.now() - start) / 1000 };
  } finally {
    for (const connection of connections) connection.close();
  }
}

const methods = { upload, storeMany, flow };
export type UploadClient = typeof methods;

answerCalls(methods);
