import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import {
  DeleteObjectCommand,
  GetBucketVersioningCommand,
  GetObjectCommand,
  HeadBucketCommand,
  HeadObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  type S3Client,
} from '@aws-sdk/client-s3';
import { defined } from '../../../core/domain/defined.js';
import { IDENTIFIER_PATTERN } from '../../../core/domain/identifiers.js';
import { makeDirectory } from '../../../core/files/make-directory.js';
import { EVIDENCE_PARTS, type EvidencePart } from '../../../witness/domain/evidence.js';
import type { AssetEntry, AssetStore, ByteRange, StagedAsset } from '../../ports/assets.js';
import { type BucketConnection, connectBucket, ifPresent, inTime, statusOf } from './bucket-connection.js';
import { checkProofId, guarded } from './failure.js';
import { SpoolFile } from './spool-file.js';

export interface AssetBucketOptions extends BucketConnection {
  /** Directory on this machine in which an asset is built before it is sent. */
  readonly spoolDirectory: string;
}

export interface AssetBucket extends AssetStore {
  /** Resolves when the bucket answers. */
  ping(): Promise<void>;
  /** Ends the connections. */
  close(): void;
}

/**
 * Mark before a part's name. It is in no id, and no slash: stores that keep objects as files cannot have one below
 * another.
 */
const PART_MARK = '!';
/** Milliseconds until a whole asset is taken, and in addition the least rate of a large one in bytes per millisecond. */
const PUT_MS = 120_000;
const LEAST_PUT_RATE = 1024;
/** Milliseconds in which a bucket takes some of an asset, or answers: one that hangs is not waited for. */
const SILENT_MS = 15_000;
const PUT_ATTEMPTS = 3;
/** Milliseconds of a question about an object, its repetitions included. */
const ANSWER_MS = 10_000;

/**
 * Assets in a bucket of an S3-compatible store, `<prefix><proof id>` each and parts of evidence as
 * `<prefix><proof id>!<part>`, for any number of processes.
 * An asset is built in a local file, because parts of it are overwritten at the end, and sent as one
 * object, which is all there or not there. The bucket must keep no versions: what was erased would live on in
 * them. Failures are DomainError `unavailable` / `store_unavailable`; one in the middle of a read is an error
 * of its stream.
 * @throws Error where the bucket keeps versions; DomainError where it cannot be reached
 */
export async function openAssetBucket(options: AssetBucketOptions): Promise<AssetBucket> {
  const { bucket, prefix, spoolDirectory } = options;
  await makeDirectory(spoolDirectory);
  const client = connectBucket(options);
  const object = (proofId: string, part?: EvidencePart) => {
    checkProofId(proofId);
    return { Bucket: bucket, Key: prefix + proofId + (part === undefined ? '' : PART_MARK + part) };
  };
  const sizeOf = async (name: { readonly Bucket: string; readonly Key: string }) =>
    (await ifPresent(client.send(new HeadObjectCommand(name), inTime(ANSWER_MS))))?.ContentLength;

  async function put(
    name: { readonly Bucket: string; readonly Key: string },
    spool: SpoolFile,
  ): Promise<void> {
    const md5 = createHash('md5');
    for await (const chunk of spool.read()) md5.update(chunk as Uint8Array);
    // The server compares: a body that was damaged on its way is refused.
    const content = { ContentLength: spool.length, ContentMD5: md5.digest('base64') };
    for (let attempt = 1; ; attempt += 1) {
      const silence = new AbortController();
      const timer = setTimeout(() => silence.abort(), SILENT_MS);
      const body = Readable.from(
        passedOn(spool.read(), () => void timer.refresh()),
        { objectMode: false },
      );
      try {
        await client.send(new PutObjectCommand({ ...name, ...content, Body: body }), {
          requestTimeout: PUT_MS + spool.length / LEAST_PUT_RATE,
          abortSignal: silence.signal,
        });
        break;
      } catch (error) {
        // The client repeats nothing that has a stream for a body: it would send the rest of it.
        if (attempt === PUT_ATTEMPTS || silence.signal.aborted || !isTransient(error)) throw error;
      } finally {
        clearTimeout(timer);
        body.destroy();
      }
    }
    if ((await sizeOf(name)) !== spool.length) throw new Error('the bucket lacks an object that it accepted');
  }

  async function remove(name: { readonly Bucket: string; readonly Key: string }): Promise<void> {
    await client.send(new DeleteObjectCommand(name), inTime(ANSWER_MS));
    if ((await sizeOf(name)) !== undefined) throw new Error('the bucket still has an object that it deleted');
  }

  await checkBucket(client, bucket);
  return {
    stage: (proofId, part) =>
      guarded('disk', async () => {
        const name = object(proofId, part);
        return new StagedObject(await SpoolFile.open(spoolDirectory), (spool) => put(name, spool));
      }),

    read: (proofId, range, part) =>
      guarded('bucket', async () => {
        try {
          const found = await ifPresent(
            client.send(
              new GetObjectCommand({
                ...object(proofId, part),
                ...defined({ Range: range && `bytes=${range.start}-${range.end}` }),
              }),
            ),
          );
          return found?.Body as Readable | undefined;
        } catch (error) {
          if (statusOf(error) === 416) return Readable.from([]);
          throw error;
        }
      }),

    size: (proofId, part) => guarded('bucket', async () => sizeOf(object(proofId, part))),

    delete: (proofId) =>
      guarded('bucket', async () => {
        const name = object(proofId);
        const wasThere = (await sizeOf(name)) !== undefined;
        // Also where it was not there: another process may be writing it, and what was asked for is that it
        // is gone.
        await remove(name);
        const parts = await client.send(
          new ListObjectsV2Command({ Bucket: bucket, Prefix: name.Key + PART_MARK }),
          inTime(ANSWER_MS),
        );
        for (const { Key: key } of parts.Contents ?? [])
          if (key !== undefined) await remove({ Bucket: bucket, Key: key });
        return wasThere;
      }),

    list: (after, limit) =>
      guarded('bucket', async () => {
        const page = await client.send(
          new ListObjectsV2Command({
            Bucket: bucket,
            Prefix: prefix,
            MaxKeys: limit,
            // The names of the installation's notes have a slash.
            Delimiter: '/',
            ...defined({ ContinuationToken: after }),
          }),
          inTime(ANSWER_MS),
        );
        return {
          items: (page.Contents ?? []).flatMap(({ Key: key, LastModified: modified }) => {
            const entry = key === undefined ? undefined : entryOf(key.slice(prefix.length));
            return entry === undefined || modified === undefined
              ? []
              : [{ ...entry, writtenAt: Math.floor(modified.getTime() / 1000) }];
          }),
          ...defined({ next: page.NextContinuationToken }),
        };
      }),

    ping: () =>
      guarded('bucket', async () => {
        await client.send(new HeadBucketCommand({ Bucket: bucket }), inTime(ANSWER_MS));
      }),

    close: () => client.destroy(),
  };
}

