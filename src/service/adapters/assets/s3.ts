import { Readable } from 'node:stream';
import {
  AbortMultipartUploadCommand,
  DeleteObjectCommand,
  GetBucketVersioningCommand,
  GetObjectCommand,
  HeadBucketCommand,
  HeadObjectCommand,
  ListMultipartUploadsCommand,
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
import { type ObjectName, PART_BYTES, PartUpload, sendBody } from './part-upload.js';
import { SpoolFile } from './spool-file.js';

export interface AssetBucketOptions extends BucketConnection {
  /** The directory on this machine in which an asset is built before it is sent. */
  readonly spoolDirectory: string;
  /** The bytes of a part of a long asset. Default: 128 MiB. */
  readonly partBytes?: number;
}

export interface AssetBucket extends AssetStore {
  /** Resolves when the bucket answers. */
  ping(): Promise<void>;
  /** Ends the connections. */
  close(): void;
}

/**
 * The mark before a part's name. No id has it. It is not a slash, because stores that keep objects as files cannot
 * have one object below another.
 */
const PART_MARK = '!';
/** The time limit of a question about an object in milliseconds, repetitions included. */
const ANSWER_MS = 10_000;

/**
 * Opens the assets in a bucket of an S3-compatible store, for any number of processes. An asset is
 * `<prefix><proof id>`, and a part of evidence is `<prefix><proof id>!<part>`.
 * An asset is built in a local file, because bytes of it are overwritten at the end. A long asset is sent in parts
 * while it is built, any other one in one request, so an object is complete or does not exist. The bucket must keep
 * no versions, because erased files would survive in them. Failures are DomainError `unavailable` /
 * `store_unavailable`; one in the middle of a read is an error of its stream.
 * @throws Error where the bucket keeps versions; DomainError where it cannot be reached
 */
export async function openAssetBucket(options: AssetBucketOptions): Promise<AssetBucket> {
  const { bucket, prefix, spoolDirectory, partBytes = PART_BYTES } = options;
  await makeDirectory(spoolDirectory);
  const client = connectBucket(options);
  const object = (proofId: string, part?: EvidencePart) => {
    checkProofId(proofId);
    return { Bucket: bucket, Key: prefix + proofId + (part === undefined ? '' : PART_MARK + part) };
  };
  const sizeOf = async (name: ObjectName) =>
    (await ifPresent(client.send(new HeadObjectCommand(name), inTime(ANSWER_MS))))?.ContentLength;

  async function publish(name: ObjectName, spool: SpoolFile, parts: PartUpload): Promise<void> {
    if (parts.hasBegun) await parts.complete();
    else
      await sendBody({ spool, range: { start: 0, end: spool.length - 1 } }, (body, options) =>
        client.send(new PutObjectCommand({ ...name, ...body }), options),
      );
    if ((await sizeOf(name)) !== spool.length) throw new Error('the bucket lacks an object that it accepted');
  }

  /** Returns the unfinished uploads of objects whose names begin with a prefix. */
  async function* uploadsOf(prefix: string): AsyncGenerator<ObjectName & { readonly UploadId: string }> {
    let after: { readonly KeyMarker?: string; readonly UploadIdMarker?: string } | undefined;
    do {
      const page = await client.send(
        new ListMultipartUploadsCommand({ Bucket: bucket, Prefix: prefix, ...after }),
        inTime(ANSWER_MS),
      );
      for (const { Key: key, UploadId: id } of page.Uploads ?? [])
        if (key?.startsWith(prefix) && id !== undefined) yield { Bucket: bucket, Key: key, UploadId: id };
      const { IsTruncated: goesOn, NextKeyMarker: KeyMarker, NextUploadIdMarker: UploadIdMarker } = page;
      after = goesOn === true ? defined({ KeyMarker, UploadIdMarker }) : undefined;
    } while (after !== undefined);
  }

  async function remove(name: ObjectName): Promise<void> {
    await client.send(new DeleteObjectCommand(name), inTime(ANSWER_MS));
    if ((await sizeOf(name)) !== undefined) throw new Error('the bucket still has an object that it deleted');
  }

  await checkBucket(client, bucket);
  return {
    stage: (proofId, part) =>
      guarded('disk', async () => {
        const name = object(proofId, part);
        const spool = await SpoolFile.open(spoolDirectory);
        const parts = new PartUpload(client, name, spool, partBytes);
        return new StagedObject(spool, parts, () => publish(name, spool, parts));
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

    deleteUnfinished: (proofId) =>
      guarded('bucket', async () => {
        const { Key: key } = object(proofId);
        // Another id may begin with this one.
        for await (const upload of uploadsOf(key))
          if (upload.Key === key || upload.Key.startsWith(key + PART_MARK))
            await ifPresent(client.send(new AbortMultipartUploadCommand(upload), inTime(ANSWER_MS)));
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

/** Returns proof and part of an object's name after the prefix, or undefined for a name of another kind. */
function entryOf(name: string): Omit<AssetEntry, 'writtenAt'> | undefined {
  const [proofId = '', mark, ...more] = name.split(PART_MARK);
  const part = EVIDENCE_PARTS.find((each) => each === mark);
  if (more.length > 0 || !IDENTIFIER_PATTERN.test(proofId) || part !== mark) return undefined;
  return defined({ proofId, part });
}

class StagedObject implements StagedAsset {
  readonly #spool: SpoolFile;
  readonly #parts: PartUpload;
  readonly #publish: () => Promise<void>;

  constructor(spool: SpoolFile, parts: PartUpload, publish: () => Promise<void>) {
    this.#spool = spool;
    this.#parts = parts;
    this.#publish = publish;
  }

  async append(chunk: Uint8Array): Promise<void> {
    await guarded('disk', () => this.#spool.append(chunk));
    await guarded('bucket', () => this.#parts.advance());
  }

  async patch(offset: number, bytes: Uint8Array): Promise<void> {
    if (!Number.isSafeInteger(offset) || offset < 0 || offset + bytes.length > this.#spool.length)
      throw new RangeError('a patch is outside the appended bytes');
    await guarded('bucket', () => this.#parts.change(offset, bytes.length));
    await guarded('disk', () => this.#spool.patch(offset, bytes));
  }

  read(range?: ByteRange): Readable {
    return this.#spool.read(range);
  }

  publish(): Promise<void> {
    return guarded('bucket', async () => {
      await this.#publish();
      await this.#spool.close();
    });
  }

  /** Ends the upload. It has no effect after `publish`. An upload that failed half-way leaves no object. */
  async discard(): Promise<void> {
    await this.#parts.abort();
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
