/** Child process: uploads with real slots and real form fields, and checks what is answered. */
import { createHash } from 'node:crypto';
import { broadcastWave } from '../fixtures/broadcast-wave.js';
import { seededBytes } from '../fixtures/random.js';
import { answerCalls } from '../service/child.js';
import { type Connection, openConnections } from './connection.js';
import { jsonRequest, uploadRequest } from './form.js';

export interface UploadLoad {
  readonly port: number;
  /** Absent: a sink that takes any form and answers the count of bytes. */
  readonly apiKey?: string | undefined;
  /** Uploads at once, each on a connection of its own. */
  readonly connections: number;
  /** Uploads one after the other on each connection. */
  readonly each: number;
  readonly bytes: number;
}

export interface UploadLoadResult {
  /** From the first byte sent to the last answer. */
  readonly seconds: number;
  readonly bytes: number;
  /** Seconds from the first byte of an upload to its answer. */
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
const takes = new Map<string, Take>();
let samples: Buffer = Buffer.alloc(0);

/**
 * A file for each connection: the same random samples from different offsets, so that no byte of one upload
 * stands where it stands in another. Bytes that end up in the wrong upload give a wrong digest.
 */
function takeOf(connection: number, bytes: number): Take {
  const name = `${connection} ${bytes}`;
  const known = takes.get(name);
  if (known !== undefined) return known;
  const { head, dataBytes, tail } = broadcastWave(bytes, `Take ${connection}`);
  const needed = dataBytes + 64 * STEP;
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
  if (status !== 201) throw new Error(`a slot was refused: ${status} ${body.toString()}`);
  const { uploadId, url, fields } = JSON.parse(body.toString()) as {
    uploadId: string;
    url: string;
    fields: Record<string, string>;
  };
  return { uploadId, path: new URL(url).pathname, fields };
}

async function upload({
  port,
  apiKey,
  connections: count,
  each,
  bytes,
}: UploadLoad): Promise<UploadLoadResult> {
  const connections = await openConnections(port, count);
  const wrong: string[] = [];
  const times: number[] = [];
  try {
    const jobs: { readonly connection: Connection; readonly take: Take; readonly slots: readonly Slot[] }[] =
      [];
    for (const [index, connection] of connections.entries()) {
      const slots: Slot[] = [];
      for (let i = 0; i < each; i += 1) slots.push(await mint(connection, apiKey));
      jobs.push({ connection, take: takeOf(index, bytes), slots });
    }
    const start = performance.now();
    await Promise.all(
      jobs.map(async ({ connection, take, slots }) => {
        for (const { uploadId, path, fields } of slots) {
          const began = performance.now();
          const { status, body } = await connection.request(uploadRequest(path, fields, take.parts));
          times.push((performance.now() - began) / 1000);
          const answer = JSON.parse(body.toString()) as {
            uploadId?: string;
            bytes?: number;
            sha256?: string;
          };
          const right =
            status === 201 &&
            answer.bytes === take.bytes &&
            (apiKey === undefined || (answer.sha256 === take.sha256 && answer.uploadId === uploadId));
          if (!right)
            wrong.push(
              `upload of ${take.bytes} bytes with digest ${take.sha256}: ${status} ${body.toString()}`,
            );
        }
      }),
    );
    const seconds = (performance.now() - start) / 1000;
    return { seconds, bytes: jobs.reduce((total, { take }) => total + take.bytes * each, 0), times, wrong };
  } finally {
    for (const connection of connections) connection.close();
  }
}

export interface StoreLoad {
  readonly port: number;
  readonly apiKey: string;
  readonly connections: number;
  readonly count: number;
  readonly file: Uint8Array;
}

/** Uploads one file many times, into a slot each. Returns the ids. */
async function storeMany({
  port,
  apiKey,
  connections: count,
  count: uploads,
  file,
}: StoreLoad): Promise<string[]> {
  const sha256 = createHash('sha256').update(file).digest('hex');
  const connections = await openConnections(port, count);
  const ids: string[] = [];
  let left = uploads;
  try {
    await Promise.all(
      connections.map(async (connection) => {
        while (left-- > 0) {
          const { uploadId, path, fields } = await mint(connection, apiKey);
          const { status, body } = await connection.request(uploadRequest(path, fields, [file]));
          const answer = JSON.parse(body.toString()) as { sha256?: string };
          if (status !== 201 || answer.sha256 !== sha256)
            throw new Error(`an upload was refused: ${status} ${body.toString()}`);
          ids.push(uploadId!);
        }
      }),
    );
    return ids;
  } finally {
    for (const connection of connections) connection.close();
  }
}

const methods = { upload, storeMany };
export type UploadClient = typeof methods;

answerCalls(methods);