/** Returns the chunks, and reports each before it is passed on. */
async function* passedOn(chunks: Readable, tell: () => void): AsyncGenerator<Uint8Array> {
  for await (const chunk of chunks) {
    tell();
    yield chunk as Uint8Array;
  }
}

/** Returns proof and part of an object's name after the prefix, or undefined for a name of another kind. */
function entryOf(name: string): Omit<AssetEntry, 'writtenAt'> | undefined {
  const [proofId = '', mark, ...more] = name.split(PART_MARK);
  const part = EVIDENCE_PARTS.find((each) => each === mark);
  if (more.length > 0 || !IDENTIFIER_PATTERN.test(proofId) || part !== mark) return undefined;
  return defined({ proofId, part });
}

class StagedObject implements StagedAsset {
  readonly #spool: SpoolFile;
  readonly #put: (spool: SpoolFile) => Promise<void>;

  constructor(spool: SpoolFile, put: (spool: SpoolFile) => Promise<void>) {
    this.#spool = spool;
    this.#put = put;
  }

  append(chunk: Uint8Array): Promise<void> {
    return guarded('disk', () => this.#spool.append(chunk));
  }

  async patch(offset: number, bytes: Uint8Array): Promise<void> {
    if (!Number.isSafeInteger(offset) || offset < 0 || offset + bytes.length > this.#spool.length)
      throw new RangeError('a patch is outside the appended bytes');
    await guarded('disk', () => this.#spool.patch(offset, bytes));
  }

  read(range?: ByteRange): Readable {
    return this.#spool.read(range);
  }

  publish(): Promise<void> {
    return guarded('bucket', async () => {
      await this.#put(this.#spool);
      await this.#spool.close();
    });
  }

  /** Nothing after `publish`; safe any number of times. An upload that failed half-way left no object. */
  async discard(): Promise<void> {
    await this.#spool.close().catch(() => undefined);
  }
}

/** Checks that the bucket is there, that the key is accepted, and that no versions are kept. */
async function checkBucket(client: S3Client, bucket: string): Promise<void> {
  const versioning = await guarded('bucket', async () => {
    await client.send(new HeadBucketCommand({ Bucket: bucket }));
    try {
      return await client.send(new GetBucketVersioningCommand({ Bucket: bucket }));
    } catch (error) {
      // A store that has no such question keeps no versions.
      if (statusOf(error) === 501) return undefined;
      throw error;
    }
  });
  if (versioning?.Status !== undefined)
    throw new Error(
      `bucket ${bucket} has versioning, so erased files would survive as old versions: use a bucket that never had versioning`,
    );
}

/**
 * True where the same request may succeed when it is repeated: the store was not reached, or says that it is
 * the one to blame.
 */
function isTransient(error: unknown): boolean {
  const status = statusOf(error);
  return status === undefined || status >= 500 || status === 429;
}
